package shardrec

import "shardrec.org/shardrec/internal/capi"

// settings are what options of one kind were set to, in order. They are no native object: nothing to close.
type settings struct{ list []setting }

type setting struct {
	key   Option
	value any // int64, float64 or string
}

func (s *settings) set(key Option, value any) { s.list = append(s.list, setting{key, value}) }

func number(flag bool) int64 {
	if flag {
		return 1
	}
	return 0
}

// made is the native object for one call; the caller closes it.
func (s *settings) made(kind OptionsKind) (*capi.Handle, error) {
	var ticket uintptr
	if err := capi.Options_create(int32(kind), &ticket); err != nil {
		return nil, err
	}
	options := new(capi.Handle)
	options.Open("options", ticket, capi.Options_destroy)
	for _, each := range s.list {
		var err error
		switch value := each.value.(type) {
		case int64:
			err = capi.Options_set_i64(options, int32(each.key), value)
		case float64:
			err = capi.Options_set_f64(options, int32(each.key), value)
		case string:
			err = capi.Options_set_text(options, int32(each.key), value)
		}
		if err != nil {
			options.Close()
			return nil, err
		}
	}
	return options, nil
}

func value[T any](s settings, kind OptionsKind, key Option, get func(*capi.Handle, int32, *T) error) (T, error) {
	var out T
	options, err := s.made(kind)
	if err != nil {
		return out, err
	}
	defer options.Close()
	err = get(options, int32(key), &out)
	return out, err
}

// use calls with the native object of the options: nil, C's defaults, for nil.
func use(options interface{ native() (*capi.Handle, error) }, call func(options *capi.Handle) error) error {
	made, err := options.native()
	if err != nil {
		return err
	}
	if made != nil {
		defer made.Close()
	}
	return call(made)
}
