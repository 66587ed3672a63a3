#include "comm/nccl/lane.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "comm/nccl/device_turn.h"
#include "comm/nccl/plugin.h"
#include "compute/cuda/host/current_device.h"
#include "core/error.h"

namespace shardrec::comm::nccl {
namespace {

namespace host = compute::cuda::host;

// Blocks of a kernel of NCCL: they take multiprocessors from what computes.
constexpr int32_t kMostCtas = 8;

constexpr auto kShortest = std::chrono::microseconds(20);
constexpr auto kLongest = std::chrono::milliseconds(2);

std::string text_of(shardrec_nccl_result result) {
  const std::string last = table().last_error();
  return core::sentence(table().library, " says: ", table().result_text(result),
                        last.empty() ? "" : " (", last, last.empty() ? "" : ")");
}

}  // namespace

Lane::Lane(std::shared_ptr<Communicator> communicator, int32_t device,
           std::shared_ptr<const compute::Stop> stop)
    : communicator_(std::move(communicator)),
      device_(device),
      stream_(device, nullptr, compute::HostWait::kSleep, std::move(stop)),
      marks_(stream_, false) {}

void Lane::connect(const Id& id, double seconds) {
  constexpr Site kSite{.operation = "collection_create"};
  std::unique_lock turn(turn_of(device_));
  const host::CurrentDevice current(device_);
  const shardrec_nccl_result result =
      table().create(id.data(), communicator_->rank(), communicator_->size(), kMostCtas, &comm_);
  finish(turn, result, kSite, seconds);
}

template <class Call>
void Lane::enqueue(const Site& site, const Call& call) {
  const int64_t stream = stream_.number();
  {
    std::unique_lock turn(turn_of(device_));
    const host::CurrentDevice current(device_);
    require_comm(site);
    finish(turn, call(stream), site, communicator_->deadlines().step);
  }
  watch(site);
}

void Lane::exchange(const Site& site, std::span<const shardrec_nccl_part> sends,
                    std::span<const shardrec_nccl_part> receives) {
  enqueue(site, [&](int64_t stream) {
    return table().exchange(comm_, stream, sends.data(), static_cast<int32_t>(sends.size()),
                            receives.data(), static_cast<int32_t>(receives.size()));
  });
}

void Lane::all_reduce(const char* operation, const shardrec_nccl_vector& vector) {
  enqueue({.operation = operation, .sequence = sums_++},
          [&](int64_t stream) { return table().all_reduce(comm_, stream, &vector); });
}

void Lane::require_comm(const Site& site) {
  if (comm_ != nullptr) return;
  communicator_->check();
  fail(site, Cause::kDevice, "the communicator of NCCL has ended");
}

void Lane::finish(std::unique_lock<std::mutex>& turn, shardrec_nccl_result result, const Site& site,
                  double seconds) {
  const Clock::time_point deadline = after(Clock::now(), seconds);
  auto pause = Clock::duration(kShortest);
  while (result == SHARDREC_NCCL_IN_PROGRESS) {
    communicator_->check();
    if (Clock::now() > deadline) fail(site, Cause::kDeviceLate, {}, seconds);
    turn.unlock();
    std::this_thread::sleep_for(pause);
    turn.lock();
    pause = std::min(2 * pause, Clock::duration(kLongest));
    require_comm(site);
    result = table().progress(comm_);
  }
  if (result != SHARDREC_NCCL_OK) fail(site, Cause::kDevice, text_of(result));
}

void Lane::fail(const Site& site, Cause cause, std::string reason, double seconds) {
  communicator_->kill({.cause = cause,
                       .failed_rank = communicator_->rank(),
                       .sequence = site.sequence,
                       .operation = site.operation,
                       .seconds = seconds,
                       .reason = std::move(reason)});
  communicator_->check();
  core::fail(SHARDREC_INTERNAL, "the communicator lives although it was killed");
}

void Lane::watch(const Site& site) {
  const std::lock_guard lock(mutex_);
  Watched& watched = free_watched();
  watched.over.record(stream_);
  const double seconds = communicator_->deadlines().step;
  const Clock::time_point now = Clock::now();
  watched.waited = {
      .site = site, .since = now, .deadline = after(now, seconds), .seconds = seconds};
  watched.active = true;
  busy_.fetch_add(1, std::memory_order_relaxed);
}

Lane::Watched& Lane::free_watched() {
  for (const auto& watched : watched_) {
    if (!watched->active) return *watched;
  }
  return *watched_.emplace_back(std::make_unique<Watched>(stream_));
}

std::optional<Lane::Waited> Lane::settle() {
  std::optional<Waited> oldest;
  const std::lock_guard lock(mutex_);
  for (const auto& watched : watched_) {
    if (!watched->active) continue;
    if (host::table().query_event(watched->over.handle()) != SHARDREC_CUDA_NOT_READY) {
      watched->active = false;
      busy_.fetch_sub(1, std::memory_order_relaxed);
    } else if (!oldest || watched->waited.deadline < oldest->deadline) {
      oldest = watched->waited;
    }
  }
  return oldest;
}

// A peer that has gone may have enqueued its part before; what it did not, it will not.
std::optional<Failure> Lane::departed(const Waited& oldest) const {
  constexpr auto kTime = std::chrono::seconds(1);
  if (Clock::now() < oldest.since + kTime) return {};
  const int rank = communicator_->departed_rank();
  if (rank < 0) return {};
  return Failure{.cause = Cause::kAbandoned,
                 .failed_rank = rank,
                 .sequence = oldest.site.sequence,
                 .operation = oldest.site.operation};
}

std::optional<Failure> Lane::look() {
  if (const auto oldest = settle()) {
    if (auto gone = departed(*oldest)) return gone;
    if (Clock::now() > oldest->deadline) {
      return Failure{.cause = Cause::kDeviceLate,
                     .failed_rank = communicator_->rank(),
                     .sequence = oldest->site.sequence,
                     .operation = oldest->site.operation,
                     .seconds = oldest->seconds};
    }
  }
  const std::unique_lock turn(turn_of(device_), std::try_to_lock);
  if (!turn.owns_lock() || comm_ == nullptr) return {};  // who has the turn asks by itself
  const host::CurrentDevice current(device_);
  const shardrec_nccl_result result = table().progress(comm_);
  if (result == SHARDREC_NCCL_OK || result == SHARDREC_NCCL_IN_PROGRESS) return {};
  const auto oldest = settle();
  const Site site = oldest ? oldest->site : Site{};
  return Failure{.cause = Cause::kDevice,
                 .failed_rank = communicator_->rank(),
                 .sequence = site.sequence,
                 .operation = site.operation,
                 .reason = text_of(result)};
}

void Lane::abort() noexcept {
  shardrec_nccl_comm* ended = nullptr;
  {
    const std::lock_guard turn(turn_of(device_));
    ended = std::exchange(comm_, nullptr);
  }
  // Outside of the turn: other communicators of the device may have to be ended for this one to end.
  if (ended == nullptr) return;
  try {
    const host::CurrentDevice current(device_);
    table().abort(ended);
  } catch (...) {  // the device is lost, and what NCCL has there
  }
}

bool Lane::close() noexcept {
  shardrec_nccl_comm* over = nullptr;
  shardrec_nccl_result result = SHARDREC_NCCL_OK;
  try {
    const host::CurrentDevice current(device_);
    {
      const std::lock_guard turn(turn_of(device_));
      if (comm_ == nullptr) return true;
      result = std::exchange(closing_, true) ? table().progress(comm_) : table().finalize(comm_);
      if (result == SHARDREC_NCCL_IN_PROGRESS) return false;
      over = std::exchange(comm_, nullptr);
    }
    // Outside of the turn, as abort() does.
    if (result == SHARDREC_NCCL_OK) {
      table().destroy(over);
    } else {
      table().abort(over);
    }
  } catch (...) {  // the device is lost, and what NCCL has there
    const std::lock_guard turn(turn_of(device_));
    comm_ = nullptr;
  }
  return true;
}

}  // namespace shardrec::comm::nccl
