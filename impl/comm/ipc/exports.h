// What a rank has made for its peers to open: blocks of its device's memory, in which bodies of messages are written, and
// events. Those that messages no longer need are used again; all are destroyed together, when no peer has them open any
// more: with the last that uses them, or, where peers take their time, when something like it is made or
// ends later in this process, or with the process.
//
// Thread rule: any thread; blocks as Memory has it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/communicator.h"
#include "comm/ipc/closed_words.h"
#include "comm/ipc/whereabouts.h"
#include "compute/booked_memory.h"
#include "compute/buffer.h"
#include "compute/cuda/host/sharing.h"

namespace shardrec::comm::ipc {

// Where something lies that peers may read.
struct Place {
  uint64_t block = 0;  // its number among those of the rank
  uint64_t bytes = 0;  // of the block
  uint64_t offset = 0;
  shardrec_cuda_handle handle{};
};

// An event that peers may ask for: as it was recorded for one exchange. 0: none.
struct EventPlace {
  uint64_t number = 0;  // among those of the rank
  shardrec_cuda_handle handle{};
};

class Exports final : public compute::Memory, public std::enable_shared_from_this<Exports> {
 public:
  // Throws OUT_OF_MEMORY, DEVICE_ERROR: processes share nothing of such a device. booked: counts the blocks; or null.
  Exports(std::shared_ptr<Communicator> communicator, int32_t device, compute::BookedBytes booked);
  // Waits for peers for a little while.
  ~Exports() override;

  shardrec_device_type device() const noexcept override { return SHARDREC_DEVICE_CUDA; }
  std::unique_ptr<compute::Allocation> allocate(size_t bytes) override;
  std::unique_ptr<compute::Allocation> allocate_zeros(size_t bytes) override;

  // Of an address in a block.
  Place place_of(const std::byte* at) const;

  // An event of one exchange, which is recorded once while it is held: whoever asks for it asks for that exchange. It goes
  // to another one when it is let go, by when peers have asked.
  struct Event {
    explicit Event(int32_t device) : event(device) {}
    EventPlace place() const noexcept { return {.number = number, .handle = event.handle()}; }

    compute::cuda::host::SharedEvent event;
    uint64_t number = 0;
    bool is_free = false;
  };
  // Throws OUT_OF_MEMORY, DEVICE_ERROR. It keeps this alive.
  std::shared_ptr<Event> take_event();

  // In which peers say that they have closed all of it.
  ClosedWords& words() noexcept { return ends_->words; }
  // The peers that may open something of it; before it is told of. Throws OUT_OF_MEMORY.
  void await_peers(const std::vector<Whereabouts>& ranks);
  // They have closed what they had opened, and open nothing.
  void forget_peers() noexcept { ends_->peers.clear(); }

 private:
  struct Block {
    Block(int32_t device, size_t bytes) : memory(device, bytes) {}
    compute::cuda::host::SharedBlock memory;
    uint64_t number = 0;
    bool is_free = false;
  };
  // What is destroyed when no peer has it open.
  struct Ends {
    explicit Ends(size_t ranks) : words(ranks) {}
    ~Ends();
    Ends(const Ends&) = delete;
    Ends& operator=(const Ends&) = delete;

    struct Peer {
      size_t rank;
      Process process;
    };
    bool are_closed() const noexcept;

    ClosedWords words;
    std::vector<Peer> peers;
    std::vector<std::unique_ptr<Event>> events;                 // by number, from 1
    std::map<const std::byte*, std::unique_ptr<Block>> blocks;  // by address
    compute::BookedBytes booked;
  };
  // Those of this process that were kept; never destroyed.
  struct Kept {
    std::mutex mutex;
    std::vector<std::unique_ptr<Ends>> ends;
  };
  struct Allocated;

  // That is no longer free.
  Event& free_event();
  static Kept& kept();
  static void destroy_closed() noexcept;
  void free(Block& block) noexcept;

  const std::shared_ptr<Communicator> communicator_;
  const int32_t device_;
  mutable std::mutex mutex_;  // of the blocks and events
  uint64_t numbers_ = 0;
  std::unique_ptr<Ends> ends_;
};

}  // namespace shardrec::comm::ipc
