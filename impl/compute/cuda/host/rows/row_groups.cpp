#include "compute/cuda/host/rows/row_groups.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace shardrec::compute::cuda::host {
namespace {

static_assert(SHARDREC_CUDA_BLOCK_SAMPLES == kBlockSamples);

constexpr int kShortKeyBits = 32;
// Lists side by side begin at multiples of so many bytes.
constexpr size_t kAlignment = 256;

size_t bytes_of(size_t count, size_t size) {
  return (count * size + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

SortedRows::SortedRows(std::shared_ptr<Stream> stream, std::shared_ptr<Stream> operations)
    : stream_(std::move(stream)),
      operations_(std::move(operations)),
      fork_(stream_->device()),
      index_(stream_),
      arguments_(stream_),
      results_(stream_),
      sorted_(make_memory(stream_)),
      bags_(make_memory(stream_)),
      unique_(make_memory(stream_)),
      work_(make_memory(stream_)),
      room_(make_memory(stream_)) {}

// Memory is given back in the order of its stream, behind the operations that read it.
SortedRows::~SortedRows() {
  try {
    join();
    fork_.record(*operations_);
    stream_->follow(fork_);
  } catch (...) {
    // The device has failed, and no operation takes place any more; or there is no memory to mark the place.
    table().wait_for_stream(operations_->handle());
  }
}

bool SortedRows::fork() {
  fork_.record(*operations_);
  is_forked_ = true;
  return true;
}

void SortedRows::build(std::span<const GroupedPart> parts, bool weighted, int64_t most_samples) {
  if (!std::exchange(is_forked_, false)) fork_.record(*operations_);
  stream_->follow(fork_);
  try {
    enqueue(parts, weighted, most_samples);
  } catch (...) {  // as far as it was enqueued, it reads the blocks
    table().wait_for_stream(stream_->handle());
    throw;
  }
  is_joined_ = false;
}

void SortedRows::join() {
  is_forked_ = false;
  if (std::exchange(is_joined_, true)) return;
  results_.hold_up(*operations_);
  joined_at_ = operations_->next_place();
}

bool SortedRows::counted() {
  if (is_joined_ && operations_->is_known_over(joined_at_)) results_.know();
  return results_.known();
}

void SortedRows::enqueue(std::span<const GroupedPart> parts, bool weighted, int64_t most_samples) {
  const auto blocks_per_feature = static_cast<uint32_t>(most_samples / kBlockSamples + 1);
  make_room(list(parts, blocks_per_feature), weighted);
  job_.row_counts = results_.begin<int64_t>(parts_.size(), 0,
                                            index_.zero_bytes() + scan_bytes(part_tiles_.count()));
  job_.scan = scan_at(results_.work() + index_.zero_bytes());
  index_.enqueue(results_.work());

  arguments_.begin(
      Arguments::bytes_of<shardrec_cuda_grouped_block>(blocks_.size()) + block_tiles_.bytes() +
      Arguments::bytes_of<shardrec_cuda_grouped_part>(parts_.size()) + part_tiles_.bytes());
  job_.blocks = arguments_.add(std::span<const shardrec_cuda_grouped_block>(blocks_));
  job_.block_tiles = block_tiles_.add_to(arguments_);
  job_.parts = arguments_.add(std::span<const shardrec_cuda_grouped_part>(parts_));
  job_.part_tiles = part_tiles_.add_to(arguments_);
  arguments_.send();

  const auto group = [&] {
    require(table().group_rows(stream_->handle(), &job_), "group rows on device ",
            stream_->device());
  };
  job_.room = nullptr;
  group();  // how much room the sort takes
  job_.room = room_.resize(job_.room_bytes);
  group();
  results_.send();
}

// The blocks that have ids, and the parts.
SortedRows::Sizes SortedRows::list(std::span<const GroupedPart> parts,
                                   uint32_t blocks_per_feature) {
  indexed_.clear();
  for (const GroupedPart& part : parts) {
    for (const GroupedBlock& block : part.blocks) {
      if (block.bags->ids != 0) indexed_.push_back(block.bags);
    }
  }
  const std::span<const IndexedBags> index = index_.list(indexed_);
  blocks_.clear();
  block_tiles_.clear();
  parts_.clear();
  part_tiles_.clear();
  first_bag_.clear();
  Sizes all;
  for (const GroupedPart& part : parts) {
    const int64_t first_occurrence = all.occurrences;
    const int64_t first_bag = all.bags;
    for (const GroupedBlock& block : part.blocks) {
      if (block.bags->ids == 0) continue;
      const IndexedBags& bags = index[blocks_.size()];
      blocks_.push_back({.ids = block.ids.data,
                         .weights = block.weights,
                         .first_id = bags.first_id,
                         .sample = bags.sample,
                         .count = block.bags->ids,
                         .bags = block.bags->bags,
                         .ids_are_64 = block.ids.is_64,
                         .sequence = block.sequence,
                         .first_sample = block.first_sample,
                         .feature_block = static_cast<uint32_t>(block.feature) * blocks_per_feature,
                         .first_bag = static_cast<uint32_t>(all.bags - first_bag),
                         .first_occurrence = all.occurrences,
                         .first_key = all.keys});
      block_tiles_.add(block.bags->ids);
      all.occurrences += block.bags->ids;
      all.bags += block.rows();
    }
    const int64_t occurrences = all.occurrences - first_occurrence;
    parts_.push_back(
        {.first_occurrence = first_occurrence, .occurrences = occurrences, .first_key = all.keys});
    part_tiles_.add(occurrences, 1);
    first_bag_.push_back(static_cast<size_t>(first_bag));
    // A part that no occurrence is of takes none of the keys.
    if (occurrences != 0) all.keys += static_cast<uint64_t>(part.rows);
  }
  return all;
}

void SortedRows::make_room(const Sizes& sizes, bool weighted) {
  const auto n = static_cast<size_t>(sizes.occurrences);
  const int bits =
      sizes.keys == 0 ? 1 : std::max(1, static_cast<int>(std::bit_width(sizes.keys - 1)));
  const size_t keys = bytes_of(n, bits > kShortKeyBits ? sizeof(uint64_t) : sizeof(uint32_t));
  const size_t values = bytes_of(n, weighted ? sizeof(uint64_t) : sizeof(uint32_t));
  std::byte* const work = work_.resize(2 * keys + (weighted ? 2 : 1) * values);
  std::byte* const sorted = sorted_.resize(bytes_of(n, sizeof(uint32_t)) * (weighted ? 2 : 1));
  job_ = {.occurrences = sizes.occurrences, .key_bits = bits, .weighted = weighted};
  job_.keys = work;
  job_.sorted_keys = work + keys;
  job_.values = work + 2 * keys;
  job_.bags = static_cast<uint32_t*>(static_cast<void*>(sorted));
  if (weighted) {
    job_.sorted_values = work + 2 * keys + values;
    job_.weights = static_cast<float*>(static_cast<void*>(sorted + bytes_of(n, sizeof(uint32_t))));
  } else {
    job_.sorted_values = sorted;
  }

  block_of_ = bags_.resize_as<uint32_t>(static_cast<size_t>(sizes.bags)).data();
  // As much as there are rows at most: how many there are is known when they are written.
  int64_t* unique = unique_.resize_as<int64_t>(2 * n + parts_.size()).data();
  size_t block = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    shardrec_cuda_grouped_part& part = parts_[p];
    part.rows = unique;
    part.run = part.rows + part.occurrences;
    unique = part.run + part.occurrences + 1;
    const int64_t end = part.first_occurrence + part.occurrences;
    for (; block < blocks_.size() && blocks_[block].first_occurrence < end; ++block) {
      blocks_[block].block_of = block_of_ + first_bag_[p];
    }
  }
}

void SortedRows::describe(size_t part, RowUpdate& job) const {
  const shardrec_cuda_grouped_part& own = parts_[part];
  job.rows = own.rows;
  job.run = own.run;
  job.bags = job_.bags + own.first_occurrence;
  job.weights = job_.weights == nullptr ? nullptr : job_.weights + own.first_occurrence;
  job.blocks = block_of_ + first_bag_[part];
}

}  // namespace shardrec::compute::cuda::host
