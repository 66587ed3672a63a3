#include "checkpoint/format/manifest.h"

#include <algorithm>
#include <tuple>

#include "core/error.h"
#include "core/tensor.h"
#include "plan/tiling.h"

namespace shardrec::checkpoint {

bool same_tables(std::span<const ManifestTable> one, std::span<const ManifestTable> other) {
  return std::ranges::equal(one, other, [](const ManifestTable& a, const ManifestTable& b) {
    return a.name == b.name && a.rows == b.rows && a.dim == b.dim && a.dtype == b.dtype &&
           a.optimizer == b.optimizer && a.row_statistics == b.row_statistics;
  });
}

int64_t bytes_of(const ManifestDense& tensor) {
  return elements_of(tensor.shape) * static_cast<int64_t>(core::dtype_size(tensor.dtype));
}

void check_coverage(const Manifest& manifest, shardrec_status status, const std::string& path) {
  // By collection, table and part.
  std::vector<std::vector<std::vector<std::vector<plan::Rectangle>>>> parts;
  for (const ManifestCollection& collection : manifest.collections) {
    auto& tables = parts.emplace_back();
    for (const ManifestTable& table : collection.tables) {
      tables.emplace_back(static_cast<size_t>(manifest.parts_of(table)));
    }
  }
  for (const ManifestTensor& tensor : manifest.tensors) {
    parts[static_cast<size_t>(tensor.collection)][static_cast<size_t>(tensor.table)]
         [static_cast<size_t>(tensor.part)]
             .push_back(tensor.cells);
  }
  const auto check = [&](const ManifestTable& table, TablePart part,
                         std::vector<plan::Rectangle>& boxes) {
    std::sort(boxes.begin(), boxes.end(), plan::before);
    try {
      plan::check_tiled({.name = table.name, .rows = table.rows, .dim = table.dim}, boxes);
    } catch (const core::Error& error) {
      core::fail(
          status,
          core::sentence("the checkpoint ", path, " does not hold every cell of the ",
                         name_of(table.optimizer, part), " exactly once: ", error.sentence()),
          {.table = table.name, .path = path});
    }
  };
  for (size_t c = 0; c < parts.size(); ++c) {
    for (size_t t = 0; t < parts[c].size(); ++t) {
      for (size_t p = 0; p < parts[c][t].size(); ++p) {
        check(manifest.collections[c].tables[t], static_cast<TablePart>(p), parts[c][t][p]);
      }
    }
  }
}

void check_files(const Manifest& manifest, const std::string& path) {
  if (manifest.format == 1) return;
  struct Range {
    int64_t begin;
    int64_t bytes;
    const std::string* name;
  };
  std::vector<std::vector<Range>> ranges(manifest.files.size());
  const auto add = [&](const Stored& stored, int64_t bytes) {
    ranges[static_cast<size_t>(stored.file)].push_back({stored.offset, bytes, &stored.name});
  };
  for (const ManifestList& list : manifest.lists) add(list.stored, bytes_of(list));
  for (const ManifestTensor& tensor : manifest.tensors) add(tensor.stored, bytes_of(tensor));
  for (const ManifestItem& item : manifest.items) {
    for (const ManifestDense& tensor : item.tensors) add(tensor.stored, bytes_of(tensor));
  }
  for (size_t f = 0; f < ranges.size(); ++f) {
    const ManifestFile& file = manifest.files[f];
    std::sort(ranges[f].begin(), ranges[f].end(), [](const Range& a, const Range& b) {
      return std::tie(a.begin, a.bytes) < std::tie(b.begin, b.bytes);
    });
    int64_t end = file.header_bytes;
    for (const Range& range : ranges[f]) {
      if (range.begin != end || range.bytes > file.bytes - end) {
        core::fail(SHARDREC_CORRUPT_DATA,
                   core::sentence("the manifest ", path, " places tensor \"", *range.name,
                                  "\" at byte ", range.begin, " of ", file.name, ", where ", end,
                                  " is expected: holes and overlaps are not allowed"),
                   {.position = range.begin, .path = path});
      }
      end += range.bytes;
    }
    if (end != file.bytes) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("the manifest ", path, " gives ", file.name, " ", file.bytes,
                                " bytes; its header and tensors take ", end),
                 {.path = path});
    }
  }
}

}  // namespace shardrec::checkpoint
