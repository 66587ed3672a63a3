#include "comm/rendezvous/net/poller.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/error.h"

namespace shardrec::comm::rendezvous {
namespace {

constexpr size_t kMostEvents = 128;

epoll_event event_of(uint64_t name, Interest interest) {
  epoll_event event{};
  event.events =
      (interest.read ? uint32_t{EPOLLIN} : 0) | (interest.write ? uint32_t{EPOLLOUT} : 0);
  event.data.u64 = name;
  return event;
}

}  // namespace

Poller::Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.is_open()) {
    core::fail(SHARDREC_IO_ERROR, core::sentence("cannot wait for sockets: ", reason_of(errno)));
  }
  events_.reserve(kMostEvents);
}

void Poller::add(int descriptor, uint64_t name) {
  epoll_event event = event_of(name, {});
  if (::epoll_ctl(epoll_.descriptor(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
    core::fail(SHARDREC_IO_ERROR, core::sentence("cannot wait for a socket: ", reason_of(errno)));
  }
}

void Poller::change(int descriptor, uint64_t name, Interest interest) noexcept {
  epoll_event event = event_of(name, interest);
  ::epoll_ctl(epoll_.descriptor(), EPOLL_CTL_MOD, descriptor, &event);
}

std::span<const Poller::Event> Poller::wait(milliseconds timeout) {
  std::array<epoll_event, kMostEvents> ready{};
  const int count = ::epoll_wait(epoll_.descriptor(), ready.data(), static_cast<int>(kMostEvents),
                                 static_cast<int>(std::max<int64_t>(timeout.count(), 0)));
  events_.clear();
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready[static_cast<size_t>(i)];
    events_.push_back({.name = event.data.u64,
                       .readable = (event.events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0,
                       .writable = (event.events & EPOLLOUT) != 0});
  }
  return events_;
}

}  // namespace shardrec::comm::rendezvous
