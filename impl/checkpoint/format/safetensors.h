// The safetensors file format: 8 bytes with the header's size (little-endian), a JSON header that
// names each tensor's dtype, shape and byte range, then the data without holes.
//
// Readers trust nothing: the sizes are checked before anything is allocated, byte ranges must
// follow one another exactly and end with the file, shapes are multiplied with overflow checks.
// Anything wrong is CORRUPT_DATA with the path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/environment.h"
#include "shardrec/tensor.h"

namespace shardrec::checkpoint {

struct TensorInfo {
  std::string name;
  std::string dtype;  // as the format spells it: "F32", "I64", ...
  std::vector<int64_t> shape;
  int64_t begin = 0;  // bytes, from the start of the data
  int64_t end = 0;

  bool operator==(const TensorInfo&) const = default;
};

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // by begin, then end
  int64_t data_start = 0;           // of the file
  bool has_metadata = false;
};

inline constexpr int64_t kMostHeaderBytes = 100'000'000;

// Bytes of the elements of a tensor; throws CORRUPT_DATA for an unknown dtype, a negative
// dimension, an overflow, or bits that do not fill a byte. `where` names the tensor in errors.
int64_t tensor_bytes(const std::string& dtype, const std::vector<int64_t>& shape,
                     const std::string& where);

// "F32": how the format spells one of our floating-point dtypes.
const char* safetensors_dtype(shardrec_dtype dtype) noexcept;

// Reads and checks the header of a file, of at most `most` bytes: callers who know what is in the
// file say how much its header may take.
SafetensorsHeader read_safetensors_header(const core::ReadFile& file, const std::string& path,
                                          int64_t most = kMostHeaderBytes);

// Files that stand alone carry a checksum of themselves in the metadata of their header.
inline constexpr const char* kChecksumKey = "xxh3_64";
inline constexpr size_t kChecksumDigits = 16;

// The bytes in front of the data (size and header) for tensors that follow one another in the order
// given; begin and end are set. The header is padded so that the data starts at a multiple of 64.
// checksum_digits: not null for a header with a checksum of zeros; set to where its digits stand.
// Throws INVALID_ARGUMENT when the header would exceed kMostHeaderBytes.
std::string make_safetensors_header(std::vector<TensorInfo>& tensors,
                                    size_t* checksum_digits = nullptr);

}  // namespace shardrec::checkpoint
