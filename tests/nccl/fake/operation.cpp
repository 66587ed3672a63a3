#include "operation.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>

#include "elements.h"
#include "emulated.h"
#include "knobs.h"
#include "order.h"

namespace fake_nccl {
namespace {

constexpr int kGarbage = 0xA5;
constexpr int kAll = -1;    // Place::to of a collective
constexpr int kOrder = -2;  // and of a rank's operations

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

size_t Collective::bytes_in(int ranks) const {
  const size_t each = count * bytes_of_element(dtype);
  return kind == Kind::kReduceScatter ? each * static_cast<size_t>(ranks) : each;
}

Operation::Operation(Communicator& of, int64_t in_stream) : communicator(of), stream(in_stream) {
  communicator.hold();
  live.fetch_add(1);
}

Operation::~Operation() {
  live.fetch_sub(1);
  communicator.let_go();
}

size_t Operation::bytes() const {
  size_t all = 0;
  for (const Send& send : sends) all += aligned(send.bytes);
  for (const Collective& collective : collectives) {
    all += aligned(collective.bytes_in(communicator.place.size));
  }
  return all;
}

bool Operation::enqueue(Operation* operation) {
#define FAKE_NCCL_STEP(member) [](void* it) { static_cast<Operation*>(it)->member(); }
  const simt_step steps[] = {{FAKE_NCCL_STEP(wait_for_turn), 0},
                             {FAKE_NCCL_STEP(stage), 1},
                             {FAKE_NCCL_STEP(wait_for_peers), 0},
                             {FAKE_NCCL_STEP(deliver), 1},
                             {FAKE_NCCL_STEP(finish), 0}};
#undef FAKE_NCCL_STEP
  return simt::emulated()->enqueue_steps(operation->stream, steps,
                                         static_cast<int>(std::size(steps)), operation) == 0;
}

// Operations of a communicator are carried out in the order of calls, whatever their streams are.
void Operation::wait_for_turn() {
  const int rank = communicator.place.rank;
  if (!communicator.wait_until([&] { return communicator.done() == number - 1; })) return;
  acquire_place({communicator.place.number, rank, kOrder, 0});
  const bool fails = knobs().async_error.is(rank, number);
  if (fails) communicator.set_error(shardrec::comm::nccl::kRemoteError);
  if (fails || knobs().hang.is(rank, number)) {
    communicator.wait_until([] { return false; });
    return;
  }
  if (bytes() == 0) {
    has_room_ = true;
    return;
  }
  uint64_t offset = 0;
  // What there is to be read is asked for when this operation is gone.
  const auto shared = std::make_shared<std::vector<std::function<bool()>>>();
  SharedState& state = communicator.segment().state();
  for (const Send& send : sends) {
    const MessageSlot& slot = state.sends[rank][send.peer][send.number % kSlots];
    shared->push_back([&slot, number = send.number] { return slot.read.load() >= number; });
  }
  for (const Collective& collective : collectives) {
    const CollectiveSlot& slot = state.collectives[rank][collective.number % kSlots];
    const auto size = static_cast<uint32_t>(communicator.place.size);
    shared->push_back([&slot, size, number = collective.number] {
      return slot.number.load() > number || slot.readers.load() == size;
    });
  }
  const auto is_read = [shared] {
    return std::all_of(shared->begin(), shared->end(), [](const auto& is) { return is(); });
  };
  has_room_ = communicator.wait_until(
      [&] { return communicator.arena().reserve(bytes(), is_read, offset); });
  for (Send& send : sends) {
    send.offset = offset;
    offset += aligned(send.bytes);
  }
  for (Collective& collective : collectives) {
    collective.offset = offset;
    offset += aligned(collective.bytes_in(communicator.place.size));
  }
}

void Operation::stage() {
  if (!has_room_) return;
  const int rank = communicator.place.rank;
  const uint64_t name = communicator.place.number;
  SharedState& state = communicator.segment().state();
  std::byte* const arena = communicator.segment().arena(rank);
  for (const Send& send : sends) {
    std::memcpy(arena + send.offset, send.data, send.bytes);
    MessageSlot& slot = state.sends[rank][send.peer][send.number % kSlots];
    slot.offset = send.offset;
    release_place({name, rank, send.peer, send.number});
    slot.staged.store(send.number);
  }
  for (const Receive& receive : receives) {
    state.receives[rank][receive.peer][receive.number % kSlots].staged.store(receive.number);
  }
  for (const Collective& collective : collectives) {
    std::memcpy(arena + collective.offset, collective.in,
                collective.bytes_in(communicator.place.size));
    CollectiveSlot& slot = state.collectives[rank][collective.number % kSlots];
    slot.offset = collective.offset;
    release_place({name, rank, kAll, collective.number});
    slot.staged.store(collective.number);
  }
  is_staged_ = true;
  communicator.segment().notify();
}

bool Operation::peers_are_there() const {
  const int rank = communicator.place.rank;
  const SharedState& state = communicator.segment().state();
  for (const Receive& receive : receives) {
    const auto& slot = state.sends[receive.peer][rank][receive.number % kSlots];
    if (slot.staged.load() < receive.number) return false;
  }
  for (const Send& send : sends) {
    const auto& slot = state.receives[send.peer][rank][send.number % kSlots];
    if (send.bytes > kEagerBytes && slot.staged.load() < send.number) return false;
  }
  for (const Collective& collective : collectives) {
    for (int peer = 0; peer < communicator.place.size; ++peer) {
      const auto& slot = state.collectives[peer][collective.number % kSlots];
      if (slot.staged.load() < collective.number) return false;
    }
  }
  return true;
}

void Operation::wait_for_peers() {
  is_complete_ = is_staged_ && communicator.wait_until([this] { return peers_are_there(); });
}

void Operation::deliver() {
  if (!is_complete_) {
    fill_with_garbage();
    return;
  }
  for (const Receive& receive : receives) copy_message(receive);
  for (const Collective& collective : collectives) copy_collective(collective);
  communicator.segment().notify();
}

void Operation::copy_message(const Receive& receive) {
  const int rank = communicator.place.rank;
  SharedState& state = communicator.segment().state();
  MessageSlot& slot = state.sends[receive.peer][rank][receive.number % kSlots];
  acquire_place({communicator.place.number, receive.peer, rank, receive.number});
  const std::byte* const from = communicator.segment().arena(receive.peer) + slot.offset;
  std::memcpy(receive.data, from, std::min<size_t>(receive.bytes, slot.bytes));
  slot.read.store(receive.number);
}

void Operation::copy_collective(const Collective& collective) {
  const int size = communicator.place.size;
  SharedState& state = communicator.segment().state();
  const size_t bytes = collective.count * bytes_of_element(collective.dtype);
  std::vector<std::byte> sum(collective.kind == Kind::kAllGather ? 0 : bytes);
  for (int peer = size; peer-- > 0;) {
    CollectiveSlot& slot = state.collectives[peer][collective.number % kSlots];
    acquire_place({communicator.place.number, peer, kAll, collective.number});
    const std::byte* from = communicator.segment().arena(peer) + slot.offset;
    if (collective.kind == Kind::kAllGather) {
      std::memcpy(static_cast<std::byte*>(collective.out) + static_cast<size_t>(peer) * bytes, from,
                  bytes);
    } else {
      if (collective.kind == Kind::kReduceScatter) {
        from += static_cast<size_t>(communicator.place.rank) * bytes;
      }
      if (peer == size - 1) {
        std::copy_n(from, bytes, sum.begin());
      } else {
        reduce(collective.dtype, collective.reduction, sum.data(), from, collective.count);
      }
    }
    slot.readers.fetch_add(1);
  }
  if (collective.kind == Kind::kAllGather) return;
  if (collective.reduction == SHARDREC_NCCL_AVG) {
    divide(collective.dtype, sum.data(), collective.count, size);
  }
  std::memcpy(collective.out, sum.data(), bytes);
}

void Operation::fill_with_garbage() {
  for (const Receive& receive : receives) std::memset(receive.data, kGarbage, receive.bytes);
  for (const Collective& collective : collectives) {
    const size_t each = collective.count * bytes_of_element(collective.dtype);
    const auto size = static_cast<size_t>(communicator.place.size);
    std::memset(collective.out, kGarbage, collective.kind == Kind::kAllGather ? each * size : each);
  }
}

void Operation::finish() {
  release_place({communicator.place.number, communicator.place.rank, kOrder, 0});
  communicator.add_done();
  communicator.segment().notify();
  delete this;
}

}  // namespace fake_nccl
