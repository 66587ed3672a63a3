// Frames over a socket that never blocks: what is to be sent waits here until the socket takes it.
// One thread at a time.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "comm/rendezvous/net/socket.h"
#include "comm/rendezvous/protocol/wire.h"
#include "core/function_ref.h"

namespace shardrec::comm::rendezvous {

class Connection {
 public:
  explicit Connection(Socket socket) : socket_(std::move(socket)) {}

  void queue(ConstBytes frame) { out_.insert(out_.end(), frame.begin(), frame.end()); }
  size_t queued() const noexcept { return out_.size() - written_; }
  // Sends what the socket takes. False: the connection has ended, and how() says why.
  bool flush();
  // Hands on the frames that have arrived, reading once. False: as of flush(); frames that came
  // before the end have been handed on. Throws CORRUPT_DATA, and what `handle` throws.
  bool receive(std::span<std::byte> scratch, core::FunctionRef<void(const Frame&)> handle);

  const std::string& how() const noexcept { return how_; }
  const Socket& socket() const noexcept { return socket_; }

 private:
  bool ended(const Io& io);

  Socket socket_;
  FrameDecoder decoder_;
  Bytes out_;
  size_t written_ = 0;
  std::string how_;
};

}  // namespace shardrec::comm::rendezvous
