// One rank's end of a channel of the `local` engine: Rings plus waiting, deadlines and failures.
// Outlives the communicator it was opened on; destroying it releases whatever this rank has not
// released and leaves what it has posted readable.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "comm/communicator.h"
#include "comm/local/group.h"
#include "comm/local/rings.h"
#include "comm/local/wake_up.h"
#include "core/function_ref.h"

namespace shardrec::comm::local {

class LocalChannel final : public Channel {
 public:
  LocalChannel(std::shared_ptr<Group> group, int rank);
  ~LocalChannel() override;
  // Once, before anything else: a channel that was opened is always attached, so that a rank whose
  // memory runs out has opened none.
  void attach(Group::Opened opened) noexcept;
  LocalChannel(const LocalChannel&) = delete;
  LocalChannel& operator=(const LocalChannel&) = delete;

  Ticket post(const Operation& operation, std::span<const ConstBytes> send,
              std::shared_ptr<const void> keep_alive) override;
  void receive(Ticket ticket, std::span<ConstBytes> received) override;
  bool has_arrived(Ticket ticket) noexcept override;
  void release(Ticket ticket) noexcept override;
  void reclaim(Ticket ticket) override;

 private:
  // One wait: until done() holds. late(r) tells that done() does not hold yet because of rank r.
  struct Wait {
    WaitFor wait_for;
    CallSite site;
    const Operation& operation;
    core::FunctionRef<bool()> done;
    core::FunctionRef<bool(int)> late;
  };
  void wait(const Wait& wait);
  bool must_look(const Wait& wait) const;
  bool cannot_arrive(const Wait& wait, int rank) const;
  int first_late(const Wait& wait) const;
  [[noreturn]] void fail_cannot_arrive(const Wait& wait, int failed_rank);
  [[noreturn]] void fail_late(const Wait& wait, int failed_rank, double seconds);
  void warn(const Wait& wait, double seconds) const;

  // Throws when the group is dead or this rank is no member any more.
  void check(const CallSite& site) const;
  // Throws where a rank has published the exchange as something else than this one.
  void compare(uint64_t sequence);
  std::optional<Cause> difference(int left, int right, uint64_t sequence) const;
  bool keeps(Ticket ticket) const noexcept;
  const Operation& own_operation(Ticket ticket, const char* call) const;

  const std::shared_ptr<Group> group_;
  const int rank_;
  uint64_t number_ = 0;
  std::shared_ptr<Rings> rings_;
  uint64_t next_ = 0;  // sequence number of the next post
};

}  // namespace shardrec::comm::local
