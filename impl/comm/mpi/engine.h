// The one thread of the process that calls MPI. While nothing is under way it sleeps, and polls for
// frames a hundred times a second if a transport is open. While something is under way it polls MPI:
// first without a pause, then after longer and longer naps, because ranks may outnumber processors.
// (To yield instead would give whole time slices to other threads.)
//
// If MPI returns an error, or does not give back the memory of a cancelled message, the engine breaks:
// it never calls MPI again, so that this memory is safe, and every request fails.
//
// If memory runs out on the engine's thread, the engine breaks too. To cancel a message, to close a
// transport and to end MPI need no memory.
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

  // Starts MPI unless the host has. Until close() has returned true, the engine's thread notifies the
  // transport: it has started or failed, a hello or a group state has arrived, a request has ended.
  // Returns the number of the transport. It is equal on all ranks, because all open their transports
  // in the same order.
  uint32_t open(Transport& transport);
  // Cancels what is under way. Returns false if the engine is stuck inside MPI and may still use the
  // transport.
  bool close(Transport& transport) noexcept;

  void send(std::unique_ptr<Frame> frame);
  void begin(Request& request);
  void give_up(Request& request) noexcept;
  // Called around a wait for a message. While no thread waits, the engine naps between polls.
  void begin_wait() noexcept;
  void end_wait() noexcept { waiting_.fetch_sub(1); }
  void break_off(std::string_view why) noexcept;
  // Called if a communicator has failed: the end of the process then waits for MPI_Finalize only for a
  // limited time.
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
  void drained(int peer, uint32_t mpi_tag) override;

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
  MpiTags mpi_tags_;
  std::map<uint32_t, std::unique_ptr<Deliveries>> deliveries_;
  std::vector<EarlyFrame> early_;
  uint32_t seen_ = 0;  // transports opened so far
};

}  // namespace shardrec::comm::mpi_plugin
