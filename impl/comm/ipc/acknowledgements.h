// How ranks tell each other that they copy, in a stream, what has come in an exchange: by a message behind it, in a
// channel beside that of the exchanges, which has the same sequence. It names the event that is behind the copies.
//
// Thread rule: that of the channel.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/ipc/exports.h"

namespace shardrec::comm::ipc {

class Acknowledgements {
 public:
  Acknowledgements(std::shared_ptr<Channel> channel, int ranks)
      : channel_(std::move(channel)),
        messages_(static_cast<size_t>(ranks)),
        copied_(Channel::kMostInFlight, std::vector<EventPlace>(static_cast<size_t>(ranks))) {}

  // Of the next exchange, of which this rank has enqueued its copies; the event is behind them. Without copies: null.
  void post(const char* operation, const Exports::Event* copied);
  // Returns when all ranks have posted that of the exchange, and of those before it. Of this rank it is posted.
  void receive_through(uint64_t sequence);
  // The same where it would not wait, or throw because the communicator is dead; false where it would wait, or where
  // this rank has not posted it.
  bool receive_if_there(uint64_t sequence);

  // Behind such a call: the peer's event behind its copies. As long as the sequence is one of the last Channel::kMostInFlight.
  const EventPlace& copied(uint64_t sequence, size_t peer) const {
    return copied_[sequence % copied_.size()][peer];
  }

 private:
  void receive_next();

  const std::shared_ptr<Channel> channel_;
  std::vector<ConstBytes> messages_;
  std::shared_ptr<std::array<EventPlace, Channel::kMostInFlight>> own_ = std::make_shared<
      std::array<EventPlace, Channel::kMostInFlight>>();  // on their way, by sequence
  std::vector<std::vector<EventPlace>> copied_;           // of peers, likewise
  uint64_t posted_ = 0;
  uint64_t received_ = 0;
};

}  // namespace shardrec::comm::ipc
