#include "serving/workspace.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "compute/backends/registry.h"
#include "compute/bags.h"
#include "core/error.h"
#include "embedding/batch/verdict.h"
#include "serving/staged_rows.h"

namespace shardrec::serving {
namespace {

template <class Id>
bool all_below(const Id* ids, int64_t count, int64_t rows) {
  // Without a branch in the loop: compilers make vectors of it.
  uint64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) {
    wrong |= static_cast<uint64_t>(static_cast<uint64_t>(int64_t{ids[i]}) >=
                                   static_cast<uint64_t>(rows));
  }
  return wrong == 0;
}

const void* ids_from(const embedding::CheckedBatch& batch, int64_t first) {
  const auto* bytes = static_cast<const std::byte*>(batch.values());
  return bytes + static_cast<size_t>(first) * (batch.ids_are_64() ? 8 : 4);
}

int64_t id_at(const compute::Ids& ids, int64_t i) {
  return ids.is_64 ? static_cast<const int64_t*>(ids.data)[i]
                   : int64_t{static_cast<const int32_t*>(ids.data)[i]};
}

}  // namespace

Workspace::Workspace()
    : backend_(compute::backend_named("cpu").make({.threads = threads_})),
      batch_(compute::cpu_memory()) {}

void Workspace::check(const embedding::BatchArguments& arguments, const Version& version,
                      shardrec_non_finite non_finite, const char* operation) {
  using embedding::Verdict;
  const auto refuse = [&](const Verdict& verdict) {
    throw embedding::verdict_error(verdict, -1, operation, version.model);
  };
  if (arguments.values == nullptr) {
    refuse({.defect = embedding::Defect::kNoTensor, .argument = embedding::Argument::kValues});
  }
  batch_.set_non_finite(non_finite);
  const Verdict verdict = batch_.fill(arguments, version.model, *backend_);
  if (!verdict.good()) refuse(verdict);
  const size_t features = version.model.features.size();
  out_of_range_.assign(features, 0);
  for (size_t f = 0; f < features; ++f) {
    const auto feature = static_cast<int32_t>(f);
    const ServedTable& table = version.table_of(feature);
    const compute::Ids ids{ids_from(batch_, batch_.first_id(feature)), batch_.ids_are_64()};
    const int64_t count = batch_.ids(feature);
    const bool good = ids.is_64
                          ? all_below(static_cast<const int64_t*>(ids.data), count, table.rows)
                          : all_below(static_cast<const int32_t*>(ids.data), count, table.rows);
    if (good) continue;
    out_of_range_[f] = 1;
    if (table.out_of_range != SHARDREC_OUT_OF_RANGE_ERROR) continue;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t id = id_at(ids, i);
      if (id >= 0 && id < table.rows) continue;
      refuse({.defect = embedding::Defect::kIdRange,
              .argument = embedding::Argument::kValues,
              .feature = feature,
              .position = batch_.first_id(feature) + i,
              .value = id,
              .limit = table.rows});
    }
  }
}

int64_t Workspace::output_rows(const Version& version, int32_t output) const {
  return output == 0 ? batch_.batch_size() : batch_.ids(version.sequence(output));
}

// Ids out of range are left out of their bags (of a sequence: their bag is empty), or become row 0.
Workspace::Kept Workspace::keep(const ServedTable& table, int32_t feature, bool sequence) {
  const int64_t first = batch_.first_id(feature);
  const int64_t count = batch_.ids(feature);
  const bool weighted = batch_.weighted() && !sequence;
  Kept kept{.ids = {ids_from(batch_, first), batch_.ids_are_64()},
            .weights = weighted ? batch_.weights() + first : nullptr,
            .lengths = sequence ? nullptr : batch_.lengths(feature).data(),
            .count = count};
  if (out_of_range_[static_cast<size_t>(feature)] == 0) return kept;
  int64_t* const ids = ids_.resize_as<int64_t>(static_cast<size_t>(count)).data();
  const auto is_row = [&](int64_t id) { return id >= 0 && id < table.rows; };
  if (table.out_of_range == SHARDREC_OUT_OF_RANGE_CLAMP) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t id = id_at(kept.ids, i);
      ids[i] = is_row(id) ? id : 0;
    }
    kept.ids = {ids, true};
    return kept;
  }
  const int64_t bags = sequence ? count : batch_.samples(feature);
  uint32_t* const lengths = lengths_.resize_as<uint32_t>(static_cast<size_t>(bags)).data();
  float* const weights =
      weighted ? weights_.resize_as<float>(static_cast<size_t>(count)).data() : nullptr;
  int64_t left = 0;
  int64_t i = 0;
  for (int64_t bag = 0; bag < bags; ++bag) {
    const int64_t end = i + (sequence ? 1 : kept.lengths[bag]);
    const int64_t before = left;
    for (; i < end; ++i) {
      const int64_t id = id_at(kept.ids, i);
      if (!is_row(id)) continue;
      if (weighted) weights[left] = kept.weights[i];
      ids[left++] = id;
    }
    lengths[bag] = static_cast<uint32_t>(left - before);
  }
  return {.ids = {ids, true}, .weights = weights, .lengths = lengths, .count = left};
}

// Where rows do not lie side by side, ids are counted in elements (of coded rows in bytes) from the first range on.
compute::Ids Workspace::as_offsets(const ServedTable& table, const ColumnSlice& slice,
                                   const Kept& kept) {
  int64_t* const offsets = offsets_.resize_as<int64_t>(static_cast<size_t>(kept.count)).data();
  const auto bytes =
      table.coded ? int64_t{1} : static_cast<int64_t>(compute::element_bytes(table.element));
  const std::byte* const base = slice.ranges.front().data;
  for (int64_t i = 0; i < kept.count; ++i) {
    const int64_t id = id_at(kept.ids, i);
    if (table.staged != nullptr && table.staged->has(id)) {
      offsets[i] =
          (std::bit_cast<intptr_t>(table.staged->at(id)) - std::bit_cast<intptr_t>(base)) / bytes;
      continue;
    }
    const RowRange& range = *std::prev(
        std::upper_bound(slice.ranges.begin(), slice.ranges.end(), id,
                         [](int64_t row, const RowRange& each) { return row < each.first; }));
    // Addresses of different files have no difference as pointers.
    const auto distance =
        static_cast<int64_t>(std::bit_cast<intptr_t>(range.data) - std::bit_cast<intptr_t>(base));
    offsets[i] = distance / bytes + (id - range.first) * range.stride;
  }
  return {offsets, true};
}

void Workspace::look_up(const ServedTable& table, const Kept& kept, int64_t items, bool mean,
                        const core::AnyMatrix& out, compute::Element element, size_t output_bytes) {
  const int64_t chunks = compute::chunks_of(items);
  chunk_ids_.assign(static_cast<size_t>(chunks) + 1, 0);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t first = chunk * compute::kChunk;
    const int64_t last = std::min(first + compute::kChunk, items);
    const auto ids = kept.lengths == nullptr
                         ? static_cast<uint32_t>(last - first)
                         : std::accumulate(kept.lengths + first, kept.lengths + last, 0U);
    chunk_ids_[static_cast<size_t>(chunk) + 1] = chunk_ids_[static_cast<size_t>(chunk)] + ids;
  }
  // Room for offsets is there before a refresh by deltas needs it.
  (void)offsets_.resize_as<int64_t>(static_cast<size_t>(kept.count));
  for (const ColumnSlice& slice : table.slices) {
    const bool one = slice.ranges.size() == 1 && table.staged == nullptr;
    blocks_.assign(1,
                   {.table = {.data = slice.ranges.front().data,
                              .element = table.element,
                              .stride = one ? static_cast<size_t>(slice.ranges.front().stride) : 1,
                              .width = slice.cols,
                              .coded = table.coded},
                    .ids = one ? kept.ids : as_offsets(table, slice, kept),
                    .weights = kept.weights,
                    .items = items,
                    .lengths = kept.lengths,
                    .chunk_ids = chunk_ids_.data(),
                    .out = static_cast<std::byte*>(out.data) +
                           static_cast<size_t>(slice.col) * compute::element_bytes(element),
                    .out_element = element,
                    .out_stride = static_cast<size_t>(out.stride),
                    .mean = mean});
    backend_->lookup().look_up_outputs(blocks_, output_bytes);
  }
}

void Workspace::look_up(const Version& version, int32_t output, const core::AnyMatrix& out,
                        compute::Element element) {
  if (out.rows == 0) return;  // its memory may be none
  const auto output_bytes =
      static_cast<size_t>(out.rows * out.cols) * compute::element_bytes(element);
  if (output != 0) {
    const int32_t feature = version.sequence(output);
    const ServedTable& table = version.table_of(feature);
    look_up(table, keep(table, feature, true), out.rows, false, out, element, output_bytes);
    return;
  }
  for (size_t f = 0; f < version.model.features.size(); ++f) {
    const shardrec_pooling pooling = version.model.features[f].pooling;
    if (pooling == SHARDREC_POOLING_NONE) continue;
    const ServedTable& table = version.table_of(static_cast<int32_t>(f));
    core::AnyMatrix columns = out;
    columns.data = static_cast<std::byte*>(out.data) +
                   static_cast<size_t>(version.outputs.column[f]) * compute::element_bytes(element);
    look_up(table, keep(table, static_cast<int32_t>(f), false), out.rows,
            pooling == SHARDREC_POOLING_MEAN, columns, element, output_bytes);
  }
}

}  // namespace shardrec::serving
