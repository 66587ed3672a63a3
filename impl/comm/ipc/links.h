// What a rank has opened of its peers, so that it can copy from their devices: blocks, which it opens when a message
// first names them, and events; and what it has made for them (exports.h). All ranks have links, or none: they agree
// on that when they connect.
//
// A host asks whether a peer's event is over until it is, and does not have a stream wait for it: the event of a process
// that has ended may never be, and a stream that waits for it would wait for ever. Whoever waits is told of a dead
// communicator and of a deadline as in an exchange.
//
// Thread rule: that of the back end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "comm/ipc/closed_words.h"
#include "comm/ipc/exports.h"
#include "comm/ipc/whereabouts.h"
#include "compute/cuda/host/event_marks.h"
#include "compute/cuda/host/sharing.h"
#include "compute/cuda/host/stream.h"
#include "core/error.h"

namespace shardrec::comm::ipc {

// Which exchange a wait is for.
struct Site {
  const char* operation = "";
  uint64_t sequence = 0;
};

class Links {
 public:
  // booked: counts memory that peers open; or null. wanted: else this rank has no links, and so has no other. Throws as
  // Stream does.
  Links(std::shared_ptr<Communicator> communicator, int32_t device, compute::BookedBytes booked,
        bool wanted);
  // Closes what is opened, when copies from it are over.
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  // Collective.
  void connect(Collectives& collectives);
  // Since connect().
  bool are_there() const noexcept { return connected_; }

  int rank() const noexcept { return communicator_->rank(); }
  int size() const noexcept { return communicator_->size(); }
  std::shared_ptr<Channel> open_channel(Purpose purpose) {
    return communicator_->open_channel(purpose);
  }
  // This rank does not take part in what peers wait for.
  void give_up(const char* operation) noexcept { communicator_->fail(operation); }

  // Where they are.
  const std::shared_ptr<Exports>& exports() const noexcept { return exports_; }
  // Of copies.
  compute::cuda::host::Stream& stream() noexcept { return copies_; }
  compute::cuda::host::EventMarks& marks() noexcept { return marks_; }
  // Records an event for peers behind what is written where the mark is; behind the copies that are enqueued.
  void record_written(Exports::Event& event, const compute::Mark& mark);
  void record_copied(Exports::Event& event) { event.event.record(copies_); }

  // Is the peer's event over, as it was recorded for an exchange that this rank has heard of? wait_for() returns when it
  // is. Throw CORRUPT_DATA, DEVICE_ERROR; where the peer's process has ended, what the communicator says of that.
  bool is_over(size_t peer, const EventPlace& place, const char* operation) {
    return event_of(peer, place, operation).is_over();
  }
  void wait_for(size_t peer, const EventPlace& place, const Site& site);
  // Where the bytes are that the peer has at that place. Throws as is_over() does.
  const std::byte* open(size_t peer, const Place& place, uint64_t bytes, const char* operation);

 private:
  struct Hello;
  struct Peer {
    ClosedWords words;
    std::map<uint64_t, compute::cuda::host::OpenedEvent> events;  // by number
    struct Opened {
      Opened(int32_t device, const Place& place)
          : block(device, place.handle), bytes(place.bytes) {}
      compute::cuda::host::OpenedBlock block;
      uint64_t bytes;
    };
    std::map<uint64_t, Opened> blocks;  // by number
  };

  // The first of two steps: what each rank offers. The second: every rank opens it, and reads what is in it.
  void offer(const std::vector<Whereabouts>& ranks, Hello& hello);
  void open_all(const std::vector<Hello>& hellos);
  void read_token(size_t peer, const Hello& hello);
  void close_all() noexcept;
  const compute::cuda::host::OpenedEvent& event_of(size_t peer, const EventPlace& place,
                                                   const char* operation);
  // Opening something of a peer has failed with the error. Waits whether the peer has ended, up to a second: throws what
  // the communicator says of that. While ranks connect and where memory is short, it returns at once.
  void check_peers(const core::Error& error, const char* operation) const;

  const std::shared_ptr<Communicator> communicator_;
  const int32_t device_;
  compute::BookedBytes booked_;
  const bool wanted_;
  compute::cuda::host::Stream copies_;
  compute::cuda::host::EventMarks marks_;
  compute::cuda::host::Stream
      announcements_;  // has nothing but waits for marks, so that none is behind copies
  compute::cuda::host::EventMarks follows_;
  std::shared_ptr<Exports> exports_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank; of this one none
  bool connected_ = false;
};

}  // namespace shardrec::comm::ipc
