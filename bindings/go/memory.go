package shardrec

import "shardrec.org/shardrec/internal/capi"

// Tensor is a compact tensor of the memory, whose last dimension varies fastest; no sizes: of one element. offset: of its
// first element in bytes, a multiple of the element's size. It is for all calls that take tensors on the memory's device,
// keeps the memory from being collected, and is refused once that is closed. Not for a goroutine while another one closes
// it. Copy reads and writes what it holds.
func (m *Memory) Tensor(offset int, dtype Dtype, shape ...int) (Tensor, error) {
	sizes := make([]int64, len(shape))
	for i, size := range shape {
		sizes[i] = int64(size)
	}
	var view capi.View
	if err := capi.Memory_tensor(m.raw(), int64(offset), int32(dtype), sizes, &view); err != nil {
		return Tensor{}, err
	}
	return Tensor{view.Tensor(m.raw())}, nil
}

// kept refuses memory that may be closed before what keeps it.
func kept(tensors ...Tensor) error {
	for _, tensor := range tensors {
		if tensor.raw.Owned() {
			return refusal(StatusInvalidArgument, "a tensor of a Memory, which may be closed before what keeps it; pass a view of a slice")
		}
	}
	return nil
}
