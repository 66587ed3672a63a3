#include "compute/cuda/host/lookup/row_lookups.h"

#include <algorithm>
#include <utility>

#include "compute/bags.h"
#include "compute/cuda/host/vectors.h"

namespace shardrec::compute::cuda::host {
namespace {

static_assert(SHARDREC_CUDA_CHUNK == kChunk);
static_assert(SHARDREC_CUDA_FLOAT32 == static_cast<int>(Element::kFloat32) &&
              SHARDREC_CUDA_FLOAT16 == static_cast<int>(Element::kFloat16) &&
              SHARDREC_CUDA_BFLOAT16 == static_cast<int>(Element::kBfloat16));

bool rows_in_vectors(const TableRows& table) {
  return in_vectors(table.data, table.stride, table.width, table.element);
}

bool outputs_in_vectors(const TableRows& table, const shardrec_cuda_lookup& lookup) {
  const auto element = static_cast<Element>(lookup.out_element);
  const size_t bytes_of_thread =
      kVectorBytes / element_bytes(table.element) * element_bytes(element);
  return rows_in_vectors(table) &&
         in_vectors(lookup.out, static_cast<size_t>(lookup.out_stride), table.width, element,
                    std::min(bytes_of_thread, kVectorBytes));
}

shardrec_cuda_lookup_kind kind_of(const TableRows& table, const shardrec_cuda_lookup& lookup) {
  return {.element = static_cast<int32_t>(table.element),
          .vectors = rows_in_vectors(table),
          .plain = lookup.out_vectors != 0 && lookup.mean == 0 &&
                   lookup.out_element == SHARDREC_CUDA_FLOAT32};
}

// As many as a row has vectors, or numbers, rounded up to a power of two.
int32_t lanes_of(const TableRows& table, bool vectors) {
  static_assert(SHARDREC_CUDA_LEAST_LANES == 4);
  const size_t numbers = vectors ? kVectorBytes / element_bytes(table.element) : 1;
  return lanes_for(table.width, static_cast<int64_t>(numbers));
}

bool same(const shardrec_cuda_lookup_kind& a, const shardrec_cuda_lookup_kind& b) {
  return a.element == b.element && a.vectors == b.vectors && a.plain == b.plain;
}

}  // namespace

RowLookups::RowLookups(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), arguments_(stream_) {}

void RowLookups::clear() {
  for (Kind& kind : kinds_) kind.launch.clear();
}

void RowLookups::add(const TableRows& table, shardrec_cuda_lookup lookup) {
  if (lookup.items == 0) return;
  lookup.out_vectors = outputs_in_vectors(table, lookup);
  const shardrec_cuda_lookup_kind kind = kind_of(table, lookup);
  auto to = std::find_if(kinds_.begin(), kinds_.end(),
                         [&](const Kind& known) { return same(known.kind, kind); });
  if (to == kinds_.end()) to = kinds_.insert(to, Kind{.kind = kind, .launch = {}});
  lookup.table = table.data;
  lookup.stride = static_cast<int64_t>(table.stride);
  lookup.width = table.width;
  lookup.lanes = lanes_of(table, kind.vectors != 0);
  const int64_t items = SHARDREC_CUDA_LOOKUP_ITEMS / lookup.lanes;
  to->launch.add(lookup, (lookup.items + items - 1) / items);
}

void RowLookups::run(std::string_view what) {
  size_t bytes = 0;
  for (const Kind& kind : kinds_) bytes += kind.launch.bytes();
  arguments_.begin(bytes);
  for (Kind& kind : kinds_) kind.launch.send(arguments_);
  arguments_.send();
  for (const Kind& kind : kinds_) {
    require(
        table().look_up(stream_->handle(), &kind.kind, kind.launch.jobs_there(),
                        kind.launch.first_unit_there(), kind.launch.count(), kind.launch.units()),
        what, " on device ", stream_->device());
  }
}

}  // namespace shardrec::compute::cuda::host
