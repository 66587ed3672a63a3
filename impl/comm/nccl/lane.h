// A communicator of NCCL and the stream of its operations: what one purpose's messages go by. Its operations are
// issued in the order of the exchanges, which is the same on all ranks.
//
// Thread rule: connect(), exchange(), all_reduce() and what the stream is asked for by one thread at a time; settle(), look(), abort()
// and close() by another one, the watchdog's.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/clock.h"
#include "comm/communicator.h"
#include "comm/failure.h"
#include "comm/nccl/nccl_plugin.h"
#include "compute/cuda/host/event_marks.h"
#include "compute/cuda/host/stream.h"

namespace shardrec::comm::nccl {

using Id = std::array<uint8_t, SHARDREC_NCCL_ID_BYTES>;

// Which exchange an operation is of, for errors.
struct Site {
  const char* operation = "";
  uint64_t sequence = 0;
};

class Lane {
 public:
  // Throws as host::Stream.
  Lane(std::shared_ptr<Communicator> communicator, int32_t device,
       std::shared_ptr<const compute::Stop> stop);

  // Joins the group of the id as the communicator's rank. Returns when all ranks have, at most after so many seconds.
  // A failure kills the communicator, and is thrown.
  void connect(const Id& id, double seconds);

  // A group of sends and receives, or a sum.
  struct Waited {
    Site site;
    Clock::time_point since;
    Clock::time_point deadline;
    double seconds = 0;  // that it had
  };

  compute::cuda::host::Stream& stream() { return stream_; }
  compute::cuda::host::EventMarks& marks() { return marks_; }

  // Enqueues one group of sends and receives, behind which the watchdog looks for its end. A failure kills the
  // communicator, and is thrown.
  void exchange(const Site& site, std::span<const shardrec_nccl_part> sends,
                std::span<const shardrec_nccl_part> receives);
  // Likewise a sum over the ranks. operation: as Site has it; the sequence is the number of the lane's sums before.
  void all_reduce(const char* operation, const shardrec_nccl_vector& vector);

  // Forgets what is over. The oldest one that is not.
  std::optional<Waited> settle();
  // The watchdog: what has failed, or is late. Does not block.
  std::optional<Failure> look();
  bool is_busy() const noexcept { return busy_.load(std::memory_order_relaxed) != 0; }
  // Ends what is under way on this rank; nothing is exchanged any more.
  void abort() noexcept;
  // The orderly end, when nothing is under way: true when it is over. Asked again until then.
  bool close() noexcept;

 private:
  // Of which it is not known that it is over.
  struct Watched {
    explicit Watched(const compute::cuda::host::Stream& stream) : over(stream) {}
    compute::cuda::host::Event over;
    Waited waited;
    bool active = false;
  };

  // call(stream): of the plug-in's table.
  template <class Call>
  void enqueue(const Site& site, const Call& call);
  void watch(const Site& site);
  Watched& free_watched();
  // Asks until a call is over, and lets others have the turn meanwhile, which peers may need. Throws what it came to.
  void finish(std::unique_lock<std::mutex>& turn, shardrec_nccl_result result, const Site& site,
              double seconds);
  std::optional<Failure> departed(const Waited& oldest) const;
  void require_comm(const Site& site);
  [[noreturn]] void fail(const Site& site, Cause cause, std::string reason, double seconds = 0);

  const std::shared_ptr<Communicator> communicator_;
  const int32_t device_;
  compute::cuda::host::Stream stream_;
  compute::cuda::host::EventMarks marks_;
  shardrec_nccl_comm* comm_ = nullptr;  // used under turn_of(device_); null: not made, or ended
  bool closing_ = false;
  uint64_t sums_ = 0;         // that were enqueued
  std::atomic<int> busy_{0};  // watched that are active
  std::mutex mutex_;          // of watched_
  std::vector<std::unique_ptr<Watched>> watched_;
};

}  // namespace shardrec::comm::nccl
