// manifest.json: what a checkpoint holds and where. Written last, so that a directory with a
// manifest is a whole checkpoint. It ends with a checksum of itself, and readers check it down to
// the last cell: every part of every table is tiled exactly once by the boxes of the tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "plan/plan.h"

namespace shardrec::checkpoint {

inline constexpr const char* kManifestName = "manifest.json";

struct ManifestTable {
  std::string name;
  int64_t rows = 0;
  int64_t dim = 0;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_SGD;
  shardrec_row_statistics row_statistics = SHARDREC_ROW_STATISTICS_ROW;

  bool operator==(const ManifestTable&) const = default;
};

struct ManifestFile {
  std::string name;  // inside the directory; letters, digits, '_', '-', '.'
  int64_t bytes = 0;

  bool operator==(const ManifestFile&) const = default;
};

// One tensor of one file: little-endian, [rows, cols], or [rows] for a state of one value per row.
struct ManifestTensor {
  int32_t table = 0;  // index in Manifest::tables
  Part part = Part::kWeights;
  Layout layout = {};  // what the table says of the part
  int64_t row = 0;
  int64_t rows = 0;
  int64_t col = 0;
  int64_t cols = 0;
  int32_t file = 0;       // index in Manifest::files
  std::string name = {};  // in the file
  uint64_t checksum = 0;

  bool operator==(const ManifestTensor&) const = default;
};

struct Manifest {
  int64_t step = 0;
  std::vector<ManifestTable> tables;
  std::vector<ManifestFile> files;
  std::vector<ManifestTensor> tensors;

  bool operator==(const Manifest&) const = default;
};

inline int64_t bytes_of(const ManifestTensor& tensor) {
  return tensor.rows * tensor.layout.row_width(tensor.cols) * tensor.layout.element_bytes();
}

// "weights", "state/exp_avg": the name of a part in manifests and tensor names.
std::string name_of(shardrec_optimizer optimizer, Part part);

std::string manifest_to_text(const Manifest& manifest);

// Throws CORRUPT_DATA (UNSUPPORTED for a dtype or optimizer of a later release), path in the parts.
// Checks form, ranges and names, not the tiling.
Manifest manifest_from_text(std::string_view text, const std::string& path);

// Proves that the tensors tile every part of every table exactly once; throws `status`.
void check_coverage(const Manifest& manifest, shardrec_status status, const std::string& path);

}  // namespace shardrec::checkpoint
