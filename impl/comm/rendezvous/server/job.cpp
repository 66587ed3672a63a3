#include "comm/rendezvous/server/job.h"

#include <algorithm>

#include "comm/rendezvous/protocol/layout.h"
#include "core/error.h"

namespace shardrec::comm::rendezvous {

using core::sentence;

template <class Message>
void Job::tell_all(const Message& message, int but) {
  const Bytes frame = framed(message);
  for (int rank = 0; rank < size(); ++rank) {
    if (rank != but && is_present(rank)) connections_.send(rank, frame);
  }
}

std::optional<Refused> Job::join(const Join& join, Time now) {
  if (failure_) return failure_;
  if (join.rank >= join.size) {
    return Refused{.status = SHARDREC_INVALID_ARGUMENT,
                   .rank = join.rank,
                   .text = sentence("rank ", join.rank, " joined a group of ", join.size,
                                    " ranks; 0 to ", join.size - 1, " is accepted")};
  }
  if (formed_) {
    return Refused{.status = SHARDREC_INVALID_STATE,
                   .rank = join.rank,
                   .complete = true,
                   .text = sentence("the group of this token has had its ", size(),
                                    " ranks; a new group needs a new rendezvous")};
  }
  if (members_.empty()) members_.resize(static_cast<size_t>(join.size));
  if (join.size != size()) {
    const auto other = std::find_if(members_.begin(), members_.end(),
                                    [](const Member& one) { return one.state == State::kPresent; });
    fail({.status = SHARDREC_MISMATCH,
          .rank = join.rank,
          .text = sentence("rank ", join.rank, " joined a group of ", join.size, " ranks, rank ",
                           other->said.rank, " one of ", size(),
                           "; all ranks must bring the same size")});
    return failure_;
  }
  if (is_present(join.rank)) {
    const uint64_t first = member(join.rank).said.process & 0xffffffff;
    fail({.status = SHARDREC_INVALID_STATE,
          .rank = join.rank,
          .text = sentence("rank ", join.rank, " joined twice, from the processes ", first, " and ",
                           join.process & 0xffffffff, "; each rank joins once")});
    return failure_;
  }
  member(join.rank) = {.state = State::kPresent, .said = join, .heard = now};
  ++present_;
  tell(join.rank, Accepted{.silence = silence_});
  if (present_ == size()) form();
  return std::nullopt;
}

void Job::form() {
  std::vector<Join> said;
  for (const Member& one : members_) said.push_back(one.said);
  int per_node = 1;
  try {
    per_node = ranks_per_node(said);
  } catch (const core::Error& error) {
    const auto rank = static_cast<int>(error.parts().rank.value_or(-1));
    return fail({.status = error.status(), .rank = rank, .text = error.sentence()});
  }
  formed_ = true;
  const std::vector<int> in_process = ranks_in_process(said);
  for (int rank = 0; rank < size(); ++rank) {
    tell(rank, Formed{.ranks_per_node = per_node,
                      .ranks_in_process = in_process[static_cast<size_t>(rank)]});
  }
}

void Job::fail(Refused failure) {
  failure_ = std::move(failure);
  tell_all(*failure_);
  for (int rank = 0; rank < size(); ++rank) {
    if (!is_present(rank)) continue;
    member(rank).state = State::kLeft;
    connections_.close(rank);
  }
  present_ = 0;
}

void Job::hear(int rank, const Frame& frame, Time now) {
  if (!is_present(rank)) return;
  member(rank).heard = now;
  switch (frame.kind) {
    case FrameKind::kBeat:
      read<Beat>(frame.payload);
      return;
    case FrameKind::kSet:
      return set(rank, read<Set>(frame.payload));
    case FrameKind::kGet:
      return get(rank, read<Get>(frame.payload));
    case FrameKind::kForget:
      return store_.forget(rank, read<Forget>(frame.payload).id);
    case FrameKind::kAnnounce:
      return tell_all(
          GroupState{.from = rank, .group_state = read<Announce>(frame.payload).group_state}, rank);
    case FrameKind::kGoodbye:
      read<Goodbye>(frame.payload);
      return goodbye(rank);
    default:
      core::fail(SHARDREC_CORRUPT_DATA, sentence("a rank sent the rendezvous a message of kind ",
                                                 static_cast<int>(frame.kind)));
  }
}

void Job::set(int rank, const Set& set) {
  std::vector<Store::Waiter> woken;
  const bool stored = store_.set(set.key, set.value, woken);
  tell(rank, Reply{.id = set.id, .status = stored ? SHARDREC_OK : SHARDREC_OUT_OF_MEMORY});
  for (const Store::Waiter& waiter : woken) {
    if (is_present(waiter.rank)) tell(waiter.rank, Reply{.id = waiter.id, .value = set.value});
  }
}

void Job::get(int rank, const Get& get) {
  bool noted = false;
  const Bytes* value = store_.get(get.key, {.rank = rank, .id = get.id}, noted);
  if (value != nullptr) return tell(rank, Reply{.id = get.id, .value = *value});
  if (!noted) tell(rank, Reply{.id = get.id, .status = SHARDREC_OUT_OF_MEMORY});
}

void Job::goodbye(int rank) {
  if (!formed_) {
    return fail({.status = SHARDREC_TIMEOUT,
                 .rank = first_missing(),
                 .text = sentence("rank ", rank, " waits no longer for the group to form; ",
                                  missing_ranks())});
  }
  member(rank).state = State::kLeft;
  --present_;
  store_.forget_all(rank);
  connections_.close(rank);
  tell_all(Left{.rank = rank});
}

void Job::broken(int rank, const std::string& how) {
  if (is_present(rank)) lose(rank, sentence("its connection to the rendezvous ended: ", how));
}

void Job::lose(int rank, const std::string& how) {
  member(rank).state = State::kLost;
  --present_;
  store_.forget_all(rank);
  if (!formed_) {
    return fail({.status = SHARDREC_PEER_FAILED,
                 .rank = rank,
                 .text = sentence("rank ", rank, " was lost before the group had formed: ", how)});
  }
  tell_all(Lost{.rank = rank, .how = how});
}

int Job::first_missing() const {
  const auto first = std::find_if(members_.begin(), members_.end(),
                                  [](const Member& one) { return one.state == State::kAbsent; });
  return static_cast<int>(first - members_.begin());
}

std::string Job::missing_ranks() const {
  std::vector<int> lowest;
  int count = 0;
  for (int rank = 0; rank < size(); ++rank) {
    if (members_[static_cast<size_t>(rank)].state != State::kAbsent) continue;
    ++count;
    if (lowest.size() < Waiting::kMostNamed) lowest.push_back(rank);
  }
  return sentence(name_ranks(lowest, count), " of ", size(), count == 1 ? " has" : " have",
                  " not come");
}

void Job::beat(Time now, uint32_t turned_away) {
  for (int rank = 0; rank < size(); ++rank) {
    if (!is_present(rank) || now - member(rank).heard <= silence_) continue;
    const std::string how = sentence("nothing was heard of it for ", silence_.count(), " ms");
    // It may live, and only be late: then it learns why the others go on without it.
    tell(rank, Lost{.rank = rank, .how = how});
    connections_.close(rank);
    lose(rank, how);
  }
  if (present_ == 0) return;
  if (formed_) return tell_all(Beat{});
  Waiting waiting{.joined = present_, .turned_away = turned_away};
  for (int rank = 0; rank < size() && waiting.missing.size() < Waiting::kMostNamed; ++rank) {
    if (!is_present(rank)) waiting.missing.push_back(rank);
  }
  tell_all(waiting);
}

void Job::end() {
  if (!formed_ && !failure_ && present_ > 0) {
    return fail({.status = SHARDREC_PEER_FAILED,
                 .rank = 0,
                 .text = sentence("the rendezvous, in rank 0's process as a rule, ended before the "
                                  "group had formed; ",
                                  missing_ranks())});
  }
  tell_all(End{});
  for (int rank = 0; rank < size(); ++rank) {
    if (!is_present(rank)) continue;
    member(rank).state = State::kLeft;
    connections_.close(rank);
  }
  present_ = 0;
}

void Job::give_up(const std::string& why) {
  if (formed_ || failure_) return;
  fail({.status = SHARDREC_PEER_FAILED,
        .rank = 0,
        .text =
            sentence("the rendezvous, in rank 0's process as a rule, cannot let ranks in: ", why)});
}

}  // namespace shardrec::comm::rendezvous
