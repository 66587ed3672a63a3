// How ranks tell each other that they copy, in a stream, what has come in an exchange: by an empty message behind it,
// in a channel beside that of the exchanges, which has the same sequence. The sender knows then that the event which it
// asks for is behind the copies.
//
// Thread rule: that of the channel.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace shardrec::comm::ipc {

class Acknowledgements {
 public:
  Acknowledgements(std::shared_ptr<Channel> channel, int ranks)
      : channel_(std::move(channel)), messages_(static_cast<size_t>(ranks)) {}

  // Of the next exchange, of which this rank has enqueued its copies.
  void post(const char* operation);
  // Returns when all ranks have posted that of the exchange, and of those before it. Of this rank it is posted.
  void receive_through(uint64_t sequence);
  // The same where it would not wait, or throw because the communicator is dead; false where it would wait, or where
  // this rank has not posted it.
  bool receive_if_there(uint64_t sequence);

 private:
  void receive_next();

  const std::shared_ptr<Channel> channel_;
  std::vector<ConstBytes> messages_;
  uint64_t posted_ = 0;
  uint64_t received_ = 0;
};

}  // namespace shardrec::comm::ipc
