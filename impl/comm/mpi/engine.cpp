#include "comm/mpi/engine.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <utility>

#include "comm/mpi/mpi_transport.h"

namespace shardrec::comm::mpi_plugin {
namespace {

using plugin::Clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kLook{10};    // for frames while nothing is under way
constexpr milliseconds kFlush{300};  // the last frames of a transport that is closed
constexpr milliseconds kLetGo{600};  // and its long messages
constexpr milliseconds kStuck{200};  // then MPI has the thread, and keeps it
constexpr std::chrono::seconds kDisorderlyEnd{5};

// How long to do what while something is under way and nothing happens; spinning and short naps
// only where somebody waits.
constexpr microseconds kSpin{20};
// Waits for ever end now and then: condition_variable::wait() is younger than the oldest C++
// library that a plug-in has to run with.
constexpr std::chrono::hours kNothingToDo{1};
constexpr microseconds kShortNap{20};
constexpr milliseconds kShortNaps{20};
constexpr microseconds kLongNap{100};
constexpr milliseconds kLongNaps{1000};
constexpr milliseconds kLongestNap{1};

Clock::duration awaited_nap(Clock::duration idle) {
  if (idle < kShortNaps) return kShortNap;
  return idle < kLongNaps ? Clock::duration(kLongNap) : kLongestNap;
}

// Naps as long as nothing has happened so far, because the end of a nap takes a processor from the
// host, which computes. A thread that begins to wait ends the nap.
Clock::duration unawaited_nap(Clock::duration idle) {
  return std::clamp<Clock::duration>(idle, kLongNap, kLongestNap);
}

}  // namespace

Engine& Engine::instance() {
  static Engine* const engine = std::make_unique<Engine>().release();
  return *engine;
}

void Engine::push(Command command) {
  const std::lock_guard lock(mutex_);
  commands_.push_back(std::move(command));
  has_commands_.store(true, std::memory_order_release);
  if (asleep_) pushed_.notify_one();
}

void Engine::begin_wait() noexcept {
  if (waiting_.fetch_add(1) != 0) return;
  const std::lock_guard lock(mutex_);
  if (asleep_) pushed_.notify_one();
}

uint32_t Engine::open(Transport& transport) {
  {
    const std::lock_guard lock(mutex_);
    if (!thread_started_) {
      plugin::start_thread([this] { run(); }).detach();
      thread_started_ = true;
    }
    // Under one lock, so that the numbers are in the order of the commands.
    closing_.reserve(open_ + 1);
    transport.set_number(opened_);
    commands_.push_back({.kind = Command::Kind::kOpen, .transport = &transport});
    has_commands_.store(true, std::memory_order_release);
    ++opened_;
    ++open_;
  }
  pushed_.notify_one();
  return transport.number();
}

bool Engine::close(Transport& transport) noexcept {
  bool closed = false;
  const auto let_go = [&] {
    return std::none_of(closing_.begin(), closing_.end(),
                        [&](const Closing& one) { return one.transport == &transport; });
  };
  {
    std::unique_lock lock(mutex_);
    closing_.push_back({.transport = &transport, .flush_by = Clock::now() + kFlush});
    has_closing_.store(true);
    pushed_.notify_one();
    closed = let_go_.wait_for(lock, kLetGo, let_go);
  }
  if (closed) return true;
  break_off("a message was under way when its transport was closed, and MPI does not let go of it");
  std::unique_lock lock(mutex_);
  return let_go_.wait_for(lock, kStuck, let_go);
}

void Engine::send(std::unique_ptr<Frame> frame) {
  if (broken_.load()) throw plugin::Failure(SHARDREC_TRANSPORT_FAILED, frame->peer, why_broken_);
  push({.kind = Command::Kind::kSend, .frame = std::move(frame)});
}

void Engine::begin(Request& request) { push({.kind = Command::Kind::kBegin, .request = &request}); }

void Engine::give_up(Request& request) noexcept {
  const std::lock_guard lock(mutex_);
  request.next_to_give_up = std::exchange(to_give_up_, &request);
  has_commands_.store(true, std::memory_order_release);
  if (asleep_) pushed_.notify_one();
}

void Engine::break_off(std::string_view why) noexcept {
  orderly_.store(false);
  const std::lock_guard lock(mutex_);
  if (broken_.load()) return;
  try {
    why_broken_ = why;
  } catch (const std::bad_alloc&) {  // the reason stays empty
  }
  broken_.store(true);
  pushed_.notify_one();
}

void Engine::run() noexcept {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // naps are as long as they are meant to be
  Clock::time_point since = Clock::now();
  for (;;) {
    try {
      bool happened = execute();
      if (!broken_.load() && wire_.started()) happened = wire_.poll(*this) || happened;
      start_closing();
      finish_closing();
      if (happened) {
        since = Clock::now();
        continue;
      }
    } catch (const std::exception& thrown) {
      break_off(thrown.what());
    }
    if (broken_.load()) fail_everything();
    nap(since);
  }
}

bool Engine::execute() {
  if (!has_commands_.load(std::memory_order_acquire)) return false;
  Request* given_up = nullptr;
  bool finishing = false;
  {
    const std::lock_guard lock(mutex_);
    taken_.swap(commands_);
    given_up = std::exchange(to_give_up_, nullptr);
    finishing = std::exchange(finish_asked_, false);
    has_commands_.store(false, std::memory_order_relaxed);
  }
  // The other requests end too, because the engine is broken.
  const auto try_to = [this](const auto& call) {
    try {
      call();
    } catch (const std::exception& thrown) {
      break_off(thrown.what());
    }
  };
  for (Command& command : taken_) try_to([&] { execute(command); });
  taken_.clear();
  // After the commands, one of which may have begun it. Who has been given back may end it at once.
  while (given_up != nullptr) {
    Request& request = *std::exchange(given_up, given_up->next_to_give_up);
    try_to([&] { give_up_request(request); });
  }
  if (finishing) finish();
  return true;
}

void Engine::execute(Command& command) {
  using Kind = Command::Kind;
  switch (command.kind) {
    case Kind::kOpen:
      return open_exchange(*command.transport);
    case Kind::kSend:
      if (!broken_.load()) wire_.send(std::move(command.frame));
      return;
    case Kind::kBegin:
      return start_request(*command.request);
  }
}

void Engine::start_request(Request& request) {
  const auto found = deliveries_.find(request.transport->number());
  if (!broken_.load() && found != deliveries_.end()) {
    Deliveries& deliveries = *found->second;
    try {
      return deliveries.begin(request);
    } catch (const std::exception& thrown) {
      break_off(thrown.what());
      if (deliveries.holds(request)) return;  // it is notified with the others
    }
  }
  end_broken(request);
}

void Engine::give_up_request(Request& request) {
  Transport& transport = *request.transport;
  const auto found = deliveries_.find(transport.number());
  if (!broken_.load() && found != deliveries_.end()) return found->second->give_up(request);
  if (found != deliveries_.end()) found->second->fail_all(why_broken_);
  transport.given_back(request);
}

void Engine::end_broken(Request& request) noexcept {
  std::string why;
  try {
    why = why_broken_;
  } catch (const std::bad_alloc&) {  // it stays empty
  }
  request.transport->ended(request, SHARDREC_TRANSPORT_FAILED, std::move(why));
}

void Engine::open_exchange(Transport& transport) {
  seen_ = std::max(seen_, transport.number() + 1);
  if (broken_.load()) return transport.failed(SHARDREC_TRANSPORT_UNUSABLE, why_broken_);
  const bool had_mpi = wire_.owns_mpi();
  try {
    wire_.start();
    if (!had_mpi && wire_.owns_mpi()) std::atexit([] { instance().wait_for_finish(); });
    transport.started(wire_.rank(), wire_.size());
    wire_.open_mailbox();
    Deliveries& deliveries =
        *deliveries_
             .emplace(transport.number(),
                      std::make_unique<Deliveries>(transport, transport.number(), wire_, mpi_tags_))
             .first->second;
    deliveries.say_hello();
    const auto mine = [&](const EarlyFrame& frame) {
      return frame.head.transport == transport.number();
    };
    for (const EarlyFrame& frame : early_) {
      if (mine(frame)) deliveries.delivered(frame.from, frame.head, frame.message);
    }
    std::erase_if(early_, mine);
  } catch (const plugin::Failure& failure) {
    transport.failed(failure.status(), failure.what());
    if (failure.status() != SHARDREC_TRANSPORT_UNUSABLE) throw;
  } catch (const std::exception& thrown) {
    transport.failed(SHARDREC_TRANSPORT_OUT_OF_MEMORY, thrown.what());
    throw;
  }
}

// Cancels what is under way on transports that are being closed, after the commands that were given
// before.
void Engine::start_closing() {
  while (has_closing_.load()) {
    Transport* transport = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto next = std::find_if(closing_.begin(), closing_.end(),
                                     [](const Closing& one) { return !one.begun; });
      if (next == closing_.end() || has_commands_.load()) return;
      next->begun = true;
      transport = next->transport;
    }
    const auto found = deliveries_.find(transport->number());
    if (found != deliveries_.end() && !broken_.load()) found->second->give_up_all();
  }
}

// Closes the transports whose memory MPI has given back and whose frames are sent.
void Engine::finish_closing() {
  if (!has_closing_.load()) return;
  const std::lock_guard lock(mutex_);
  const size_t before = closing_.size();
  std::erase_if(closing_, [&](const Closing& one) {
    if (!one.begun) return false;
    const auto found = deliveries_.find(one.transport->number());
    if (found != deliveries_.end()) {
      if (found->second->under_way() > 0) return false;
      const bool flushed = (wire_.frames_in_flight() == 0 && mpi_tags_.unanswered() == 0) ||
                           Clock::now() >= one.flush_by;
      if (!flushed && !broken_.load()) return false;
      deliveries_.erase(found);
    }
    return true;
  });
  if (closing_.size() == before) return;
  open_ -= before - closing_.size();
  has_closing_.store(!closing_.empty());
  let_go_.notify_all();
  if (deliveries_.empty()) go_quiet();
}

// No transport is left. A host that has started MPI itself may end it now.
void Engine::go_quiet() {
  if (broken_.load() || !wire_.started() || wire_.owns_mpi()) return;
  wire_.close_mailbox();
  if (wire_.frames_in_flight() + wire_.parts_moving() == 0) return;
  why_broken_ = "the last messages of a transport never left before it was closed";
  broken_.store(true);
}

void Engine::fail_everything() noexcept {
  for (const auto& [number, deliveries] : deliveries_) deliveries->fail_all(why_broken_);
  try {
    finish_closing();
  } catch (const std::exception&) {  // of MPI: it is not called
  }
}

bool Engine::something_under_way() const noexcept {
  if (broken_.load()) return false;
  return wire_.frames_in_flight() > 0 || wire_.parts_moving() > 0 ||
         std::any_of(deliveries_.begin(), deliveries_.end(),
                     [](const auto& entry) { return entry.second->under_way() > 0; });
}

void Engine::nap(Clock::time_point since) {
  const bool under_way = something_under_way();
  const Clock::duration idle = Clock::now() - since;
  if (under_way && waiting_.load() != 0 && idle < kSpin) return;
  std::unique_lock lock(mutex_);
  if (has_commands_.load()) return;
  asleep_ = true;
  const bool awaited = waiting_.load() != 0;  // who begins to wait from here on finds it asleep
  if (under_way || !closing_.empty()) {
    pushed_.wait_for(lock, awaited ? awaited_nap(idle) : unawaited_nap(idle));
  } else if (deliveries_.empty() || broken_.load()) {
    pushed_.wait_for(lock, kNothingToDo);
  } else {
    pushed_.wait_for(lock, kLook);
  }
  asleep_ = false;
}

void Engine::finish() noexcept {
  const auto flush_by = Clock::now() + kDisorderlyEnd;
  try {
    while (!broken_.load() && wire_.frames_in_flight() > 0 &&
           (orderly_.load() || Clock::now() < flush_by))
      wire_.poll(*this);
    if (!broken_.load()) wire_.finish();
  } catch (const std::exception&) {  // the process ends, whatever becomes of it
  }
  break_off("the process is ending, and MPI with it");
  const std::lock_guard lock(mutex_);
  finished_ = true;
  let_go_.notify_all();
}

void Engine::wait_for_finish() noexcept {
  std::unique_lock lock(mutex_);
  finish_asked_ = true;
  has_commands_.store(true, std::memory_order_release);
  pushed_.notify_one();
  const auto finished = [this] { return finished_; };
  if (orderly_.load()) {
    while (!let_go_.wait_for(lock, kNothingToDo, finished)) {
    }
  } else {
    let_go_.wait_for(lock, kDisorderlyEnd, finished);
  }
}

void Engine::delivered(int from, const FrameHead& head, std::span<const std::byte> message) {
  if (head.kind == FrameKind::kAnswer)
    return mpi_tags_.answered(from, head.mpi_tag, head.bytes != 0, wire_);
  const auto found = deliveries_.find(head.transport);
  if (found != deliveries_.end()) return found->second->delivered(from, head, message);
  if (head.transport >= seen_)
    early_.push_back(
        {.from = from, .head = head, .message = std::vector(message.begin(), message.end())});
}

void Engine::moved(Request& request) {
  deliveries_.at(request.transport->number())->moved(request);
}

void Engine::drained(int peer, uint32_t mpi_tag) { mpi_tags_.give_back(peer, mpi_tag); }

}  // namespace shardrec::comm::mpi_plugin
