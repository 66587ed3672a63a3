// One rank's end of the rendezvous: a thread that keeps the connection to the server, says that
// this rank lives, and hears what becomes of the others. It is the board of the engines that have
// none of their own, and the store.
//
// A rank is lost when the server says so; rank 0, with whose process the server ends as a rule,
// when the connection to it breaks or it is silent. Then nobody tells of the others any more. Rank
// 0 too is told that rank 0 is lost, should its server end before it.
//
// Destroying it says goodbye: it sends what is announced, and takes under kGoodbyeTime and a
// little.
//
// Any thread. Functions of the listener run on the thread of the client.
#pragma once

#include <memory>
#include <string_view>
#include <thread>

#include "comm/remote/link.h"
#include "comm/rendezvous/net/connection.h"
#include "comm/rendezvous/protocol/messages.h"

namespace shardrec::comm::rendezvous {

class ClientLoop;

class Client final : public remote::Board {
 public:
  // The connection has proved who it is (connect.h).
  Client(Connection connection, const Join& join);
  ~Client() override;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Once: blocks until the group has formed. Throws what the server refused it with, PEER_FAILED
  // when the connection broke, TIMEOUT naming the ranks that are missing. On an error the rank is
  // out.
  Formed wait_until_formed(Clock::time_point deadline);

  // This end of the connection: an address under which the server's machine reaches this one.
  const Address& local_address() const noexcept { return local_address_; }

  // How long nothing may be heard of a rank, as the server has it. Once the group has formed.
  double silence_seconds() const noexcept;

  void announce(ConstBytes bulletin) noexcept override;
  void listen(Listener listener) override;

  // The store. Keys of up to 255 bytes without control characters, values of up to 65,536 bytes;
  // set replaces, get waits until somebody has set. Throw INVALID_ARGUMENT, OUT_OF_MEMORY (the
  // store is full), TIMEOUT, PEER_FAILED (the server is gone; for get: any rank, lost or left),
  // CLOSED (after close()).
  void set(std::string_view key, ConstBytes value, Clock::time_point deadline);
  Bytes get(std::string_view key, Clock::time_point deadline);

  // Says goodbye and ends every wait. Does not block.
  void close() noexcept;

 private:
  Address local_address_;
  std::shared_ptr<ClientLoop>
      loop_;  // the thread's too: it may be the one that destroys this object
  std::thread thread_;
};

}  // namespace shardrec::comm::rendezvous
