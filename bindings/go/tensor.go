package shardrec

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"shardrec.org/shardrec/internal/capi"
)

// Tensor is a view of a slice, which it keeps alive: the library reads and writes the slice in place, and keeps it only
// during calls, but where a function says so. A Tensor is a value: one for every batch costs nothing. The zero Tensor is
// "none". Tensors on devices are views of a Memory.
type Tensor struct{ raw capi.Tensor }

// Number is an element of a Tensor.
type Number interface {
	uint8 | int32 | int64 | Float16 | BFloat16 | float32 | float64
}

// Float16 are the bits of an IEEE 754 number of 16 bits.
type Float16 uint16

// BFloat16 are the upper 16 bits of a float32.
type BFloat16 uint16

// MaxDimensions is the largest number of dimensions of a Tensor.
const MaxDimensions = capi.MaxDimensions

// Float32 is the same value as a float32.
func (b BFloat16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// BFloat16Of is the nearest BFloat16, of two the even one.
func BFloat16Of(value float32) BFloat16 {
	bits := math.Float32bits(value)
	if value != value {
		return BFloat16(bits>>16 | 0x40) // stays a NaN
	}
	return BFloat16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Float32 is the same value as a float32.
func (f Float16) Float32() float32 {
	sign, exponent, fraction := uint32(f>>15)<<31, uint32(f>>10&0x1f), uint32(f&0x3ff)
	switch exponent {
	case 0: // zero, or a multiple of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 0x1f:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// Float16Of is the nearest Float16, of two the even one; infinite from 65520 on.
func Float16Of(value float32) Float16 {
	bits := math.Float32bits(value)
	sign, magnitude := Float16(bits>>31<<15), bits&0x7fffffff
	switch {
	case magnitude > 0xff<<23:
		return sign | 0x7e00 | Float16(magnitude>>13&0x1ff) // NaN
	case magnitude >= 0x477ff000: // 65520
		return sign | 0x7c00
	case magnitude < 0x38800000: // below 2^-14: a multiple of 2^-24, rounded by the addition
		return sign | Float16(math.Float32bits(math.Float32frombits(magnitude)+0.5)-math.Float32bits(0.5))
	}
	return sign | Float16((magnitude-(127-15)<<23+0xfff+magnitude>>13&1)>>13)
}

func dtypeOf[T Number]() int32 {
	switch any(*new(T)).(type) {
	case uint8:
		return int32(DtypeUint8)
	case int32:
		return int32(DtypeInt32)
	case int64:
		return int32(DtypeInt64)
	case Float16:
		return int32(DtypeFloat16)
	case BFloat16:
		return int32(DtypeBfloat16)
	case float32:
		return int32(DtypeFloat32)
	}
	return int32(DtypeFloat64)
}

func dataOf[T Number](values []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(values)) }

// Vector is a view of values.
func Vector[T Number](values []T) Tensor {
	return Tensor{capi.Vector(dataOf(values), dtypeOf[T](), len(values))}
}

// Matrix is a view of values as compact rows of columns elements. It panics when values holds fewer.
func Matrix[T Number](values []T, rows, columns int) Tensor {
	return MatrixRows(values, rows, columns, columns)
}

// MatrixRows is a view of rows of columns elements, which begin stride elements apart: such as some columns of a wider
// matrix. It panics when values holds fewer, or when rows overlap.
func MatrixRows[T Number](values []T, rows, columns, stride int) Tensor {
	if rows < 0 || columns < 0 || stride < columns || rows > 0 && columns > len(values) ||
		rows > 1 && stride != 0 && rows-1 > (len(values)-columns)/stride {
		panic(fmt.Sprintf("a matrix of %d x %d, rows %d apart, in a slice of %d", rows, columns, stride, len(values)))
	}
	return Tensor{capi.Matrix(dataOf(values), dtypeOf[T](), rows, columns, stride)}
}

// Shaped is a view of values as a compact tensor of up to MaxDimensions dimensions, the last of which varies fastest. It
// panics when values holds fewer. One of more than two dimensions allocates: where batches change their length, make it
// once, for the longest, and take its First.
func Shaped[T Number](values []T, shape ...int) Tensor {
	var strides [MaxDimensions]int
	stride := 1
	for i := min(len(shape), MaxDimensions) - 1; i >= 0; i-- {
		strides[i] = stride
		stride *= max(shape[i], 1)
	}
	return Strided(values, shape, strides[:min(len(shape), MaxDimensions)])
}

// Strided is a view whose neighbours in dimension i lie strides[i] elements apart, at least 1 where it has any. It panics
// when it does not lie within values. Otherwise as Shaped.
func Strided[T Number](values []T, shape, strides []int) Tensor {
	if !within(len(values), shape, strides) {
		panic(fmt.Sprintf("no tensor of shape %v and strides %v is in a slice of %d, or it has more than %d dimensions",
			slices.Clone(shape), slices.Clone(strides), len(values), MaxDimensions))
	}
	data, dtype := dataOf(values), dtypeOf[T]()
	switch {
	case len(shape) == 1 && (strides[0] == 1 || shape[0] <= 1):
		return Tensor{capi.Vector(data, dtype, shape[0])}
	case len(shape) == 2 && (strides[1] == 1 || shape[1] <= 1):
		return Tensor{capi.Matrix(data, dtype, shape[0], shape[1], strides[0])}
	}
	return Tensor{capi.Strided(data, dtype, shape, strides)}
}

// within tells whether all elements are among count.
func within(count int, shape, strides []int) bool {
	if len(shape) != len(strides) || len(shape) > MaxDimensions || slices.ContainsFunc(shape, func(n int) bool { return n < 0 }) {
		return false
	}
	if slices.Contains(shape, 0) {
		return true
	}
	last := 0
	for i, size := range shape {
		if size > 1 && (strides[i] < 1 || size-1 > (count-1-last)/strides[i]) {
			return false
		}
		last += (size - 1) * strides[i]
	}
	return last < count
}

// First is the part of a tensor's first rows, whatever a row is. It panics when there are fewer, or no dimensions.
func (t Tensor) First(rows int) Tensor {
	if t.raw == (capi.Tensor{}) || t.raw.Dimensions() == 0 || rows < 0 || rows > t.raw.Rows() {
		panic(fmt.Sprintf("the first %d rows of a tensor of %d", rows, t.raw.Rows()))
	}
	return Tensor{t.raw.First(rows)}
}

// Alignment is where slices of Aligned begin, in bytes: a line of the processor's cache.
const Alignment = 64

// Aligned is a new slice of so many zeros that begins at a multiple of Alignment bytes, where kernels are fastest.
func Aligned[T Number](length int) []T {
	size := int(unsafe.Sizeof(*new(T)))
	values := make([]T, length+Alignment/size-1)
	skipped := 0
	if rest := int(uintptr(dataOf(values)) % Alignment); rest != 0 {
		skipped = (Alignment - rest) / size
	}
	return values[skipped : skipped+length : skipped+length]
}
