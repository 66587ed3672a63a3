// Elements of the types that the plug-in has, in memory that may be a device's. Each is read and written by a call of
// memcpy, into which the sanitizers look.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake_cublaslt {

size_t bytes_of_element(int32_t dtype);  // 0: it has none of this type
float load(int32_t dtype, const void* elements, int64_t index);
void store(int32_t dtype, void* elements, int64_t index, float value);

// The nearest number with the 10 fraction bits of TF32, ties to even.
float round_to_tf32(float value);

}  // namespace fake_cublaslt
