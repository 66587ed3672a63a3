// The server's state of the group: which ranks have joined, which are gone, and the store. It has no
// sockets and no clock: its inputs are the time and the frames of ranks that have proved to know the
// secret, its outputs are frames for ranks.
//
// The group forms when every rank has joined once, all with the same size. Until then any failure of a
// rank that has joined (it is gone, it gives up, it joins twice) ends the group for all ranks, with a
// sentence that names it. After that the other ranks are notified once of a rank that is gone.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/rendezvous/protocol/messages.h"
#include "comm/rendezvous/server/store.h"

namespace shardrec::comm::rendezvous {

// The connections to the ranks. Its functions do not call the job.
class RankConnections {
 public:
  virtual ~RankConnections() = default;
  // Frames to one rank arrive in the order of these calls.
  virtual void send(int rank, ConstBytes frame) = 0;
  // Closes the connection to a rank, to and from which no more frames are needed.
  virtual void close(int rank) = 0;
};

class Job {
 public:
  using Time = Clock::duration;  // awake time of the server (awake_clock.h)

  Job(RankConnections& connections, milliseconds silence)
      : connections_(connections), silence_(silence) {}

  // A rank asks to join. Returns why it is refused, for this rank alone.
  std::optional<Refused> join(const Join& join, Time now);
  // A frame of a rank that has joined. Throws CORRUPT_DATA; the caller then calls broken().
  void hear(int rank, const Frame& frame, Time now);
  // The connection of a rank that has joined has ended.
  void broken(int rank, const std::string& how);
  // Sends heartbeats, and regards silent ranks as lost. turned_away: how many connections had another
  // secret so far.
  void beat(Time now, uint32_t turned_away);
  // The server is about to end.
  void end();
  // The server can accept no more connections, for the reason `why`. If the group has not formed, it
  // ends for all ranks.
  void give_up(const std::string& why);

  // How many ranks have joined and have neither left nor been lost.
  int present() const noexcept { return present_; }
  bool formed() const noexcept { return formed_; }
  bool failed() const noexcept { return failure_.has_value(); }

 private:
  enum class State : uint8_t { kAbsent, kPresent, kLeft, kLost };
  struct Member {
    State state = State::kAbsent;
    Join said{};
    Time heard{};
  };

  template <class Message>
  void tell(int rank, const Message& message) {
    connections_.send(rank, framed(message));
  }
  template <class Message>
  void tell_all(const Message& message, int but = -1);
  Member& member(int rank) { return members_[static_cast<size_t>(rank)]; }
  // May be asked of any rank: of one that the job has no record of, too.
  bool is_present(int rank) const {
    return rank < size() && members_[static_cast<size_t>(rank)].state == State::kPresent;
  }
  int size() const noexcept { return static_cast<int>(members_.size()); }

  void fail(Refused failure);
  void form();
  void goodbye(int rank);
  void lose(int rank, const std::string& how);
  void set(int rank, const Set& set);
  void get(int rank, const Get& get);
  int first_missing() const;  // of a group that has not formed
  std::string missing_ranks() const;

  RankConnections& connections_;
  milliseconds silence_;
  std::vector<Member> members_;  // none before the first has joined
  int present_ = 0;
  bool formed_ = false;
  std::optional<Refused> failure_;
  Store store_;
};

}  // namespace shardrec::comm::rendezvous
