// What ranks have enqueued, compared: each rank looks at what its peers have said of theirs.
#include <iterator>

#include "communicator.h"
#include "knobs.h"

namespace fake_nccl {

void Communicator::check_matches() {
  for (auto mine = unmatched_.begin(); mine != unmatched_.end();) {
    mine = is_settled(*mine) ? unmatched_.erase(mine) : std::next(mine);
  }
}

// True: the peer has enqueued what belongs to it, and it need not be looked at again.
bool Communicator::is_settled(Unmatched& mine) {
  const SharedState& state = segment_.state();
  const uint64_t at = mine.number % kSlots;
  uint64_t number = 0;
  uint64_t sequence = 0;
  if (mine.what == Unmatched::What::kCollective) {
    const CollectiveSlot& theirs = state.collectives[mine.peer][at];
    number = theirs.number.load();
    sequence = theirs.sequence;
    if (number == mine.number) check_collective(mine, theirs);
  } else {
    const bool sends = mine.what == Unmatched::What::kSend;
    const MessageSlot& theirs =
        sends ? state.receives[mine.peer][place.rank][at] : state.sends[mine.peer][place.rank][at];
    number = theirs.number.load();
    sequence = theirs.sequence;
    if (number == mine.number) check_message(mine, theirs);
  }
  if (number < mine.number) {
    if (!mine.reported && waits_for_another(mine)) {
      mine.reported = true;
      violation("ranks %d and %d call different operations of a communicator", place.rank,
                mine.peer);
    }
    return false;
  }
  if (number == mine.number && mine.peer != place.rank) check_order(mine, sequence);
  return true;
}

void Communicator::check_collective(const Unmatched& mine, const CollectiveSlot& theirs) const {
  const int me = place.rank;
  const auto number = static_cast<unsigned long long>(mine.number);
  if (mine.kind != theirs.kind) {
    violation("collective %llu is %s on rank %d, %s on rank %d", number, name_of(mine.kind), me,
              name_of(theirs.kind), mine.peer);
  } else if (mine.count != theirs.count || mine.dtype != theirs.dtype ||
             mine.reduction != theirs.reduction) {
    violation(
        "collective %llu has count %llu, type %d, reduction %d on rank %d, and %llu, %d, %d on "
        "rank %d",
        number, static_cast<unsigned long long>(mine.count), mine.dtype, mine.reduction, me,
        static_cast<unsigned long long>(theirs.count), theirs.dtype, theirs.reduction, mine.peer);
  } else if (!mine.reported && (mine.messages_to != theirs.messages_from[me] ||
                                mine.messages_from != theirs.messages_to[me])) {
    violation("ranks %d and %d have other messages between them before collective %llu", me,
              mine.peer, number);
  }
}

void Communicator::check_message(const Unmatched& mine, const MessageSlot& theirs) const {
  const bool sends = mine.what == Unmatched::What::kSend;
  if (mine.bytes != theirs.bytes) {
    const auto sent = static_cast<unsigned long long>(sends ? mine.bytes : theirs.bytes);
    const auto received = static_cast<unsigned long long>(sends ? theirs.bytes : mine.bytes);
    violation("rank %d sends %llu bytes, rank %d receives %llu", sends ? place.rank : mine.peer,
              sent, sends ? mine.peer : place.rank, received);
  } else if (!mine.reported && mine.collectives != theirs.collectives) {
    violation("ranks %d and %d have other collectives before a message between them", place.rank,
              mine.peer);
  }
}

void Communicator::check_order(const Unmatched& mine, uint64_t their_sequence) {
  const uint64_t peer = segment_.state().ranks[mine.peer].issuer.load();
  if (issuer.match(peer, mine.sequence, their_sequence)) return;
  violation("ranks %d and %d call their communicators in different orders", place.rank, mine.peer);
}

// Has the peer enqueued, of the same communicator, what waits for something that is called here later?
bool Communicator::waits_for_another(const Unmatched& mine) const {
  const SharedState& state = segment_.state();
  if (mine.what != Unmatched::What::kCollective) {
    const CollectiveSlot& next = state.collectives[mine.peer][(mine.collectives + 1) % kSlots];
    if (next.number.load() != mine.collectives + 1) return false;
    return mine.what == Unmatched::What::kSend ? next.messages_from[place.rank] < mine.number
                                               : next.messages_to[place.rank] < mine.number;
  }
  const uint64_t to = mine.messages_to + 1;
  const MessageSlot& receive = state.receives[mine.peer][place.rank][to % kSlots];
  if (receive.number.load() == to && receive.collectives < mine.number) return true;
  const uint64_t from = mine.messages_from + 1;
  const MessageSlot& send = state.sends[mine.peer][place.rank][from % kSlots];
  return send.number.load() == from && send.collectives < mine.number;
}

}  // namespace fake_nccl
