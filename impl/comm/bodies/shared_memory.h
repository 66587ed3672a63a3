// The bodies of a rank's messages in the memory of its back end, for other ranks of the process: they read
// them there, and nothing but the heads goes through the host.
//
// Who has received a message finds its body by the address at which the channel shows the head. That is where the
// sender's own memory is (Communicator::reads_in_place), and the channel keeps it for as long as the message is
// read; nothing that stands in a message is taken for an address or a number. A number in the head would need
// room in every message, which has the CPU's bytes (tests/messages) and may have a body of a few bytes only.
//
// Both sides wait for each other on the device, by marks: readers follow the mark that is set when bodies
// are written; the writer follows the marks that readers set before they let go of messages.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/buffer.h"
#include "compute/mark.h"

namespace shardrec::comm {

class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  // host: of messages of so many bytes; bodies: a block at least as long. It is found from now on, until
  // withdraw(), which comes before the host's memory is freed.
  SharedMemory(const std::byte* host, std::unique_ptr<compute::Allocation> bodies, size_t bytes,
               std::shared_ptr<compute::Mark> written);
  // Waits for readers that have set their marks. Those who have not hold on to it.
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void withdraw() noexcept;

  // That which the whole message of a peer lies in; null: its body is not shared. It is held.
  static std::shared_ptr<SharedMemory> find(ConstBytes message);

  // Operations write [begin, end) of the bodies; and what was written before is no body any more.
  void add_body(const std::byte* begin, const std::byte* end);
  void forget_bodies() noexcept;
  // Bytes of a message in the host's memory up to its body; all of them where it has none.
  size_t head_of(ConstBytes message) const;

  std::byte* data() const noexcept { return bodies_->data; }
  size_t size() const noexcept { return size_; }
  // The place of a message's byte that the host has there.
  const std::byte* at(const std::byte* host) const noexcept { return data() + (host - host_); }

  compute::Mark& written() const noexcept { return *written_; }
  // A reader: `read` is set when it has read, before it lets go of the message.
  void add_reader(std::shared_ptr<compute::Mark> read);
  // Operations of the back end from now on may write: every reader has let go of all messages.
  void follow_readers(compute::Marks& marks);

 private:
  const std::byte* host_;
  std::unique_ptr<compute::Allocation> bodies_;
  size_t size_;
  std::shared_ptr<compute::Mark> written_;
  std::vector<std::span<const std::byte>> written_bodies_;  // by the thread of the back end
  std::mutex mutex_;
  std::vector<std::shared_ptr<compute::Mark>> readers_;  // since the last follow_readers()
};

}  // namespace shardrec::comm
