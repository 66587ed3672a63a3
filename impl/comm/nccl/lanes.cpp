#include "comm/nccl/lanes.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <utility>

#include "comm/clock.h"
#include "comm/nccl/device_turn.h"
#include "comm/nccl/plugin.h"
#include "compute/cuda/host/plugin.h"
#include "core/error.h"
#include "core/start_thread.h"

namespace shardrec::comm::nccl {
namespace {

constexpr size_t kMostLanes = 2;

constexpr std::chrono::milliseconds kLook{10};
constexpr std::chrono::milliseconds kSleep{1000};
constexpr auto kClose = std::chrono::seconds(2);
constexpr auto kPause = std::chrono::milliseconds(1);

constexpr Operation kConnect{
    .name = "connecting by NCCL", .kind = 7, .detail = 0, .deadline_kind = DeadlineKind::kSetup};

// The plug-in is loaded before anything of the device is taken.
std::shared_ptr<Communicator> with_plugin(std::shared_ptr<Communicator> communicator) {
  (void)table();
  return communicator;
}

}  // namespace

Lanes::Lanes(std::shared_ptr<Communicator> communicator, int32_t device,
             std::shared_ptr<StopWord> stop, LaneSet set)
    : communicator_(with_plugin(std::move(communicator))), stop_(std::move(stop)) {
  const size_t lanes = set == LaneSet::kOne ? 1 : kMostLanes;
  while (lanes_.size() < lanes) lanes_.emplace_back(communicator_, device, stop_);
  thread_ = core::start_thread([this] { watch(); });
}

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

void Lanes::clear_if_stopped(Lane& lane, std::byte* bytes, size_t count) const {
  namespace host = compute::cuda::host;
  const shardrec_cuda_arrival arrival{
      .stop = stop_->word(), .bytes = bytes, .count = static_cast<int64_t>(count)};
  host::require(host::table().clear_if_stopped(lane.stream().handle(), &arrival),
                "look whether a message has come");
}

void Lanes::give_up(const char* operation) noexcept {
  communicator_->fail(operation);
  std::unique_lock lock(mutex_);
  while (!ended_ && !ends_) {
    changed_.notify_all();
    changed_.wait_for(lock, kLook);
  }
}

void Lanes::watch() noexcept {
  bool alive = true;
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (alive) {
      lock.unlock();
      alive = look();
      if (!alive) end_all();
      lock.lock();
      ended_ = !alive;
      if (ended_) changed_.notify_all();
      if (ends_) break;
    }
    // Under the lock: whoever adds to a lane afterwards finds this asleep.
    const bool busy =
        std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.is_busy(); });
    sleeps_ = !busy || !alive;
    changed_.wait_for(lock, sleeps_ ? kSleep : kLook);
    sleeps_ = false;
  }
  lock.unlock();
  if (alive) close_all();
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

const char* Lanes::under_way() noexcept {
  std::optional<Lane::Waited> oldest;
  for (Lane& lane : lanes_) {
    const auto waited = lane.settle();
    if (waited && (!oldest || waited->since < oldest->since)) oldest = waited;
  }
  return oldest ? oldest->site.operation : nullptr;
}

// All at once: one may not end while another's operations take up the device.
void Lanes::end_all() noexcept {
  stop_->set(under_way());
  std::array<std::thread, kMostLanes> threads;
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

// What is under way has the time that it has anyway; then peers have a little to do the same.
void Lanes::close_all() noexcept {
  const auto is_busy = [&] {
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [](Lane& lane) { return lane.settle().has_value(); });
  };
  bool alive = look();
  while (alive && is_busy()) {
    std::this_thread::sleep_for(kPause);
    alive = look();
  }
  const auto until = Clock::now() + kClose;
  while (alive && Clock::now() < until) {
    bool over = true;
    for (Lane& lane : lanes_) over = lane.close() && over;
    if (over) return;
    std::this_thread::sleep_for(kPause);
    alive = is_alive();
  }
  end_all();
}

}  // namespace shardrec::comm::nccl
