#include "compute/cuda/host/slots/slots.h"

#include <utility>

namespace shardrec::compute::cuda::host {
namespace {

int64_t words_of(const SlotShape& slot) {
  return static_cast<int64_t>(slot_index_bytes(slot) / sizeof(uint64_t));
}

}  // namespace

shardrec_cuda_slot on_device(const SlotRows& slot) {
  return {.index = slot.index,
          .gradients = slot.gradients,
          .begin = slot.begin,
          .rows = slot.rows,
          .count = slot.count,
          .width = slot.width,
          .bits = slot.bits};
}

Slots::Slots(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)),
      arguments_(stream_),
      results_(stream_),
      set_before_(make_memory(stream_)),
      room_(make_memory(stream_)) {}

void Slots::pack(std::span<const SlotPacking> slots) {
  packings_.clear();
  words_.clear();
  floats_.clear();
  for (const SlotPacking& slot : slots) {
    packings_.push_back({.rows = slot.rows,
                         .slot = on_device(SlotRows{slot.to, nullptr, slot.gradients}),
                         .index = static_cast<uint64_t*>(static_cast<void*>(slot.to.index)),
                         .gradients = slot.to.gradients});
    words_.add(words_of(slot.to));
    floats_.add(slot.to.count * slot.to.width);
  }
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_slot_packing>(packings_.size()) +
                   words_.bytes() + floats_.bytes());
  const shardrec_cuda_slot_packings job{
      .slots = arguments_.add(std::span<const shardrec_cuda_slot_packing>(packings_)),
      .words = words_.add_to(arguments_),
      .floats = floats_.add_to(arguments_)};
  arguments_.send();
  require(table().pack_slots(stream_->handle(), &job),
          "pack gradients of replicated rows on device ", stream_->device());
}

void Slots::check(std::span<const SlotRows> slots, std::span<uint8_t> good) {
  slots_.clear();
  words_.clear();
  for (const SlotRows& slot : slots) {
    slots_.push_back(on_device(slot));
    words_.add(words_of(slot));
  }
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_slot>(slots_.size()) + words_.bytes());
  const shardrec_cuda_slot_check job{
      .slots = arguments_.add(std::span<const shardrec_cuda_slot>(slots_)),
      .words = words_.add_to(arguments_),
      .findings = results_.begin<shardrec_cuda_slot_finding>(slots_.size(), 0)};
  arguments_.send();
  require(table().check_slots(stream_->handle(), &job),
          "check gradients of replicated rows on device ", stream_->device());
  const auto findings = results_.fetch<shardrec_cuda_slot_finding>();
  for (size_t s = 0; s < slots.size(); ++s) {
    const bool as_many = !slots[s].bits || findings[s].set == static_cast<uint64_t>(slots[s].count);
    good[s] = as_many && findings[s].wrong == 0 ? 1 : 0;
  }
}

void Slots::unpack(std::span<const SlotUnpacking> tables) {
  unpackings_.clear();
  words_.clear();
  shardrec_cuda_slot_unpackings job = {};
  for (const SlotUnpacking& table : tables) {
    int64_t at = 0;
    for (const SlotRows& slot : table.slots) {
      unpackings_.push_back({.slot = on_device(slot),
                             .rows = table.rows + at,
                             .gradients = table.gradients + at,
                             .first_word = job.words});
      words_.add(slot.bits ? words_of(slot) : slot.count);
      if (slot.bits) job.words += words_of(slot);
      at += slot.count;
    }
  }
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_slot_unpacking>(unpackings_.size()) +
                   words_.bytes());
  job.slots = arguments_.add(std::span<const shardrec_cuda_slot_unpacking>(unpackings_));
  job.items = words_.add_to(arguments_);
  job.set_before = set_before_.resize_as<uint32_t>(static_cast<size_t>(job.words)).data();
  arguments_.send();
  const auto unpack = [&] {
    require(host::table().unpack_slots(stream_->handle(), &job),
            "unpack gradients of replicated rows on device ", stream_->device());
  };
  unpack();  // how much room it takes
  job.room = room_.resize(job.room_bytes);
  unpack();
}

}  // namespace shardrec::compute::cuda::host
