// The one thread of the process that calls MPI. It sleeps while nothing is under way (and looks for
// frames a hundred times a second while a transport is open); while something is, it asks MPI
// again and again: at once for a while, then after ever longer naps, since ranks may outnumber
// processors. (Yielding instead gives whole slices of time to whatever else runs.)
//
// When MPI returns an error, or does not let go of memory that was given up, the engine breaks: it
// never calls MPI again, so that this memory is safe, and everything fails.
//
// Where memory runs out on the engine's thread, the engine breaks too. Giving up a message, closing
// a transport and ending MPI need no memory.
//
// Thread rule: any thread. Never destroyed: threads may be inside while the process ends.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/mpi/deliveries.h"
#include "comm/mpi/message.h"
#include "comm/mpi/wire.h"
#include "comm/plugin/plugin_side.h"

namespace shardrec::comm::mpi_plugin {

class Engine final : private WireListener {
 public:
  Engine() = default;
  static Engine& instance();

  // Starts MPI where nobody has. The transport is told (started or failed, hellos, group states,
  // requests that ended) from the engine's thread until close() has returned true. Returns its
  // number: equal on all ranks, since all open theirs in the same order.
  uint32_t open(Transport& transport);
  // Gives up what is under way. False: the engine is stuck inside MPI, and may use it still.
  bool close(Transport& transport) noexcept;

  void send(std::unique_ptr<Frame> frame);
  void begin(Request& request);
  void give_up(Request& request) noexcept;
  // Around a wait for a message: where nobody waits, the thread leaves the processor to others.
  void begin_wait() noexcept;
  void end_wait() noexcept { waiting_.fetch_sub(1); }
  void break_off(std::string_view why) noexcept;
  // A communicator has failed: MPI_Finalize at the end of the process is not waited for without
  // end.
  void expect_no_orderly_end() noexcept { orderly_.store(false); }

 private:
  struct Command {
    enum class Kind : uint8_t { kOpen, kSend, kBegin };
    Kind kind;
    Transport* transport = nullptr;
    Request* request = nullptr;
    std::unique_ptr<Frame> frame{};
  };
  struct EarlyFrame {
    int from;
    FrameHead head;
    std::vector<std::byte> message;
  };

  void push(Command command);
  void run() noexcept;
  bool execute();
  void execute(Command& command);
  void start_request(Request& request);
  void give_up_request(Request& request);
  void end_broken(Request& request) noexcept;
  void open_exchange(Transport& transport);
  void start_closing();
  void finish_closing();
  void go_quiet();
  void fail_everything() noexcept;
  void nap(plugin::Clock::time_point since);
  bool something_under_way() const noexcept;
  void finish() noexcept;
  void wait_for_finish() noexcept;

  void delivered(int from, const FrameHead& head, std::span<const std::byte> message) override;
  void moved(Request& request) override;
  void drained(int peer, uint32_t lane) override;

  std::mutex mutex_;
  std::condition_variable pushed_;
  std::condition_variable let_go_;
  std::vector<Command> commands_;
  Request* to_give_up_ = nullptr;  // a list, by Request::next_to_give_up
  std::atomic<bool> has_commands_{false};
  std::atomic<int> waiting_{0};
  bool asleep_ = false;
  bool thread_started_ = false;
  bool finish_asked_ = false;
  bool finished_ = false;
  uint32_t opened_ = 0;
  struct Closing {
    Transport* transport;
    plugin::Clock::time_point flush_by;
    bool begun = false;
  };
  // Has room for every open transport.
  std::vector<Closing> closing_;
  size_t open_ = 0;
  std::atomic<bool> has_closing_{false};
  std::atomic<bool> broken_{false};
  std::string why_broken_;  // set before broken_
  std::atomic<bool> orderly_{true};

  // Of the thread.
  std::vector<Command> taken_;
  Wire wire_;
  Lanes lanes_;
  std::map<uint32_t, std::unique_ptr<Deliveries>> deliveries_;
  std::vector<EarlyFrame> early_;
  uint32_t seen_ = 0;  // transports opened so far
};

}  // namespace shardrec::comm::mpi_plugin
