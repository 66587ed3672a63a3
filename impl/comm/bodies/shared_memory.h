// The bodies of a rank's messages in the memory of its back end, for other ranks of the process: they read
// them there, and nothing but the heads goes through the host. Who has received a message finds its body by
// the head's address.
//
// Both sides wait for each other on the device, by marks: readers follow the mark that is set when bodies
// are written; the writer follows the marks that readers set before they let go of messages.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "compute/buffer.h"
#include "compute/mark.h"

namespace shardrec::comm {

class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  // host: of messages of so many bytes; bodies: a block at least as long. It is found from now on, until
  // withdraw(), which comes before the host's memory is freed.
  SharedMemory(const std::byte* host, std::unique_ptr<compute::MemoryBlock> bodies, size_t bytes,
               std::shared_ptr<compute::Mark> written);
  // Waits for readers that have set their marks. Those who have not hold on to it.
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void withdraw() noexcept;

  // Whose message is at `host`; null: its bodies are not shared. The message is held.
  static std::shared_ptr<SharedMemory> find(const std::byte* host);

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
  std::unique_ptr<compute::MemoryBlock> bodies_;
  size_t size_;
  std::shared_ptr<compute::Mark> written_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<compute::Mark>> readers_;  // since the last follow_readers()
};

}  // namespace shardrec::comm
