#include "comm/nccl/lanes.h"

#include <chrono>
#include <span>
#include <utility>

#include "comm/clock.h"
#include "comm/nccl/device_turn.h"
#include "comm/nccl/plugin.h"
#include "core/error.h"
#include "core/start_thread.h"

namespace shardrec::comm::nccl {
namespace {

constexpr auto kLook = std::chrono::milliseconds(10);
constexpr auto kSleep = std::chrono::seconds(1);
constexpr auto kClose = std::chrono::seconds(2);

constexpr Operation kConnect{
    .name = "collection_create", .kind = 2, .detail = 0, .deadline_kind = DeadlineKind::kSetup};

// The plug-in is loaded before anything of the device is taken.
std::shared_ptr<Communicator> with_plugin(std::shared_ptr<Communicator> communicator) {
  (void)table();
  return communicator;
}

}  // namespace

Lanes::Lanes(std::shared_ptr<Communicator> communicator, int32_t device,
             std::shared_ptr<StopWord> stop)
    : communicator_(with_plugin(std::move(communicator))),
      stop_(std::move(stop)),
      lanes_{Lane(communicator_, device, stop_), Lane(communicator_, device, stop_)},
      thread_(core::start_thread([this] { watch(); })) {}

Lanes::~Lanes() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Lanes::connect(Collectives& collectives) {
  for (Lane& lane : lanes_) {
    Id id{};
    // A rank that makes no id gives one of zeros, which no group has.
    if (rank() == 0 && table().make_id(id.data()) != SHARDREC_NCCL_OK) id.fill(0);
    collectives.broadcast(kConnect, 0, std::as_writable_bytes(std::span(id)));
    if (id == Id{}) {
      core::fail(SHARDREC_UNSUPPORTED,
                 core::sentence("rank 0 gets no name for a group from ", table().library,
                                ": it needs a network interface; see its variable "
                                "NCCL_SOCKET_IFNAME"));
    }
    lane.connect(id, communicator_->deadlines().setup);
  }
  collectives.barrier(kConnect);
}

void Lanes::wake() noexcept {
  const std::lock_guard lock(mutex_);
  if (sleeps_) changed_.notify_all();
}

void Lanes::watch() noexcept {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    lock.unlock();
    const bool alive = look();
    bool busy = false;
    for (const Lane& lane : lanes_) busy = busy || lane.is_busy();
    if (!alive) end_all();
    lock.lock();
    if (ends_) break;
    sleeps_ = !busy || !alive;
    if (sleeps_) {
      changed_.wait_for(lock, kSleep);
    } else {
      changed_.wait_for(lock, kLook);
    }
    sleeps_ = false;
  }
  lock.unlock();
  close_all();
}

bool Lanes::is_alive() const noexcept {
  try {
    communicator_->check();
    return true;
  } catch (...) {
    return false;
  }
}

bool Lanes::look() noexcept {
  if (!is_alive()) return false;
  try {
    for (Lane& lane : lanes_) {
      if (auto failure = lane.look()) {
        communicator_->kill(std::move(*failure));
        return false;
      }
    }
    return true;
  } catch (...) {
    return false;
  }
}

// All at once: one may not end while another's operations take up the device.
void Lanes::end_all() noexcept {
  stop_->set();
  std::array<std::thread, 2> threads;
  for (size_t l = 0; l < lanes_.size(); ++l) {
    try {
      threads[l] = core::start_thread([this, l] { lanes_[l].abort(); });
    } catch (...) {
      lanes_[l].abort();
    }
  }
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
}

void Lanes::close_all() noexcept {
  const auto until = Clock::now() + kClose;
  while (is_alive() && Clock::now() < until) {
    bool over = true;
    for (Lane& lane : lanes_) over = lane.close() && over;
    if (over) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  end_all();
}

}  // namespace shardrec::comm::nccl
