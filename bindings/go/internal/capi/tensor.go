package capi

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Tensor is a view of Go's memory, or of a Memory's: three words that cross to C by value, in place of a slice
// (shardrec_go.swg). The zero Tensor is C's NULL. It keeps its memory alive; C keeps it only during calls.
type Tensor struct {
	data   unsafe.Pointer
	first  int     // shape[0] << 17 | (dtype & 0x7fff) << 2 | form
	second int     // of a matrix: row stride << 32 | columns; formLayout: where the layout is in C memory
	layout *layout // nil but for formLayout
}

const (
	formVector = iota
	formMatrix
	formLayout

	maxRows    = 1<<46 - 1
	maxColumns = 1<<31 - 1

	deviceCPU = 1
)

// layout is a shardrec_tensor in C memory, which lacks data and shape[0].
type layout struct {
	dimensions int
	owner      *Handle // whose memory it is; nil: Go's
}

func firstWord(rows int, dtype int32, form int) int {
	if rows < 0 || rows > maxRows {
		panic(fmt.Sprintf("a tensor of %d rows; at most %d are possible", rows, maxRows))
	}
	return rows<<17 | int(dtype&0x7fff)<<2 | form
}

// Vector is a compact vector of length elements at data.
func Vector(data unsafe.Pointer, dtype int32, length int) Tensor {
	return Tensor{data: data, first: firstWord(length, dtype, formVector)}
}

// Matrix has rows of columns elements that start stride elements apart.
func Matrix(data unsafe.Pointer, dtype int32, rows, columns, stride int) Tensor {
	if columns < 0 || columns > maxColumns || stride < 0 || stride > maxColumns {
		return Strided(data, dtype, []int{rows, columns}, []int{stride, 1})
	}
	return Tensor{data: data, first: firstWord(rows, dtype, formMatrix), second: stride<<32 | columns}
}

// Strided has as many dimensions as shape and strides, at most MaxDimensions. Its layout is one object of Go's and one
// of C's memory; First makes others of it without a new one.
func Strided(data unsafe.Pointer, dtype int32, shape, strides []int) Tensor {
	view := View{deviceType: deviceCPU, dtype: dtype, ndim: int32(len(shape))}
	for i := range shape {
		view.shape[i], view.stride[i] = int64(shape[i]), int64(strides[i])
	}
	return withLayout(data, view, nil)
}

// Tensor is the same memory, to be passed to calls; refused once its owner, which it keeps from being collected, is closed.
func (v View) Tensor(owner *Handle) Tensor {
	data := v.data
	v.data = nil
	return withLayout(data, v, owner)
}

// withLayout takes a view without its data, which may be Go's.
func withLayout(data unsafe.Pointer, view View, owner *Handle) Tensor {
	l, address := newLayout(view, owner)
	rows := 0
	if view.ndim != 0 {
		rows = int(view.shape[0])
	}
	return Tensor{data, firstWord(rows, view.dtype, formLayout), address, l}
}

// check is an error where the memory was closed.
func (t Tensor) check() error {
	if t.layout == nil || t.layout.owner == nil {
		return nil
	}
	return t.layout.owner.Check()
}

// Owned tells whether it is memory of the library.
func (t Tensor) Owned() bool { return t.layout != nil && t.layout.owner != nil }

// keepLayout holds the layout in C memory until the call has returned.
func keepLayout(t Tensor) { runtime.KeepAlive(t.layout) }

// MaxDimensions of a tensor.
const MaxDimensions = 8

// Rows is the size of the first dimension.
func (t Tensor) Rows() int { return t.first >> 17 }

// First is the same tensor with another size of the first dimension, which it must have.
func (t Tensor) First(rows int) Tensor {
	t.first = firstWord(rows, int32(t.first>>2&0x7fff), t.first&3)
	return t
}

// Dimensions is their number.
func (t Tensor) Dimensions() int {
	switch t.first & 3 {
	case formVector:
		return 1
	case formMatrix:
		return 2
	}
	return t.layout.dimensions
}

// View is a shardrec_tensor of the library's own memory, written by C; the library says how long it is valid.
type View struct {
	data                              unsafe.Pointer
	deviceType, deviceID, dtype, ndim int32
	shape, stride                     [MaxDimensions]int64
}

// Dtype of the elements.
func (v *View) Dtype() int32 { return v.dtype }

// Shape is the size of each dimension.
func (v *View) Shape() []int {
	shape := make([]int, v.ndim)
	for i := range shape {
		shape[i] = int(v.shape[i])
	}
	return shape
}

// Elements is the memory of a compact view on the CPU, whose elements are of T.
func Elements[T any](v *View) []T { return unsafe.Slice((*T)(v.data), v.Count()) }

// Count is the number of elements.
func (v *View) Count() int {
	count := int64(1)
	for _, size := range v.shape[:v.ndim] {
		count *= size
	}
	return int(count)
}

// CopyOut copies the elements of a compact view to as many of their own type; owner: whose memory it is.
func CopyOut[T any](v *View, owner *Handle, to []T) error {
	if v.deviceType == deviceCPU {
		copy(to, Elements[T](v))
		return nil
	}
	if err := settle(owner); err != nil {
		return err
	}
	return Tensor_copy(v.over(unsafe.Pointer(unsafe.SliceData(to))), v.Tensor(owner), 0)
}

// CopyIn overwrites them.
func CopyIn[T any](v *View, owner *Handle, from []T) error {
	if v.deviceType == deviceCPU {
		copy(Elements[T](v), from)
		return nil
	}
	if err := settle(owner); err != nil {
		return err
	}
	return Tensor_copy(v.Tensor(owner), v.over(unsafe.Pointer(unsafe.SliceData(from))), 0)
}

// settle returns when the device does nothing with the parameters of a stack, whose views alone are on devices.
func settle(stack *Handle) error {
	var value, gradient View
	return Mlp_parameter(stack, 0, &value, &gradient)
}

// over is a tensor of the same dtype and shape over memory of Go's.
func (v View) over(data unsafe.Pointer) Tensor {
	v.data, v.deviceType, v.deviceID = nil, deviceCPU, 0
	return withLayout(data, v, nil)
}
