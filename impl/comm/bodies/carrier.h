// How the bodies of messages come from the rank whose operations write them to those whose operations read
// them. A message is a head (sizes, verdicts, records of blocks), which hosts write and read, and behind it a
// body (ids, rows), which only operations of back ends do. Channels carry heads, and have room for the bodies;
// a carrier moves those, in one of five ways:
//
//   in place   bodies are in the host's memory, which is the back end's too: channels carry them (the CPU)
//   copied     they are copied to the host to be sent, and back when they have come (a device, among processes)
//   shared     they stay on the device where they were written, and ranks of the process read them there
//   by IPC     they are copied from device to device between processes of one machine (comm/ipc)
//   by NCCL    they go from device to device, whatever process a rank is in (comm/nccl)
//
// The life of a body: room for it (MessageBuffer::resize), operations that write it are called, publish(),
// finish_writing(), the message is posted; on the other side the message is received, ReceivedBodies::open(),
// operations that read it are called, finish_reading(), the message is released.
//
// Thread rule: that of the back end.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "comm/communicator.h"
#include "compute/backend.h"

namespace shardrec::comm {

class Collectives;

// Memory of the messages to all ranks. Peers may still read after this object is destroyed: what they read is
// reference-counted.
class MessageBuffer {
 public:
  virtual ~MessageBuffer() = default;
  MessageBuffer(const MessageBuffer&) = delete;
  MessageBuffer& operator=(const MessageBuffer&) = delete;

  // Room for messages of so many bytes together, valid until the next call: where operations write bodies.
  // A message has the same place there and in the host's memory. Throws OUT_OF_MEMORY.
  virtual std::byte* resize(size_t bytes) = 0;
  // The host's address of a place in resize(): where heads are written, and what channels read.
  std::byte* host(const std::byte* at) const { return host_ + (at - bodies_); }
  ConstBytes host(const std::byte* begin, const std::byte* end) const {
    return {host(begin), host(end)};
  }
  // The operations that write [begin, end) of the bodies have been called.
  virtual void publish(const std::byte* begin, const std::byte* end) const = 0;

  // Keeps alive what peers read.
  virtual std::shared_ptr<const void> keep_alive() const = 0;

 protected:
  MessageBuffer() = default;
  std::byte* host_ = nullptr;    // set by resize()
  std::byte* bodies_ = nullptr;  // likewise
};

// The bodies of the messages of all ranks, where operations read them.
class ReceivedBodies {
 public:
  virtual ~ReceivedBodies() = default;
  ReceivedBodies(const ReceivedBodies&) = delete;
  ReceivedBodies& operator=(const ReceivedBodies&) = delete;

  // heads: by rank, bytes of the head of its message, at most all of them; none: there are no heads.
  // The messages stay where they are for as long as the bodies are read.
  virtual std::span<const ConstBytes> open(std::span<const ConstBytes> messages,
                                           std::span<const size_t> heads = {}) = 0;

 protected:
  ReceivedBodies() = default;
};

class BodyCarrier {
 public:
  virtual ~BodyCarrier() = default;
  BodyCarrier(const BodyCarrier&) = delete;
  BodyCarrier& operator=(const BodyCarrier&) = delete;

  compute::Backend& backend() { return backend_; }
  // Are bodies read where operations of this process wrote them, and nowhere on the way could anybody change them?
  virtual bool stays_in_process() const { return false; }
  // A channel of the communicator for messages with bodies that are carried by this, which outlives it.
  virtual std::shared_ptr<Channel> over(std::shared_ptr<Channel> channel, Purpose /*purpose*/) {
    return channel;
  }
  // Makes what ranks need to reach each other, before the first message. Collective; a rank that fails ends the
  // communicator.
  virtual void connect(Collectives& /*collectives*/) {}
  virtual std::unique_ptr<MessageBuffer> make_buffer() = 0;
  virtual std::unique_ptr<ReceivedBodies> make_received() = 0;

  // Before messages are posted: peers that read them find what operations have written. Waits for those
  // operations, unless peers do so on the device. Throws what an operation threw.
  virtual void finish_writing() = 0;
  // Before messages are released: peers may write into what operations have read. As finish_writing().
  virtual void finish_reading() = 0;

 protected:
  explicit BodyCarrier(compute::Backend& backend) : backend_(backend) {}

 private:
  compute::Backend& backend_;
};

// The one that goes with the back end, which outlives it and all that it makes.
std::unique_ptr<BodyCarrier> make_carrier(compute::Backend& backend);

}  // namespace shardrec::comm
