#include "comm/gloo/guarded_context.h"

#include <fcntl.h>
#include <gloo/transport/tcp/loop.h>
#include <gloo/transport/tcp/pair.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace shardrec::comm::gloo_plugin {
namespace {

namespace tcp = gloo::transport::tcp;

constexpr std::chrono::microseconds kWhileLocked{20};  // a write into a socket takes about as long

void close_on_exec(int descriptor) noexcept {
  if (descriptor >= 0) ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

// Gloo keeps a device's loop, and the loop's descriptor, to itself. An explicit instantiation may
// name what is private.
template <class Member, typename Member::Type kMember>
struct Reveal {
  friend typename Member::Type reveal(Member) noexcept { return kMember; }
};
struct LoopOfDevice {
  using Type = std::shared_ptr<tcp::Loop> tcp::Device::*;
  friend Type reveal(LoopOfDevice) noexcept;
};
struct DescriptorOfLoop {
  using Type = int tcp::Loop::*;
  friend Type reveal(DescriptorOfLoop) noexcept;
};
template struct Reveal<LoopOfDevice, &tcp::Device::loop_>;
template struct Reveal<DescriptorOfLoop, &tcp::Loop::fd_>;

class GuardedPair final : public tcp::Pair {
 public:
  GuardedPair(tcp::Context* context, tcp::Device* device, int peer,
              std::chrono::milliseconds timeout)
      : Pair(context, device, peer, timeout) {
    const std::lock_guard lock(m_);
    close_on_exec(fd_);
  }

  GuardedPair(const GuardedPair&) = delete;
  GuardedPair& operator=(const GuardedPair&) = delete;
  // As Gloo's own, but before the object is only a Pair any more: Gloo's thread may be handling
  // events of it until it is closed.
  ~GuardedPair() override {
    const std::lock_guard lock(m_);
    if (state_ != CLOSED) Pair::changeState(CLOSED);
  }

  // Gloo's thread, which nothing may be thrown on.
  void handleEvents(int events) noexcept override {
    // As Gloo's own: who holds the lock may be waiting for this thread. Gloo's would be back at
    // once, and so on for milliseconds where it has taken the processor from who holds the lock.
    const std::unique_lock lock(m_, std::try_to_lock);
    if (!lock) return std::this_thread::sleep_for(kWhileLocked);
    try {
      handle(events);
    } catch (...) {
      give_up(std::current_exception());
    }
  }

 protected:
  // Under the lock, each time that Gloo has opened another descriptor.
  void changeState(state next) noexcept override {
    if (next != CLOSED) close_on_exec(fd_);
    Pair::changeState(next);
  }

 private:
  void handle(int events) {
    switch (state_) {
      case LISTENING:
        return handleListening();
      case CONNECTING:
        return handleConnecting();
      case CONNECTED:
        return handleReadWrite(events);
      default:
        return;
    }
  }

  // Needs no memory. What waits on this connection gets the exception.
  void give_up(std::exception_ptr thrown) noexcept {
    if (state_ == CLOSED) return;
    forget_unregistered();
    if (ex_ != nullptr) return changeState(CLOSED);
    try {
      signalException(std::move(thrown));
    } catch (...) {
      if (state_ != CLOSED) changeState(CLOSED);
    }
  }

  // The end of a pair takes its descriptor off Gloo's loop, which must know it: that of a
  // connection that was only just accepted it does not.
  void forget_unregistered() noexcept {
    if (fd_ < 0) return;
    try {
      device_->registerDescriptor(fd_, EPOLLIN, this);
    } catch (...) {
      if (state_ == CONNECTED) return;  // is registered
      ::close(fd_);
      fd_ = -1;
    }
  }
};

}  // namespace

GuardedContext::GuardedContext(std::shared_ptr<tcp::Device> device, int own_rank, int ranks)
    : Context(std::move(device), own_rank, ranks) {
  const std::shared_ptr<tcp::Loop>& loop = (*device_).*reveal(LoopOfDevice());
  if (loop != nullptr) close_on_exec((*loop).*reveal(DescriptorOfLoop()));
}

std::unique_ptr<gloo::transport::Pair>& GuardedContext::createPair(int peer) {
  auto& pair = pairs_.at(static_cast<size_t>(peer));
  pair = std::make_unique<GuardedPair>(this, device_.get(), peer, getTimeout());
  return pair;
}

}  // namespace shardrec::comm::gloo_plugin
