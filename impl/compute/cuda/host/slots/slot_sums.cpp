#include "compute/cuda/host/slots/slot_sums.h"

#include <algorithm>
#include <utility>

#include "compute/cuda/host/slots/slots.h"
#include "core/error.h"

namespace shardrec::compute::cuda::host {
namespace {

void require_ranks(size_t ranks) {
  if (ranks <= SHARDREC_CUDA_SUM_RANKS) return;
  core::fail(SHARDREC_UNSUPPORTED,
             core::sentence("gradients of replicated rows are added up on devices over at most ",
                            SHARDREC_CUDA_SUM_RANKS, " ranks, not over ", ranks),
             {.value = static_cast<int64_t>(ranks), .limit = SHARDREC_CUDA_SUM_RANKS});
}

}  // namespace

SlotSums::SlotSums(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)),
      arguments_(stream_),
      results_(stream_),
      marks_(make_memory(stream_)),
      room_(make_memory(stream_)) {}

void SlotSums::count(std::span<const SlotSum> sums, std::span<int64_t> rows) {
  list(sums);
  shardrec_cuda_slot_sums job = send();
  job.counts = results_.begin<unsigned long long>(sums.size(), 0);
  require(table().count_slot_sums(stream_->handle(), &job), "count rows of sums on device ",
          stream_->device());
  const auto counts = results_.fetch<unsigned long long>();
  std::copy(counts.begin(), counts.end(), rows.begin());
}

void SlotSums::add(std::span<const SlotSum> sums) {
  list(sums);
  shardrec_cuda_slot_sums job = send();
  job.marks = marks_.resize_as<uint32_t>(static_cast<size_t>(all_items_) + 1).data();
  const auto add = [&] {
    require(table().add_slots(stream_->handle(), &job),
            "add gradients of replicated rows on device ", stream_->device());
  };
  add();  // how much room it takes
  job.room = room_.resize(job.room_bytes);
  add();
}

void SlotSums::list(std::span<const SlotSum> sums) {
  addends_.clear();
  sums_.clear();
  lists_.clear();
  items_.clear();
  rows_.clear();
  all_items_ = 0;
  most_ranks_ = 0;
  for (const SlotSum& sum : sums) list_rows_of(sum);
}

void SlotSums::list_rows_of(const SlotSum& sum) {
  require_ranks(sum.addends.size());
  most_ranks_ = std::max(most_ranks_, static_cast<int32_t>(sum.addends.size()));
  const SlotRows& first = sum.addends.front();
  // Of a sum that is counted only, nothing but its form is known.
  shardrec_cuda_slot to = on_device(SlotRows{sum.to, sum.to.index, sum.to.gradients});
  to.begin = first.begin;
  to.rows = first.rows;
  to.bits = first.bits;
  sums_.push_back({.ranks = static_cast<int32_t>(sum.addends.size()),
                   .first_list = std::ssize(lists_),
                   .to = to,
                   .index = sum.to.index,
                   .gradients = sum.to.gradients});
  const auto add_list = [&](size_t rank, int64_t items) {
    lists_.push_back({.sum = static_cast<int32_t>(sums_.size() - 1),
                      .rank = static_cast<int32_t>(rank),
                      .items = items,
                      .first_item = all_items_});
    items_.add(items);
    all_items_ += items;
  };
  const auto words = static_cast<int64_t>(slot_index_bytes(first) / sizeof(uint64_t));
  for (size_t rank = 0; rank < sum.addends.size(); ++rank) {
    addends_.push_back(on_device(sum.addends[rank]));
    add_list(rank, first.bits ? words : sum.addends[rank].count);
  }
  if (first.bits) add_list(sum.addends.size(), words);
  rows_.add(sum.to.count);
}

shardrec_cuda_slot_sums SlotSums::send() {
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_slot>(addends_.size()) +
                   Arguments::bytes_of<shardrec_cuda_slot_sum>(sums_.size()) +
                   Arguments::bytes_of<shardrec_cuda_slot_list>(lists_.size()) + items_.bytes() +
                   rows_.bytes());
  const shardrec_cuda_slot* addends = arguments_.add(std::span<const shardrec_cuda_slot>(addends_));
  for (shardrec_cuda_slot_sum& sum : sums_) {
    sum.addends = addends;
    addends += sum.ranks;
  }
  const shardrec_cuda_slot_sums job{
      .sums = arguments_.add(std::span<const shardrec_cuda_slot_sum>(sums_)),
      .lists = arguments_.add(std::span<const shardrec_cuda_slot_list>(lists_)),
      .items = items_.add_to(arguments_),
      .all_items = all_items_,
      .rows = rows_.add_to(arguments_),
      .most_ranks = most_ranks_};
  arguments_.send();
  return job;
}

RowSumTotals::RowSumTotals(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), arguments_(stream_) {}

void RowSumTotals::add(std::span<const RowTotals> shards) {
  addends_.clear();
  totals_.clear();
  values_.clear();
  for (const RowTotals& shard : shards) {
    for (const RowAddend& addend : shard.addends) {
      addends_.push_back({.sums = addend.sums,
                          .stride = static_cast<int64_t>(addend.stride),
                          .first = addend.first,
                          .last = addend.last});
    }
    values_.add(shard.rows * shard.values);
  }
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_row_addend>(addends_.size()) +
                   Arguments::bytes_of<shardrec_cuda_row_total>(shards.size()) + values_.bytes());
  const shardrec_cuda_row_addend* addends =
      arguments_.add(std::span<const shardrec_cuda_row_addend>(addends_));
  for (const RowTotals& shard : shards) {
    totals_.push_back({.addends = addends,
                       .addend_count = std::ssize(shard.addends),
                       .rows = shard.rows,
                       .values = shard.values,
                       .out = shard.out});
    addends += shard.addends.size();
  }
  const shardrec_cuda_row_totals job{
      .totals = arguments_.add(std::span<const shardrec_cuda_row_total>(totals_)),
      .values = values_.add_to(arguments_)};
  arguments_.send();
  require(table().add_row_totals(stream_->handle(), &job), "add sums of rows on device ",
          stream_->device());
}

}  // namespace shardrec::compute::cuda::host
