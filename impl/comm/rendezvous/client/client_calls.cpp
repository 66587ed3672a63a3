// What other threads ask of a client.
#include <algorithm>

#include "comm/rendezvous/client/client.h"
#include "comm/rendezvous/client/rendezvous.h"
#include "comm/rendezvous/protocol/messages.h"
#include "core/error.h"

namespace shardrec::comm::rendezvous {
namespace {

using core::fail;
using core::sentence;

int64_t milliseconds_until(Clock::time_point now, Clock::time_point then) {
  return std::chrono::duration_cast<milliseconds>(then - now).count();
}

void check_key(std::string_view key) {
  const bool clean = std::all_of(key.begin(), key.end(), [](char letter) {
    return static_cast<unsigned char>(letter) >= 0x20 && letter != 0x7f;
  });
  if (clean && key.size() <= kMostKeyBytes) return;
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("a key of the store has ", key.size(),
                clean ? " bytes" : " bytes, some of them control", "; up to ", kMostKeyBytes,
                " bytes without control characters are accepted"));
}

}  // namespace

std::string Client::missing() const {
  if (waiting_.joined == 0) return "the rendezvous has not answered";
  const int count = size_ - waiting_.joined;
  std::string text = sentence(name_ranks(waiting_.missing, count), " of ", size_,
                              count == 1 ? " has" : " have", " not come");
  if (waiting_.turned_away > 0) {
    text += sentence("; ", waiting_.turned_away,
                     " connections that did not know the secret were turned away");
  }
  return text;
}

Formed Client::wait_until_formed(Clock::time_point deadline) {
  const auto began = Clock::now();
  std::unique_lock lock(mutex_);
  const auto is_over = [&] { return formed_ || refused_ || ended_ || closed_; };
  const bool in_time = changed_.wait_until(lock, deadline, is_over);
  if (formed_) return *formed_;
  if (refused_ && refused_->complete) throw GroupComplete(refused_->text, rank_);
  const std::string operation = "join";
  if (refused_) {
    core::ErrorParts parts{.operation = operation};
    if (refused_->rank >= 0) parts.rank = refused_->rank;
    fail(refused_->status, refused_->text, std::move(parts));
  }
  if (ended_) {
    fail(
        SHARDREC_PEER_FAILED,
        sentence("the connection to the rendezvous, which ends with rank 0's process, ended before "
                 "the group had formed: ",
                 how_),
        {.rank = 0, .operation = operation});
  }
  if (in_time) fail(SHARDREC_CLOSED, "the rendezvous was closed while this rank joined");
  core::ErrorParts parts{.operation = operation};
  if (!waiting_.missing.empty()) parts.rank = waiting_.missing.front();
  fail(SHARDREC_TIMEOUT,
       sentence("rank ", rank_, " waited ", milliseconds_until(began, deadline),
                " ms for its group to form; ", missing()),
       std::move(parts));
}

void Client::announce(ConstBytes group_state) noexcept {
  const std::lock_guard lock(mutex_);
  if (closed_ || ended_) return;
  try {
    if (group_state.size() > kMostGroupStateBytes) {
      overflowed_ = true;
    } else {
      enqueue(framed(Announce{.group_state = group_state}));
    }
  } catch (const std::exception&) {
    overflowed_ = true;  // what cannot be sent ends the connection, which the other ranks notice
  }
  alarm_.ring();
}

void Client::enqueue(ConstBytes frame) {
  if (outgoing_.size() + frame.size() > kMostUnread) {
    overflowed_ = true;
  } else {
    outgoing_.insert(outgoing_.end(), frame.begin(), frame.end());
  }
  alarm_.ring();
}

void Client::listen(Listener listener) {
  std::shared_ptr<const Listener> next;
  if (listener.heard && listener.lost) next = std::make_shared<Listener>(std::move(listener));
  // Out of a function of the listener, there is none to wait for.
  std::unique_lock telling(telling_, std::defer_lock);
  if (thread_.load() != std::this_thread::get_id()) telling.lock();
  {
    const std::lock_guard lock(mutex_);
    listener_.swap(next);
  }
  alarm_.ring();
}

template <class Message>
Bytes Client::ask(Message question, Clock::time_point deadline) {
  check_key(question.key);
  const auto began = Clock::now();
  std::unique_lock lock(mutex_);
  question.id = next_question_++;
  if (!closed_ && !ended_) {
    questions_[question.id];
    enqueue(framed(question));
  }
  // Who waits for a value waits for a rank.
  constexpr bool kWaitsForRanks = Message::kKind == FrameKind::kGet;
  const auto is_over = [&] {
    return closed_ || ended_ || questions_[question.id].answered || (kWaitsForRanks && gone_);
  };
  changed_.wait_until(lock, deadline, is_over);
  const Question result = std::move(questions_[question.id]);
  questions_.erase(question.id);
  if (result.answered && result.status == SHARDREC_OK) return result.value;
  const std::string where = sentence("key \"", question.key, "\" of the rendezvous' store");
  if (result.answered) {
    fail(result.status,
         sentence("the ", where, " was refused: it holds ", kMostStoreBytes >> 20,
                  " MiB, and a rank may wait for ", kMostWaitingGets, " keys at once"));
  }
  if (closed_)
    fail(SHARDREC_CLOSED, sentence("the rendezvous was closed; this ends the wait for ", where));
  if (ended_) {
    fail(SHARDREC_PEER_FAILED,
         sentence("the connection to the rendezvous, which ends with rank 0's process, ended, and "
                  "with it the wait for ",
                  where, ": ", how_),
         {.rank = 0});
  }
  enqueue(framed(Forget{.id = question.id}));
  if (kWaitsForRanks && gone_) {
    fail(SHARDREC_PEER_FAILED,
         sentence("rank ", *gone_, " is gone, which ends the wait for ", where, ": ", gone_how_),
         {.rank = *gone_});
  }
  fail(SHARDREC_TIMEOUT, sentence("rank ", rank_, " waited ", milliseconds_until(began, deadline),
                                  " ms for ", where));
}

void Client::set(std::string_view key, ConstBytes value, Clock::time_point deadline) {
  if (value.size() > kMostValueBytes) {
    fail(SHARDREC_INVALID_ARGUMENT, sentence("a value of the store has ", value.size(), " bytes; ",
                                             kMostValueBytes, " are accepted"));
  }
  ask(Set{.key = std::string(key), .value = value}, deadline);
}

Bytes Client::get(std::string_view key, Clock::time_point deadline) {
  return ask(Get{.key = std::string(key)}, deadline);
}

void Client::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  alarm_.ring();
}

}  // namespace shardrec::comm::rendezvous
