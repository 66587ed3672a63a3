#include "communicator.h"

#include <cstdio>
#include <utility>

#include "emulated.h"
#include "knobs.h"
#include "operation.h"
#include "sanitizers.h"

namespace fake_nccl {

using namespace shardrec::comm::nccl;

namespace {

constexpr std::chrono::seconds kLongestWait(60);  // for slots: then the peers are stuck

bool is_late(int rank) {
  const int late = knobs().late_rank.load();
  return late == rank || late == -1;
}

}  // namespace

Communicator::Communicator(const Place& of, Issuer& by)
    : place(of), issuer(by), segment_(of.name, of.size), join_at_(Clock::now()) {
  polls_left_ = knobs().polls.load();
  if (is_late(place.rank)) {
    const int ms = knobs().late_ms.load();
    joins_ever_ = ms >= 0;
    join_at_ += std::chrono::milliseconds(ms);
  }
  if (!segment_.is_there()) error_ = kSystemError;
}

Communicator::~Communicator() = default;

void Communicator::hold() noexcept { holders_.fetch_add(1); }

void Communicator::let_go() noexcept {
  simt::release(this);
  if (holders_.fetch_sub(1) != 1) return;
  simt::acquire(this);
  delete this;
}

bool Communicator::is_in_progress() const {
  if (error() != kSuccess) return false;
  return phase_ == Phase::kJoining || phase_ == Phase::kFinalizing || waiting_ != nullptr;
}

bool Communicator::polled_enough() {
  if (polls_left_ <= 0) return true;
  --polls_left_;
  return false;
}

Result Communicator::poll() {
  if (error() != kSuccess) return error();
  check_matches();
  const SharedState& state = segment_.state();
  for (int peer = 0; knobs().abort_is_seen && peer < place.size; ++peer) {
    if (state.ranks[peer].aborted.load() == 0) continue;
    set_error(kRemoteError);
    return error();
  }
  switch (phase_) {
    case Phase::kJoining:
      return join();
    case Phase::kFinalizing:
      return go_on_finalizing();
    default:
      if (waiting_ == nullptr) return kSuccess;
      return polled_enough() ? issue() : kInProgress;
  }
}

Result Communicator::join() {
  RankState& own = segment_.state().ranks[place.rank];
  if (!has_joined_) {
    if (!joins_ever_ || Clock::now() < join_at_) return kInProgress;
    uint32_t nobody = 0;
    const auto size = static_cast<uint32_t>(place.size);
    if (!segment_.state().size.compare_exchange_strong(nobody, size) && nobody != size) {
      violation("ranks say that their communicator has %u and %u ranks", nobody, size);
      set_error(kInvalidUsage);
      return error();
    }
    if (own.joined.fetch_add(1) != 0) {
      violation("rank %d joined a communicator twice", place.rank);
      set_error(kInvalidUsage);
      return error();
    }
    has_joined_ = true;
    own.device = issuer.device;
    own.issuer = issuer.id;
    segment_.notify();
  }
  for (int rank = 0; rank < place.size; ++rank) {
    if (segment_.state().ranks[rank].issuer.load() == 0) return kInProgress;
  }
  segment_.forget_name();
  if (!polled_enough()) return kInProgress;
  return check_members();
}

Result Communicator::check_members() {
  const RankState* const ranks = segment_.state().ranks;
  for (int i = 0; knobs().one_rank_per_device && i < place.size; ++i) {
    for (int j = 0; j < i; ++j) {
      if (ranks[i].device.load() != ranks[j].device.load()) continue;
      std::fprintf(stderr, "fake NCCL: ranks %d and %d have one device\n", j, i);
      set_error(kInvalidUsage);
      return error();
    }
  }
  phase_ = Phase::kReady;
  return kSuccess;
}

Result Communicator::finalize() {
  phase_ = Phase::kFinalizing;
  polls_left_ = knobs().polls.load();
  return kInProgress;
}

Result Communicator::go_on_finalizing() {
  if (has_pending()) return kInProgress;
  RankState* const ranks = segment_.state().ranks;
  ranks[place.rank].finalized = 1;
  for (int rank = 0; rank < place.size; ++rank) {
    if (ranks[rank].finalized.load() == 0) return kInProgress;
  }
  if (!polled_enough()) return kInProgress;
  phase_ = Phase::kFinalized;
  return kSuccess;
}

void Communicator::end(bool in_order) noexcept {
  aborted_ = true;
  waiting_.reset();
  if (!segment_.is_there()) return;
  if (phase_ == Phase::kJoining) segment_.forget_name();
  if (!in_order) segment_.state().ranks[place.rank].aborted = 1;
  segment_.notify();
}

Result Communicator::begin(std::unique_ptr<Operation> operation) {
  if (error() != kSuccess) return error();
  if (operation->bytes() > kArenaBytes) {
    std::fprintf(stderr, "fake NCCL: %zu bytes are too many for one call\n", operation->bytes());
    return kInternalError;
  }
  waiting_ = std::move(operation);
  polls_left_ = place.blocking ? 0 : knobs().polls.load();
  return polls_left_ > 0 ? kInProgress : issue();
}

Result Communicator::issue() {
  std::unique_ptr<Operation> operation = std::move(waiting_);
  if (!wait_for_slots(*operation)) {
    std::fprintf(stderr, "fake NCCL: there are too many operations that peers do not take\n");
    set_error(kInternalError);
    return error();
  }
  publish(*operation);
  if (!Operation::enqueue(operation.get())) {
    --issued_;
    set_error(kUnhandledCudaError);
    return error();
  }
  operation.release();  // finish() deletes it
  check_matches();
  return kSuccess;
}

// The slots that the operation takes are those of others, which have to be over.
bool Communicator::wait_for_slots(const Operation& operation) {
  const auto end = Clock::now() + kLongestWait;
  SharedState& state = segment_.state();
  // The last that has to be over, for so many more; 0: none has to.
  const auto last_before = [](uint64_t number, size_t more) {
    return number + more > kSlots ? number + more - kSlots : 0;
  };
  const auto is_free = [&] {
    if (issued_ - done() > kSlots / 2) return false;
    const uint64_t collective = last_before(collectives_, operation.collectives.size());
    const auto& own = state.collectives[place.rank][collective % kSlots];
    if (collective != 0 && own.readers.load() != static_cast<uint32_t>(place.size)) return false;
    for (const Send& send : operation.sends) {
      const uint64_t number = last_before(sends_[send.peer], operation.sends.size());
      const auto& slot = state.sends[place.rank][send.peer][number % kSlots];
      if (slot.read.load() < number) return false;
    }
    return true;
  };
  return wait_until([&] { return is_free() || Clock::now() > end; }) && is_free();
}

void Communicator::publish(Operation& operation) {
  operation.number = ++issued_;
  publish_collectives(operation);
  publish_messages(operation);
  segment_.notify();
}

void Communicator::publish_collectives(Operation& operation) {
  for (Collective& collective : operation.collectives) {
    collective.number = ++collectives_;
    CollectiveSlot& slot = segment_.state().collectives[place.rank][collective.number % kSlots];
    slot.kind = collective.kind;
    slot.dtype = collective.dtype;
    slot.reduction = collective.reduction;
    slot.count = collective.count;
    slot.sequence = operation.sequence;
    slot.readers = 0;
    for (int peer = 0; peer < place.size; ++peer) {
      slot.messages_to[peer] = sends_[peer];
      slot.messages_from[peer] = receives_[peer];
      if (peer == place.rank) continue;
      unmatched_.push_back({.what = Unmatched::What::kCollective,
                            .peer = peer,
                            .number = collective.number,
                            .sequence = operation.sequence,
                            .kind = collective.kind,
                            .dtype = collective.dtype,
                            .reduction = collective.reduction,
                            .count = collective.count,
                            .messages_to = sends_[peer],
                            .messages_from = receives_[peer]});
    }
    slot.number.store(collective.number);
  }
}

void Communicator::publish_messages(Operation& operation) {
  SharedState& state = segment_.state();
  const auto fill = [&](MessageSlot& slot, Unmatched::What what, const auto& message) {
    slot.bytes = message.bytes;
    slot.sequence = operation.sequence;
    slot.collectives = collectives_;
    slot.number.store(message.number);
    unmatched_.push_back({.what = what,
                          .peer = message.peer,
                          .number = message.number,
                          .sequence = operation.sequence,
                          .bytes = message.bytes,
                          .collectives = collectives_});
  };
  for (Send& send : operation.sends) {
    send.number = ++sends_[send.peer];
    fill(state.sends[place.rank][send.peer][send.number % kSlots], Unmatched::What::kSend, send);
  }
  for (Receive& receive : operation.receives) {
    receive.number = ++receives_[receive.peer];
    fill(state.receives[place.rank][receive.peer][receive.number % kSlots],
         Unmatched::What::kReceive, receive);
  }
}

}  // namespace fake_nccl
