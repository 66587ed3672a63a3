// Messages where the host and the back end reach them. A message is a head (sizes, verdicts, records
// of blocks), which the host writes and reads, and behind it a body (ids, rows), which only operations
// do. Channels carry both in one piece of the host's memory. Where that is the back end's memory too,
// as on the CPU, all is written and read in place. Else, among ranks of one process, bodies stay where
// they were written (shared_bodies.h), and the host's piece has room for them only; among others they are
// copied there to be sent, and back when they have come.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/buffer.h"
#include "embedding/exchange/shared_bodies.h"

namespace shardrec::embedding {

// Memory of the messages to all ranks. Peers may be reading it while its rank lets go of it: what they read
// is on its own.
class MessageBuffer {
 public:
  explicit MessageBuffer(compute::Backend& backend);

  // Room for messages of so many bytes together, valid until the next call: where operations write
  // bodies. A message has the same place in both memories.
  std::byte* resize(size_t bytes);
  // The host's address of a place in resize(): where heads are written, and what channels read.
  std::byte* host(const std::byte* at) const { return memory_->host.data() + (at - bodies_); }
  comm::ConstBytes host(const std::byte* begin, const std::byte* end) const {
    return {host(begin), host(end)};
  }
  // The operations that write [begin, end) of the bodies have been called: brings it to the host, or
  // says so to those who read it where it is.
  void publish(compute::Backend& backend, const std::byte* begin, const std::byte* end) const;

  size_t capacity() const;
  // Keeps alive what peers read.
  std::shared_ptr<const void> owner() const { return memory_; }

 private:
  // What peers read.
  struct Memory {
    explicit Memory(compute::Backend& backend);
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    compute::Buffer host;
    std::shared_ptr<SharedBodies> shared;  // null: no bodies are shared, or there is no room yet
  };

  compute::Backend* backend_;
  std::shared_ptr<Memory> memory_;
  std::shared_ptr<compute::Mark> written_;  // null: bodies are not shared
  std::unique_ptr<compute::Buffer> own_;    // of the back end; null: it is the host's, or shared
  std::byte* bodies_ = nullptr;
};

// The bodies of the messages of all ranks, where operations read them.
class ReceivedBodies {
 public:
  explicit ReceivedBodies(compute::Backend& backend);

  // heads: by rank, bytes of the head of its message, at most all of them; none: there are no heads.
  // The messages stay where they are for as long as the bodies are read.
  std::span<const comm::ConstBytes> open(std::span<const comm::ConstBytes> messages,
                                         std::span<const size_t> heads = {});
  std::span<const comm::ConstBytes> bodies() const { return bodies_; }
  size_t capacity() const { return own_ ? own_->capacity() : 0; }

 private:
  // Those of the bodies that other ranks share where operations of this one reach them.
  void open_shared(std::span<const comm::ConstBytes> messages);
  void copy_others();

  compute::Backend& backend_;
  std::unique_ptr<compute::Buffer> own_;  // null: bodies are read where they came
  std::vector<comm::ConstBytes> bodies_;
  static constexpr int32_t kHost = -1;
  static constexpr int32_t kNowhere = -2;  // operations read it where it is
  std::vector<int32_t> copied_from_;       // by message: the device that its body is copied from
  // What was opened last. It is held on to, for the case that an exchange fails while operations read.
  std::vector<std::shared_ptr<SharedBodies>> shared_;
};

}  // namespace shardrec::embedding
