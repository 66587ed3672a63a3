// What the transports' plug-ins share: how a failure becomes a status and a sentence at the border,
// and how they keep signals away.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "comm/plugin/transport_plugin.h"
#include "core/error.h"
#include "core/signals.h"

namespace shardrec::comm::plugin {

using core::sentence;
using Clock = std::chrono::steady_clock;

// Thrown inside a plug-in; never crosses the border.
class Failure : public std::exception {
 public:
  Failure(int32_t status, int32_t peer, std::string text)
      : status_(status), peer_(peer), text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }
  int32_t status() const noexcept { return status_; }
  int32_t peer() const noexcept { return peer_; }

 private:
  int32_t status_;
  int32_t peer_;
  std::string text_;
};

inline int32_t tell(shardrec_transport_error* error, int32_t status, int32_t peer,
                    std::string_view text) noexcept {
  if (error == nullptr) return status;
  error->peer = peer;
  const size_t length = std::min(text.size(), sizeof error->text - 1);
  std::memcpy(error->text, text.data(), length);
  error->text[length] = '\0';
  return status;
}

// What std::thread throws where the system starts no more.
inline bool is_thread_shortage(const std::exception& thrown) noexcept {
  const auto* error = dynamic_cast<const std::system_error*>(&thrown);
  return error != nullptr && error->code() == std::errc::resource_unavailable_try_again;
}

// Runs function, which returns a status, and turns what it throws into one.
template <class Function>
int32_t guarded(shardrec_transport_error* error, const Function& function) noexcept {
  try {
    return function();
  } catch (const Failure& failure) {
    return tell(error, failure.status(), failure.peer(), failure.what());
  } catch (const std::bad_alloc&) {
    return tell(error, SHARDREC_TRANSPORT_OUT_OF_MEMORY, -1, "out of memory");
  } catch (const std::system_error& thrown) {
    // A thread that cannot be started, for one.
    const bool shortage = thrown.code() == std::errc::resource_unavailable_try_again ||
                          thrown.code() == std::errc::not_enough_memory;
    return tell(error, shortage ? SHARDREC_TRANSPORT_OUT_OF_MEMORY : SHARDREC_TRANSPORT_UNUSABLE,
                -1, thrown.what());
  } catch (const std::exception& thrown) {
    return tell(error, SHARDREC_TRANSPORT_UNUSABLE, -1, thrown.what());
  } catch (...) {
    return tell(error, SHARDREC_TRANSPORT_UNUSABLE, -1, "an unknown exception");
  }
}

// A moment `seconds` from now; a year at most, so that sums with it do not overflow.
inline Clock::time_point after(double seconds) {
  constexpr double kYear = 365.0 * 24 * 3600;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::clamp(seconds, 0.0, kYear)));
}

template <class Function>
std::thread start_thread(Function&& function) {
  const core::SignalsBlocked blocked;
  return std::thread(std::forward<Function>(function));
}

}  // namespace shardrec::comm::plugin
