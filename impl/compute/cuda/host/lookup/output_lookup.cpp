#include "compute/cuda/host/lookup/output_lookup.h"

#include <utility>

#include "core/error.h"

namespace shardrec::compute::cuda::host {

OutputLookup::OutputLookup(std::shared_ptr<Stream> stream) : lookups_(std::move(stream)) {}

void OutputLookup::run(std::span<const BagOutputs> blocks) {
  lookups_.clear();
  for (const BagOutputs& block : blocks) {
    if (block.table.coded) {
      core::fail(
          SHARDREC_UNSUPPORTED,
          "tables in 8 bits per element are looked up on the CPU only: open the scorer there");
    }
    lookups_.add(block.table, {.ids = block.ids.data,
                               .weights = block.weights,
                               .lengths = block.lengths,
                               .chunk_ids = block.chunk_ids,
                               .items = block.items,
                               .out = block.out,
                               .out_stride = static_cast<int64_t>(block.out_stride),
                               .out_element = static_cast<int32_t>(block.out_element),
                               .ids_are_64 = block.ids.is_64,
                               .mean = block.mean,
                               .good = block.good});
  }
  lookups_.run("look up outputs");
}

}  // namespace shardrec::compute::cuda::host
