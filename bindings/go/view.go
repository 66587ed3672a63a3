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

// checked refuses a view that is not of so many elements of T any more.
func checked[T Number](v View, given int) error {
	if v.owner == nil {
		return refusal(StatusInvalidHandle, "the zero View is of nothing")
	}
	if err := v.owner.Check(); err != nil {
		return err
	}
	if v.version != v.owner.Version() {
		return refusal(StatusInvalidState, "this view is of a stack that has got another layer since")
	}
	if v.raw.Dtype() != dtypeOf[T]() {
		return refusal(StatusInvalidArgument, fmt.Sprintf("this view is of %v, not %v", v.Dtype(), Dtype(dtypeOf[T]())))
	}
	if given != v.raw.Count() {
		return refusal(StatusInvalidArgument, fmt.Sprintf("a slice of %d elements for a view of shape %v", given, v.Shape()))
	}
	return nil
}

// ReadView copies the elements, the last dimension varying fastest, to as many of their own type.
func ReadView[T Number](view View, to []T) error {
	if err := checked[T](view, len(to)); err != nil {
		return err
	}
	err := capi.CopyOut(&view.raw, view.owner, to)
	runtime.KeepAlive(view.owner)
	return err
}

// WriteView overwrites the elements by as many of their own type.
func WriteView[T Number](view View, from []T) error {
	if err := checked[T](view, len(from)); err != nil {
		return err
	}
	err := capi.CopyIn(&view.raw, view.owner, from)
	runtime.KeepAlive(view.owner)
	return err
}

// Values are a copy of the elements of a view of FLOAT32.
func (v View) Values() ([]float32, error) {
	values := make([]float32, v.raw.Count())
	if err := ReadView(v, values); err != nil {
		return nil, err
	}
	return values, nil
}

// Set is WriteView of float32.
func (v View) Set(values []float32) error { return WriteView(v, values) }
