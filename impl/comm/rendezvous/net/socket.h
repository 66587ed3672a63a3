// TCP sockets that never block, never raise a signal, and are not inherited by programs that the
// host starts; and the addresses they have. Names are looked up here, which may block.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/rendezvous/protocol/limits.h"

namespace shardrec::comm::rendezvous {

class Address {
 public:
  Address() = default;
  Address(const sockaddr* address, socklen_t length);

  const sockaddr* get() const noexcept;
  socklen_t length() const noexcept { return length_; }
  int family() const noexcept { return storage_.ss_family; }
  uint16_t port() const noexcept;
  std::string host() const;  // "127.0.0.1"
  // Only this machine can reach it.
  bool is_loopback() const noexcept;
  // It stands for all addresses of the machine.
  bool is_wildcard() const noexcept;

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

// The addresses of a name or an address; empty, and why in `reason`, when there is none.
std::vector<Address> look_up(const std::string& host, uint16_t port, std::string& reason);

// "Connection refused", whatever the host's language.
std::string reason_of(int error);

// What became of a read or a write.
struct Io {
  enum class Outcome : uint8_t { kDone, kLater, kEnded };
  Outcome outcome = Outcome::kLater;
  size_t bytes = 0;   // of kDone
  std::string how{};  // of kEnded
};

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Throws INVALID_STATE where the port is taken, else INVALID_ARGUMENT or IO_ERROR.
  static Socket listen(const Address& address);
  // Starts to connect: writable when that is over. Throws IO_ERROR with errno as its value.
  static Socket connect(const Address& address);

  int descriptor() const noexcept { return descriptor_; }
  bool is_open() const noexcept { return descriptor_ >= 0; }
  Address local() const;
  // What became of connect(); 0: connected.
  int connect_error() const noexcept;

  // Small messages at once; a peer whose host is gone is noticed within `silence`.
  void watch(milliseconds silence) const noexcept;

  // Neither waits. Both try again after EINTR.
  Io read(std::span<std::byte> out) const;
  Io write(ConstBytes bytes) const;
  // Nothing more will be written.
  void finish() const noexcept;

 private:
  int descriptor_ = -1;
};

// A descriptor that wakes a poller: readable from ring(), of any thread, until hush().
class Alarm {
 public:
  Alarm();
  int descriptor() const noexcept { return event_.descriptor(); }
  void ring() const noexcept;
  void hush() const noexcept;

 private:
  Socket event_;
};

}  // namespace shardrec::comm::rendezvous
