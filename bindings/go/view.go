package shardrec

import (
	"fmt"
	"runtime"

	"shardrec.org/shardrec/internal/capi"
)

// View is a compact tensor in the library's own memory: a parameter, a gradient, a state. It keeps its owner from being
// collected, and is refused once the owner is closed or has got another layer.
type View struct {
	raw     capi.View
	owner   *capi.Handle
	version int32
}

func viewOf(raw capi.View, owner *capi.Handle) View { return View{raw, owner, owner.Version()} }

// Dtype of the elements.
func (v View) Dtype() Dtype { return Dtype(v.raw.Dtype()) }

// Shape is the size of each dimension.
func (v View) Shape() []int { return v.raw.Shape() }

func elements[T Number](v View) ([]T, error) {
	if v.owner == nil {
		return nil, refusal(StatusInvalidHandle, "the zero View is of nothing")
	}
	if err := v.owner.Check(); err != nil {
		return nil, err
	}
	if v.version != v.owner.Version() {
		return nil, refusal(StatusInvalidState, "this view is of a stack that has got another layer since")
	}
	if v.raw.Dtype() != dtypeOf[T]() {
		return nil, refusal(StatusInvalidArgument, fmt.Sprintf("this view is of %v, not %v", v.Dtype(), Dtype(dtypeOf[T]())))
	}
	return capi.Elements[T](&v.raw), nil
}

// ReadView copies the elements, the last dimension varying fastest, to as many of their own type.
func ReadView[T Number](view View, to []T) error {
	from, err := elements[T](view)
	if err != nil {
		return err
	}
	return copyAll(view, len(to), to, from)
}

// WriteView overwrites the elements by as many of their own type.
func WriteView[T Number](view View, from []T) error {
	to, err := elements[T](view)
	if err != nil {
		return err
	}
	return copyAll(view, len(from), to, from)
}

func copyAll[T Number](view View, given int, to, from []T) error {
	if len(to) != len(from) {
		return refusal(StatusInvalidArgument, fmt.Sprintf("a slice of %d elements for a view of shape %v", given, view.Shape()))
	}
	copy(to, from)
	runtime.KeepAlive(view.owner)
	return nil
}

// Values are a copy of the elements of a view of FLOAT32.
func (v View) Values() ([]float32, error) {
	from, err := elements[float32](v)
	if err != nil {
		return nil, err
	}
	values := make([]float32, len(from))
	return values, copyAll(v, len(values), values, from)
}

// Set is WriteView of float32.
func (v View) Set(values []float32) error { return WriteView(v, values) }
