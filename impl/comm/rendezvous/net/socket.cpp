#include "comm/rendezvous/net/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "comm/keepalive.h"
#include "core/error.h"

namespace shardrec::comm::rendezvous {
namespace {

using core::fail;
using core::sentence;

// Enough for a wave of connections between two looks at the listener.
constexpr int kBacklog = 1024;

void set(int descriptor, int level, int option, int value) noexcept {
  setsockopt(descriptor, level, option, &value, sizeof value);
}

Socket open_socket(int family) {
  const int descriptor = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (descriptor < 0) {
    fail(SHARDREC_IO_ERROR, sentence("cannot make a socket: ", reason_of(errno)));
  }
  return Socket(descriptor);
}

const sockaddr_in& ipv4(const sockaddr_storage& storage) noexcept {
  return *static_cast<const sockaddr_in*>(static_cast<const void*>(&storage));
}
const sockaddr_in6& ipv6(const sockaddr_storage& storage) noexcept {
  return *static_cast<const sockaddr_in6*>(static_cast<const void*>(&storage));
}

}  // namespace

Address::Address(const sockaddr* address, socklen_t length)
    : length_(std::min<socklen_t>(length, sizeof storage_)) {
  std::memcpy(&storage_, address, length_);
}

const sockaddr* Address::get() const noexcept {
  return static_cast<const sockaddr*>(static_cast<const void*>(&storage_));
}

uint16_t Address::port() const noexcept {
  return ntohs(family() == AF_INET6 ? ipv6(storage_).sin6_port : ipv4(storage_).sin_port);
}

std::string Address::host() const {
  std::array<char, NI_MAXHOST> text{};
  const int error =
      getnameinfo(get(), length_, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? std::string(text.data()) : std::string("an unknown address");
}

bool Address::is_loopback() const noexcept {
  if (family() == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&ipv6(storage_).sin6_addr);
  return ntohl(ipv4(storage_).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool Address::is_wildcard() const noexcept {
  if (family() == AF_INET6) return IN6_IS_ADDR_UNSPECIFIED(&ipv6(storage_).sin6_addr);
  return ipv4(storage_).sin_addr.s_addr == htonl(INADDR_ANY);
}

std::vector<Address> look_up(const std::string& host, uint16_t port, std::string& reason) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  std::vector<Address> addresses;
  if (error != 0) {
    reason = sentence("\"", host, "\" is unknown: ",
                      error == EAI_SYSTEM ? reason_of(errno) : std::string(gai_strerror(error)));
    return addresses;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET || one->ai_family == AF_INET6) {
      addresses.emplace_back(one->ai_addr, one->ai_addrlen);
    }
  }
  if (addresses.empty()) reason = sentence("\"", host, "\" has no address of IPv4 or IPv6");
  return addresses;
}

std::string reason_of(int error) {
  const char* reason = strerrordesc_np(error);
  return reason != nullptr ? std::string(reason) : sentence("error ", error);
}

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

Socket Socket::listen(const Address& address) {
  Socket socket = open_socket(address.family());
  set(socket.descriptor_, SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(socket.descriptor_, address.get(), address.length()) == 0 &&
      ::listen(socket.descriptor_, kBacklog) == 0) {
    return socket;
  }
  const int error = errno;
  const std::string where = sentence(address.host(), " port ", address.port());
  if (error == EADDRINUSE) {
    fail(SHARDREC_INVALID_STATE,
         sentence("the rendezvous cannot listen at ", where,
                  ": somebody else does; another port, or 0 for any, is accepted"));
  }
  if (error == EADDRNOTAVAIL || error == EACCES) {
    fail(
        SHARDREC_INVALID_ARGUMENT,
        sentence("the rendezvous cannot listen at ", where, ": ", reason_of(error),
                 "; an address of this machine and a port that this process may use are accepted"));
  }
  fail(SHARDREC_IO_ERROR,
       sentence("the rendezvous cannot listen at ", where, ": ", reason_of(error)));
}

Socket Socket::connect(const Address& address) {
  Socket socket = open_socket(address.family());
  // EINPROGRESS or any other error: connect_error() tells.
  if (::connect(socket.descriptor_, address.get(), address.length()) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    fail(SHARDREC_IO_ERROR, reason_of(errno), {.value = errno});
  }
  return socket;
}

Address Socket::local() const {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* address = static_cast<sockaddr*>(static_cast<void*>(&storage));
  if (getsockname(descriptor_, address, &length) != 0) {
    fail(SHARDREC_IO_ERROR, sentence("a socket has no address: ", reason_of(errno)));
  }
  return {address, length};
}

int Socket::connect_error() const noexcept {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

void Socket::watch(milliseconds silence) const noexcept {
  set(descriptor_, IPPROTO_TCP, TCP_NODELAY, 1);
  end_when_silent(descriptor_, silence);
}

Io Socket::read(std::span<std::byte> out) const {
  for (;;) {
    const ssize_t got = ::recv(descriptor_, out.data(), out.size(), MSG_DONTWAIT);
    if (got > 0) return {.outcome = Io::Outcome::kDone, .bytes = static_cast<size_t>(got)};
    if (got == 0) return {.outcome = Io::Outcome::kEnded, .how = "the other end closed it"};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    if (errno != EINTR) return {.outcome = Io::Outcome::kEnded, .how = reason_of(errno)};
  }
}

Io Socket::write(ConstBytes bytes) const {
  for (;;) {
    const ssize_t put =
        ::send(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put >= 0) return {.outcome = Io::Outcome::kDone, .bytes = static_cast<size_t>(put)};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    if (errno != EINTR) return {.outcome = Io::Outcome::kEnded, .how = reason_of(errno)};
  }
}

void Socket::finish() const noexcept { ::shutdown(descriptor_, SHUT_WR); }

Alarm::Alarm() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.is_open()) {
    fail(SHARDREC_IO_ERROR, sentence("cannot make an event: ", reason_of(errno)));
  }
}

void Alarm::ring() const noexcept {
  const uint64_t one = 1;
  // It fails only when it is rung already.
  [[maybe_unused]] const ssize_t put = ::write(event_.descriptor(), &one, sizeof one);
}

void Alarm::hush() const noexcept {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(event_.descriptor(), &count, sizeof count);
}

}  // namespace shardrec::comm::rendezvous
