#include "compute/cuda/host/routing/id_routing.h"

#include <algorithm>
#include <utility>

namespace shardrec::compute::cuda::host {
namespace {

static_assert(SHARDREC_CUDA_REFUSE == int{SHARDREC_OUT_OF_RANGE_ERROR} &&
              SHARDREC_CUDA_DROP == int{SHARDREC_OUT_OF_RANGE_DROP} &&
              SHARDREC_CUDA_CLAMP == int{SHARDREC_OUT_OF_RANGE_CLAMP});
static_assert(kChunk % SHARDREC_CUDA_STRIP == 0);
static_assert(sizeof(shardrec_cuda_checked_list) == 2 * sizeof(uint64_t));
static_assert(sizeof(shardrec_cuda_wrong_values) == 3 * sizeof(uint64_t));

const std::byte* first_id(const RoutedIds& feature) {
  return static_cast<const std::byte*>(feature.ids.data) +
         static_cast<size_t>(feature.first) *
             (feature.ids.is_64 ? sizeof(int64_t) : sizeof(int32_t));
}

// Have the sums of one the values of the other's?
bool same_sums(const RoutedIds& a, const RoutedIds& b) {
  return a.ids.data == b.ids.data && a.ids.is_64 == b.ids.is_64 && a.first == b.first &&
         a.count == b.count && a.lengths == b.lengths && a.bags == b.bags && a.rows == b.rows &&
         a.policy == b.policy && a.intervals == b.intervals && a.blocks.data() == b.blocks.data() &&
         a.targets.data() == b.targets.data();
}

}  // namespace

IdRouting::IdRouting(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)),
      arguments_(stream_),
      results_(stream_),
      lengths_are_good_(make_memory(stream_)),
      wrong_values_(stream_),
      sums_(make_memory(stream_)),
      places_(make_memory(stream_)) {}

// Where the sums of each feature will be.
void IdRouting::measure(std::span<const RoutedIds> features, size_t all_blocks) {
  counted_.clear();
  counted_blocks_ = all_blocks;
  interval_blocks_.clear();
  strips_ = 0;
  block_sum_count_ = 0;
  place_count_ = 0;
  for (const RoutedIds& feature : features) {
    const auto blocks = std::ssize(feature.blocks);
    const int64_t strips =
        std::max<int64_t>((feature.bags + SHARDREC_CUDA_STRIP - 1) / SHARDREC_CUDA_STRIP, 1);
    Counted& counted = counted_.emplace_back(Counted{.feature = feature,
                                                     .first_strip = strips_,
                                                     .first_block_sum = block_sum_count_,
                                                     .strips = strips});
    strips_ += strips;
    if (feature.intervals == nullptr) continue;
    counted.part = interval_blocks_.add(feature, all_blocks);
    block_sum_count_ += blocks * strips;
    if (blocks <= SHARDREC_CUDA_MOST_SHARED_PLACES) continue;
    counted.first_place = place_count_;
    place_count_ += blocks * strips;
  }
}

bool IdRouting::are_counted(std::span<const RoutedIds> features, size_t blocks) const {
  return blocks == counted_blocks_ &&
         std::ranges::equal(features, counted_, [](const RoutedIds& a, const Counted& b) {
           return same_sums(a, b.feature);
         });
}

uint64_t* IdRouting::block_sums(const Counted& counted) const {
  return job_.strip_sums + strips_ + 1 + counted.first_block_sum;
}

void IdRouting::list_feature(const Counted& counted, const WrittenBlocks& blocks,
                             const int32_t* interval_blocks) {
  const RoutedIds& feature = counted.feature;
  list_blocks(counted, blocks);
  shardrec_cuda_routed_ids out = {};
  out.ids_at = bytes_between(job_.ids, first_id(feature));
  if (feature.weights != nullptr) {
    out.weights_at = bytes_between(job_.weights, feature.weights + feature.first);
  }
  out.lengths = feature.lengths;
  out.count = feature.count;
  out.bags = feature.bags;
  out.rows = feature.rows;
  out.ids_are_64 = feature.ids.is_64;
  out.writes_64 = feature.writes_64;
  out.policy = feature.policy;
  out.sequence = feature.sequence;
  out.kept_lengths = feature.kept_lengths;
  out.interval_of = feature.interval_of;
  if (const RowIntervals* const intervals = feature.intervals; intervals != nullptr) {
    out.intervals = static_cast<int32_t>(intervals->count());
    out.columns = counted.part.columns;
    out.cuts = arguments_.add(intervals->cuts);
    out.even = intervals->even;
    out.reciprocal = intervals->reciprocal;
    out.interval_blocks = interval_blocks + counted.part.first;
    if (counted.first_place >= 0) out.places = job_places_ + counted.first_place;
  }
  out.block_count = static_cast<int32_t>(feature.blocks.size());
  out.blocks = arguments_.add(std::span<const shardrec_cuda_written_block>(written_));
  out.strips = counted.strips;
  out.strip_sums = job_.strip_sums + counted.first_strip;
  out.block_sums = block_sums(counted);
  features_.push_back(out);
}

// Where the blocks of a feature are written to, and what they add up to.
void IdRouting::list_blocks(const Counted& counted, const WrittenBlocks& blocks) {
  const RoutedIds& feature = counted.feature;
  const bool whole = feature.intervals == nullptr;
  written_.clear();
  for (size_t b = 0; b < feature.blocks.size(); ++b) {
    const uint32_t number = feature.blocks[b];
    if (whole) {
      const uint64_t* const sums = job_.strip_sums + counted.first_strip;
      totals_[number] = {.begin = sums, .end = sums + counted.strips};
    } else {
      strips_of_blocks_.push_back(
          {.sums = block_sums(counted) + static_cast<int64_t>(b) * counted.strips,
           .strips = counted.strips,
           .number = int64_t{number}});
    }
    if (blocks.blocks() == 0) continue;
    const BlockSections& to = blocks[number];
    const bool writes_chunks = std::exchange(listed_[blocks.place(number)], 1) == 0;
    written_.push_back(
        {.row = whole ? 0 : interval_blocks_.first_rows()[counted.part.first_row + b],
         .dense_lengths = to.dense_lengths,
         .sparse_lengths =
             static_cast<shardrec_cuda_sparse_length*>(static_cast<void*>(to.sparse_lengths)),
         .ids = to.ids,
         .weights = to.weights,
         .chunk_rows = writes_chunks ? to.chunk_rows : nullptr,
         .chunk_ids = to.chunk_ids});
  }
}

size_t IdRouting::argument_bytes(std::span<const RoutedIds> features) const {
  size_t bytes = Arguments::bytes_of<shardrec_cuda_routed_ids>(features.size()) +
                 Arguments::bytes_of<int64_t>(features.size() + 1) + tiles_.bytes() +
                 bag_tiles_.bytes() + sum_tiles_.bytes() +
                 Arguments::bytes_of<shardrec_cuda_block_total>(counted_blocks_) +
                 Arguments::bytes_of<shardrec_cuda_strips_of_block>(counted_blocks_) +
                 Arguments::bytes_of<int32_t>(interval_blocks_.table().size()) +
                 Arguments::bytes_of<shardrec_cuda_local_chunks>(local_chunks_.size());
  for (const RoutedIds& feature : features) {
    bytes += Arguments::bytes_of<shardrec_cuda_written_block>(feature.blocks.size());
    if (feature.intervals == nullptr) continue;
    bytes += Arguments::bytes_of<int64_t>(feature.intervals->cuts.size());
  }
  return bytes;
}

// The arguments of an operation on the counted features. blocks: none where they are only counted.
void IdRouting::send(std::span<const RoutedIds> features, const WrittenBlocks& blocks,
                     const GivenLengths& lengths) {
  job_ = {};
  for (const RoutedIds& feature : features) {
    if (job_.ids == nullptr) job_.ids = feature.ids.data;
    if (job_.weights == nullptr) job_.weights = feature.weights;
  }
  job_.strip_sums =
      sums_.resize_as<uint64_t>(static_cast<size_t>(strips_ + block_sum_count_) + 1).data();
  job_places_ =
      places_.resize_as<shardrec_cuda_block_place>(static_cast<size_t>(place_count_)).data();
  first_strip_.assign(1, 0);
  tiles_.clear();
  bag_tiles_.clear();
  sum_tiles_.clear();
  for (size_t f = 0; f < features.size(); ++f) {
    const bool whole = features[f].intervals == nullptr;
    first_strip_.push_back(first_strip_.back() + counted_[f].strips);
    if (lengths.reading.features == nullptr) tiles_.add(whole ? features[f].count : 0);
    bag_tiles_.add(features[f].bags, 1);
    if (whole) continue;
    for (size_t b = 0; b < features[f].blocks.size(); ++b) sum_tiles_.add(counted_[f].strips);
    ++job_.cut_features;
  }
  if (lengths.reading.features != nullptr) {
    const bool any_whole = job_.cut_features != std::ssize(features);
    tiles_.add(any_whole ? lengths.batch_ids : 0);
    job_.given = lengths.reading.features;
    job_.given_lengths = lengths.reading.given;
    job_.all_ids = lengths.batch_ids;
    job_.lengths_are_good = lengths_are_good_.resize_as<uint32_t>(2).data();
  }
  arguments_.begin(argument_bytes(features));
  const int32_t* const interval_blocks = arguments_.add(interval_blocks_.table());
  features_.clear();
  totals_.assign(counted_blocks_, {});
  strips_of_blocks_.clear();
  listed_.assign(blocks.sections().size(), 0);
  for (size_t f = 0; f < features.size(); ++f) {
    // What the sums do not depend on may be another than when they were counted.
    counted_[f].feature = features[f];
    list_feature(counted_[f], blocks, interval_blocks);
  }
  job_.features = arguments_.add(std::span<const shardrec_cuda_routed_ids>(features_));
  job_.feature_count = static_cast<int32_t>(features.size());
  job_.first_strip = arguments_.add(std::span<const int64_t>(first_strip_));
  job_.strips = strips_;
  job_.tiles = tiles_.add_to(arguments_);
  job_.bag_tiles = bag_tiles_.add_to(arguments_);
  job_.strips_of_blocks =
      arguments_.add(std::span<const shardrec_cuda_strips_of_block>(strips_of_blocks_));
  job_.sum_tiles = sum_tiles_.add_to(arguments_);
  job_.totals = arguments_.add(std::span<const shardrec_cuda_block_total>(totals_));
  job_.block_count = static_cast<int64_t>(counted_blocks_);
  local_.chunks = arguments_.add(std::span<const shardrec_cuda_local_chunks>(local_chunks_));
  arguments_.send();
}

// Results: what was found in the lengths that are read, what was found in the ids, each by feature; then
// what each block gets; then, where the batch is copied, the wrong values by feature.
void IdRouting::begin_results() {
  const size_t features = counted_.size();
  const size_t lists = job_.given == nullptr ? features : 2 * features;
  const size_t counts = 2 * lists + counted_blocks_;
  const size_t of_bags = scan_bytes(bag_tiles_.count());
  const size_t of_scans = of_bags + scan_bytes(sum_tiles_.count());
  const bool copies = !local_chunks_.empty();
  auto* const results = results_.begin<uint64_t>(counts + (copies ? 3 * features : 0), 0,
                                                 of_scans + (copies ? sizeof(uint64_t) : 0));
  job_.scan = scan_at(results_.work());
  job_.sum_scan = scan_at(results_.work() + of_bags);
  auto* const checked = static_cast<shardrec_cuda_checked_list*>(static_cast<void*>(results));
  if (job_.given != nullptr) job_.lengths = checked;
  job_.checked = checked + (lists - features);
  job_.counts = results + 2 * lists;
  if (!copies) return;
  local_.wrong = static_cast<shardrec_cuda_wrong_values*>(static_cast<void*>(results + counts));
  local_.ended = static_cast<uint32_t*>(static_cast<void*>(results_.work() + of_scans));
  local_.good = job_.lengths_are_good + 1;
}

void IdRouting::enqueue_counting() {
  begin_results();
  require(table().count_ids(stream_->handle(), &job_), "count the ids of a batch on device ",
          stream_->device());
}

void IdRouting::copy_local(std::span<const RoutedIds> features, size_t blocks,
                           const GivenLengths& lengths, const LocalIds& to) {
  local_chunks_.clear();
  for (const LocalChunks& chunks : to.chunks) {
    local_chunks_.push_back(
        {.rows = chunks.rows, .ids = chunks.ids, .batch_ids = chunks.batch_ids});
  }
  local_.ids = to.ids;
  local_.weights = to.weights;
  measure(features, blocks);
  send(features, {}, lengths);
  begin_results();
  require(table().copy_local_ids(stream_->handle(), &job_, &local_),
          "copy the ids of a batch on device ", stream_->device());
  results_.send();
}

std::span<const shardrec_cuda_checked_list> IdRouting::found_lengths() {
  const void* const found = results_.get<uint64_t>().data();
  return {static_cast<const shardrec_cuda_checked_list*>(found), counted_.size()};
}

std::span<const shardrec_cuda_wrong_values> IdRouting::wrong_values() {
  const size_t features = counted_.size();
  const void* const wrong = results_.get<uint64_t>().last(3 * features).data();
  return {static_cast<const shardrec_cuda_wrong_values*>(wrong), features};
}

void IdRouting::count(std::span<const RoutedIds> features, std::span<CheckedIds> checked,
                      std::span<BlockCount> counts) {
  measure(features, counts.size());
  send(features, {});
  enqueue_counting();
  take_results(results_.fetch<uint64_t>(), checked, counts);
}

std::span<const shardrec_cuda_checked_list> IdRouting::read_and_count(
    std::span<const RoutedIds> features, size_t blocks, const GivenLengths& lengths) {
  recount(features, blocks, lengths);
  results_.send();
  return found_lengths();
}

void IdRouting::recount(std::span<const RoutedIds> features, size_t blocks,
                        const GivenLengths& lengths) {
  measure(features, blocks);
  send(features, {}, lengths);
  enqueue_counting();
}

void IdRouting::set_counted(std::span<const RoutedIds> features) {
  for (size_t f = 0; f < features.size(); ++f) counted_[f].feature = features[f];
}

void IdRouting::finish_count(std::span<const RoutedIds> features, std::span<CheckedIds> checked,
                             std::span<BlockCount> counts) {
  set_counted(features);
  take_results(results_.get<uint64_t>().subspan(2 * features.size()), checked, counts);
}

// found: in the ids, and what each block gets.
void IdRouting::take_results(std::span<const uint64_t> found, std::span<CheckedIds> checked,
                             std::span<BlockCount> counts) {
  for (size_t f = 0; f < counted_.size(); ++f) {
    const RoutedIds& feature = counted_[f].feature;
    const uint64_t wrong = found[2 * f];
    checked[f] = {};
    checked[f].out_of_range = static_cast<int64_t>(found[2 * f + 1]);
    if (wrong == 0) continue;
    const int64_t position = feature.first + first_wrong(wrong);
    checked[f].wrong.position = position;
    checked[f].wrong.value =
        local_chunks_.empty() ? wrong_values_.of(feature.ids, position) : wrong_values()[f].id;
  }
  const auto of_blocks = found.subspan(2 * counted_.size());
  for (size_t b = 0; b < counts.size(); ++b) {
    counts[b] = {.ids = static_cast<uint32_t>(of_blocks[b]),
                 .bags = static_cast<uint32_t>(of_blocks[b] >> 32)};
  }
}

void IdRouting::write(std::span<const RoutedIds> features, const WrittenBlocks& blocks) {
  if (!are_counted(features, blocks.blocks())) {
    measure(features, blocks.blocks());
    send(features, {});
    enqueue_counting();
  }
  send(features, blocks);
  require(table().write_ids(stream_->handle(), &job_), "write the ids of a batch on device ",
          stream_->device());
}

}  // namespace shardrec::compute::cuda::host
