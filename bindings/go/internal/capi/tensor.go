package capi

import (
	"fmt"
	"unsafe"
)

// Tensor is a vector or a matrix in CPU memory: three words that cross to C by value, in place of a slice
// (shardrec_go.swg). The zero Tensor is C's NULL. It keeps its memory alive; C keeps it only during calls.
type Tensor struct {
	data   unsafe.Pointer
	first  int // rows << 16 | (dtype & 0x7fff) << 1 | (ndim - 1)
	second int // row stride << 32 | columns
}

const (
	maxRows    = 1<<47 - 1
	maxColumns = 1<<31 - 1
)

// Vector is a compact vector of length elements at data.
func Vector(data unsafe.Pointer, dtype int32, length int) Tensor {
	if length > maxRows {
		panic(fmt.Sprintf("a tensor of %d elements; at most %d are possible", length, maxRows))
	}
	return Tensor{data, length<<16 | int(dtype&0x7fff)<<1, 1 << 32}
}

// Matrix has rows of columns elements that start stride elements apart.
func Matrix(data unsafe.Pointer, dtype int32, rows, columns, stride int) Tensor {
	if rows < 0 || rows > maxRows || columns < 0 || columns > maxColumns || stride < 0 || stride > maxColumns {
		panic(fmt.Sprintf("a tensor of %d x %d elements with rows %d apart is not possible", rows, columns, stride))
	}
	return Tensor{data, rows<<16 | int(dtype&0x7fff)<<1 | 1, stride<<32 | columns}
}

// Float32s is the memory of a compact float32 Tensor that the library made; the library says how long it is
// valid.
func (t Tensor) Float32s() []float32 {
	columns := t.second & 0xffffffff
	if t.first&1 == 0 {
		columns = 1
	}
	return unsafe.Slice((*float32)(t.data), t.first>>16*columns)
}

// Layout is the dtype and the shape.
func (t Tensor) Layout() (dtype int32, shape []int) {
	shape = []int{t.first >> 16}
	if t.first&1 != 0 {
		shape = append(shape, t.second&0xffffffff)
	}
	return int32(t.first>>1&0x7fff) | 1<<16, shape
}
