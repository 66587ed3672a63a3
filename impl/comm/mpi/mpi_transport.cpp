#include "comm/mpi/mpi_transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/mpi/engine.h"

namespace shardrec::comm::mpi_plugin {
namespace {

using plugin::Clock;
using plugin::Failure;
using plugin::sentence;

constexpr double kLetGo = 0.5;  // seconds that MPI has to let go of memory

}  // namespace

std::unique_ptr<Frame> make_frame(int peer, const FrameHead& head,
                                  std::span<const std::byte> message) {
  auto frame = std::make_unique<Frame>();
  frame->peer = peer;
  frame->bytes.resize(sizeof head + message.size());
  std::memcpy(frame->bytes.data(), &head, sizeof head);
  if (!message.empty())
    std::memcpy(frame->bytes.data() + sizeof head, message.data(), message.size());
  return frame;
}

std::unique_ptr<Transport> Transport::open(const shardrec_transport_job& job) {
  const Clock::time_point deadline = plugin::after(job.seconds);
  std::unique_ptr<Transport> transport(new Transport(job));
  Engine::instance().open(*transport);
  try {
    transport->meet(deadline);
  } catch (...) {
    close(std::move(transport));
    throw;
  }
  return transport;
}

void Transport::close(std::unique_ptr<Transport> transport) noexcept {
  if (Engine::instance().close(*transport)) return;
  [[maybe_unused]] const Transport* const stays = transport.release();  // MPI may still use it
}

void Transport::meet(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  const auto over = [this] {
    return open_status_ != SHARDREC_TRANSPORT_OK || (is_started_ && greetings_ == size_ - 1);
  };
  if (met_.wait_until(lock, deadline, over)) {
    if (open_status_ != SHARDREC_TRANSPORT_OK) throw Failure(open_status_, -1, open_text_);
    return;
  }
  if (!is_started_)
    throw Failure(SHARDREC_TRANSPORT_TIMEOUT, -1,
                  "MPI did not start in time: not all ranks have come");
  int missing = 0;
  while (missing == rank_ || greeted_[static_cast<size_t>(missing)] != 0) ++missing;
  throw Failure(SHARDREC_TRANSPORT_TIMEOUT, missing,
                sentence("rank ", missing, " did not open its transport in time"));
}

void Transport::started(int rank, int size) {
  if ((job_.rank >= 0 && job_.rank != rank) || (job_.size >= 0 && job_.size != size))
    throw Failure(SHARDREC_TRANSPORT_UNUSABLE, -1,
                  sentence("MPI launched this process as rank ", rank, " of ", size,
                           ", but it is to be rank ", job_.rank, " of ", job_.size));
  const std::lock_guard lock(mutex_);
  rank_ = rank;
  size_ = size;
  greeted_.resize(static_cast<size_t>(size));
  is_started_ = true;
  met_.notify_all();
}

void Transport::failed(int32_t status, const std::string& text) noexcept {
  const std::lock_guard lock(mutex_);
  if (open_status_ != SHARDREC_TRANSPORT_OK) return;
  open_status_ = status;
  try {
    open_text_ = text;
  } catch (const std::bad_alloc&) {  // the text stays empty
  }
  met_.notify_all();
}

void Transport::hear_hello(int from) {
  const std::lock_guard lock(mutex_);
  char& greeted = greeted_[static_cast<size_t>(from)];
  if (std::exchange(greeted, 1) == 0) ++greetings_;
  met_.notify_all();
}

void Transport::hear_group_state(int from, std::span<const std::byte> group_state) {
  if (job_.group_state != nullptr)
    job_.group_state(job_.reader, from, group_state.data(), group_state.size());
}

void Transport::ended(Request& request, int32_t status, std::string text) noexcept {
  const std::lock_guard lock(mutex_);
  request.text = std::move(text);
  request.status = status;
  request.given_back = request.given_up;
  request.changed.notify_all();
}

void Transport::given_back(Request& request) noexcept {
  const std::lock_guard lock(mutex_);
  request.given_back = true;
  request.changed.notify_all();
}

void Transport::check_peer(int peer) const {
  if (peer < 0 || peer >= size_ || peer == rank_)
    throw Failure(SHARDREC_TRANSPORT_UNUSABLE, -1,
                  sentence("rank ", peer, " is not a peer of rank ", rank_, " of ", size_));
}

Request& Transport::add(Direction direction, int peer, uint32_t tag, void* data, uint64_t bytes) {
  std::list<Request> made(1);
  Request& request = made.front();
  request.transport = this;
  request.peer = peer;
  request.direction = direction;
  request.tag = tag;
  request.data = static_cast<std::byte*>(data);
  request.bytes = bytes;
  request.place = made.begin();
  const std::lock_guard lock(mutex_);
  live_.splice(live_.end(), made);
  return request;
}

Request* Transport::send(int peer, uint32_t tag, const void* data, uint64_t bytes) {
  check_peer(peer);
  Engine& engine = Engine::instance();
  // Its data is read only: MPI has one type of pointer for both ways.
  Request& request = add(Direction::kSend, peer, tag, const_cast<void*>(data), bytes);
  try {
    if (request.is_short()) {
      engine.send(make_frame(
          peer, {.transport = number_, .kind = FrameKind::kMessage, .tag = tag, .bytes = bytes},
          {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)}));
      request.status = SHARDREC_TRANSPORT_OK;
    } else {
      engine.begin(request);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    live_.erase(request.place);
    throw;
  }
  return &request;
}

Request* Transport::receive(int peer, uint32_t tag, void* data, uint64_t bytes) {
  check_peer(peer);
  Request& request = add(Direction::kReceive, peer, tag, data, bytes);
  try {
    Engine::instance().begin(request);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    live_.erase(request.place);
    throw;
  }
  return &request;
}

int32_t Transport::wait(Request& request, double seconds) {
  std::unique_lock lock(mutex_);
  const auto over = [&] { return request.status != SHARDREC_TRANSPORT_TIMEOUT || cancelled_; };
  if (!over() && seconds > 0) {
    Engine& engine = Engine::instance();
    lock.unlock();
    engine.begin_wait();
    lock.lock();
    request.changed.wait_until(lock, plugin::after(seconds), over);
    engine.end_wait();
  }
  if (request.status == SHARDREC_TRANSPORT_FAILED)
    throw Failure(SHARDREC_TRANSPORT_FAILED, request.peer, request.text);
  if (request.status == SHARDREC_TRANSPORT_TIMEOUT && cancelled_)
    return SHARDREC_TRANSPORT_CANCELLED;
  return request.status;
}

void Transport::forget(Request& request) noexcept {
  std::unique_lock lock(mutex_);
  const auto over = [&] { return request.given_back; };
  if (request.status == SHARDREC_TRANSPORT_TIMEOUT) {
    lock.unlock();
    Engine::instance().give_up(request);
    lock.lock();
    if (!request.changed.wait_until(lock, plugin::after(kLetGo), over)) {
      lock.unlock();
      Engine::instance().break_off(
          "a message was given up half through, and MPI does not let go of its memory");
      lock.lock();
      if (!request.changed.wait_until(lock, plugin::after(kLetGo), over)) return;  // lost with it
    }
  }
  live_.erase(request.place);
}

void Transport::announce(const void* data, uint64_t bytes) {
  if (bytes > SHARDREC_TRANSPORT_GROUP_STATE_BYTES)
    throw Failure(SHARDREC_TRANSPORT_UNUSABLE, -1, "a group state is too long");
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    Engine::instance().send(
        make_frame(peer, {.transport = number_, .kind = FrameKind::kGroupState},
                   {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)}));
  }
}

void Transport::cancel() noexcept {
  Engine::instance().expect_no_orderly_end();
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (Request& request : live_) request.changed.notify_all();
}

}  // namespace shardrec::comm::mpi_plugin
