// The server of one group: a listening socket and a thread. It is usually in the process of rank 0.
//
// It listens on this machine only, unless the options say otherwise. Then it needs a secret that the
// user has chosen, and the option that allows traffic in clear text. Destroying it takes less than a
// second. A rank that has not said goodbye by then regards rank 0 as lost.
//
// Any thread.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "comm/rendezvous/protocol/limits.h"
#include "comm/rendezvous/protocol/token.h"

namespace shardrec::comm::rendezvous {

class ServerLoop;

struct ServerOptions {
  std::string address = "127.0.0.1";  // to listen at
  uint16_t port = 0;                  // 0: any
  std::string advertised{};           // the host in the token; empty: the address
  std::string job{};                  // empty: a random one
  std::string secret{};               // likewise
  bool allow_plain_tcp = false;
  double silence_seconds = kSilenceSeconds;  // after which a rank, or the server, is lost
  milliseconds handshake_time = kHandshakeTime;
};

class Server {
 public:
  // Throws INVALID_ARGUMENT, INVALID_STATE (the port is taken), IO_ERROR.
  explicit Server(const ServerOptions& options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const Token& token() const noexcept { return token_; }
  const ServerLoop& loop() const noexcept { return *loop_; }

 private:
  Token token_;
  std::unique_ptr<ServerLoop> loop_;
  std::thread thread_;
};

}  // namespace shardrec::comm::rendezvous
