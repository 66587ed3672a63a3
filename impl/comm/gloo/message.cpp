#include "comm/gloo/message.h"

#include <exception>

#include "comm/gloo/mesh.h"

namespace shardrec::comm::gloo_plugin {

Ended Message::wait(plugin::Clock::time_point deadline) {
  std::unique_lock lock(m_);
  const int& completions = direction_ == Direction::kSend ? sendCompletions_ : recvCompletions_;
  const auto over = [&] { return completions > 0 || ex_ != nullptr || ended_; };
  if (deadline != kNow)
    (direction_ == Direction::kSend ? sendCv_ : recvCv_).wait_until(lock, deadline, over);
  if (completions > 0) return Ended::kDone;
  if (ended_) return Ended::kEnded;
  return ex_ != nullptr ? Ended::kFailed : Ended::kTimeout;
}

void Message::end() noexcept {
  const std::lock_guard lock(m_);
  ended_ = true;
  (direction_ == Direction::kSend ? sendCv_ : recvCv_).notify_all();
}

std::string Message::why() {
  const std::lock_guard lock(m_);
  try {
    throwIfException();
  } catch (const std::exception& thrown) {
    return std::string(message_of(thrown));
  }
  return {};
}

}  // namespace shardrec::comm::gloo_plugin
