// manifest.json: what a checkpoint holds and where. Written last, so that a directory with a
// manifest is a whole checkpoint. It ends with a checksum of itself, and readers check it down to
// the last cell: every part of every table is tiled exactly once by the boxes of the tensors, and
// every byte of every file belongs to its header or to one tensor. The manifest of a delta names the
// checkpoint that it is a change of, and its tensors hold the rows that have changed. The format: FORMAT.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/format/tensors.h"
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
  std::optional<double> learning_rate = {};  // set by a call, in place of the optimizer's
  bool frozen = false;

  bool operator==(const ManifestTable&) const = default;
};

// Learning rates and what is frozen may differ.
bool same_tables(std::span<const ManifestTable> one, std::span<const ManifestTable> other);

struct ManifestCollection {
  std::string name;
  int64_t step = 0;   // applied updates
  std::string model;  // plan::model_to_json; empty in a checkpoint of format 1
  std::string plan;   // plan::plan_to_json of its sharding group; as model
  std::vector<ManifestTable> tables;

  bool operator==(const ManifestCollection&) const = default;
};

struct ManifestFile {
  std::string name;  // inside the directory; letters, digits, '_', '-', '.'
  int64_t bytes = 0;
  // Of what stands in front of the data: its size and checksum. Format 1 has neither (-1).
  int64_t header_bytes = -1;
  uint64_t header_checksum = 0;

  bool operator==(const ManifestFile&) const = default;
};

// Where the elements of a tensor stand.
struct Stored {
  int32_t file = 0;     // index in Manifest::files
  std::string name;     // in the file
  int64_t offset = -1;  // of the first byte in the file; -1 in format 1: read from the header

  bool operator==(const Stored&) const = default;
};

// Rows of a table that have changed, as the tensors of a delta have them: int64, ascending, those of [row, row + rows)
// of the table, in chunks of rows_per_chunk(kRowNumberBytes).
struct ManifestList {
  int32_t collection = 0;  // index in Manifest::collections
  int32_t table = 0;       // index in its tables
  int64_t row = 0;
  int64_t rows = 0;
  int64_t count = 0;
  Stored stored = {};
  std::vector<uint64_t> checksums = {};

  bool operator==(const ManifestList&) const = default;
};
inline constexpr int64_t kRowNumberBytes = 8;

// The rows of a list, in its order.
struct ListedRows {
  int32_t list = 0;  // index in Manifest::lists
  int64_t count = 0;

  bool operator==(const ListedRows&) const = default;
};

// A box of a table in one file: little-endian, [rows, cols], or [rows] for a state of one value per
// row. In a delta only rows of it that have changed.
struct ManifestTensor {
  int32_t collection = 0;  // index in Manifest::collections
  int32_t table = 0;       // index in its tables
  TablePart part = TablePart::kWeights;
  PartLayout layout = {};  // what the table says of the part
  plan::Rectangle cells = {};
  Stored stored = {};
  // checksums[i] is that of rows [i * chunk_rows, (i + 1) * chunk_rows) of the box. In format 1 one
  // of the whole tensor.
  int64_t chunk_rows = 0;
  std::vector<uint64_t> checksums = {};
  std::optional<ListedRows> listed = {};  // of a delta

  int64_t stored_rows() const { return listed ? listed->count : cells.rows; }
  bool operator==(const ManifestTensor&) const = default;
};

enum class ItemKind : uint8_t {
  kLayers,      // a stack of layers; description: dense::Mlp's, to make it again
  kParameters,  // of a DDP handle
  kHostTensor,  // one tensor that one rank set
};

struct ManifestDense {
  std::string name;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  std::vector<int64_t> shape;
  Stored stored = {};
  uint64_t checksum = 0;

  bool operator==(const ManifestDense&) const = default;
};

struct ManifestItem {
  ItemKind kind = ItemKind::kHostTensor;
  std::string name;
  int32_t rank = 0;  // that wrote it
  std::string description;
  std::vector<ManifestDense> tensors;

  bool operator==(const ManifestItem&) const = default;
};

// What a delta is a change of: a checkpoint of the same run and root, whole or a delta itself.
struct ManifestBase {
  std::string directory;  // its name below the root
  int64_t step = 0;
  int64_t commit = 0;
  uint64_t checksum = 0;  // of its manifest
  int32_t deltas = 1;     // from the whole checkpoint to this one, which counts

  bool operator==(const ManifestBase&) const = default;
};
// So many deltas follow a whole checkpoint at most.
inline constexpr int32_t kMostDeltas = 1000;

struct Manifest {
  int format = 2;      // 3 of a delta
  std::string run;     // names the run that wrote it; empty of none (tables alone of release 0.1)
  int64_t commit = 0;  // numbers the commits of a run
  int64_t step = 0;    // of the host's
  int32_t ranks = 1;   // that wrote it
  std::vector<ManifestCollection> collections;
  std::vector<ManifestItem> items;
  std::vector<ManifestFile> files;
  std::vector<ManifestTensor> tensors;
  std::optional<ManifestBase> base = {};  // of a delta, as the next two
  std::vector<ManifestList> lists = {};
  bool states = true;  // does it have the states of optimizers?

  // Of a table, by TablePart: weights, and the states that are in it.
  int parts_of(const ManifestTable& table) const {
    return states ? part_count(table.optimizer) : 1;
  }

  const ManifestTable& table_of(const ManifestTensor& tensor) const {
    return collections[static_cast<size_t>(tensor.collection)]
        .tables[static_cast<size_t>(tensor.table)];
  }
  const ManifestFile& file_of(const Stored& stored) const {
    return files[static_cast<size_t>(stored.file)];
  }

  bool operator==(const Manifest&) const = default;
};

inline int64_t bytes_of(const ManifestTensor& tensor) {
  return tensor.stored_rows() * tensor.layout.row_bytes(tensor.cells.cols);
}
inline int64_t bytes_of(const ManifestList& list) { return list.count * kRowNumberBytes; }
int64_t bytes_of(const ManifestDense& tensor);

std::string manifest_to_text(const Manifest& manifest);
// The checksum with which such a text ends.
uint64_t manifest_checksum(std::string_view text);

// Throws CORRUPT_DATA (UNSUPPORTED for a format, dtype or optimizer of a later release), path in
// the parts. Checks form, ranges and names, not the tiling.
Manifest manifest_from_text(std::string_view text, const std::string& path);

// Proves that the tensors tile every part of every table exactly once; throws `status`.
void check_coverage(const Manifest& manifest, shardrec_status status, const std::string& path);

// Proves that header and tensors fill each file without holes and overlaps; nothing to prove for
// format 1, whose headers say it. Throws CORRUPT_DATA.
void check_files(const Manifest& manifest, const std::string& path);

}  // namespace shardrec::checkpoint
