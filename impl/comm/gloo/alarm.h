// Ends waits on Gloo's buffers in time. Gloo's own timeout closes every connection of the context,
// so waits are made without one and aborted from here, which leaves their request going.
//
// Gloo cannot be asked whether a request is done: a wait is the only way, and an abort that comes
// before the wait has begun hides a completion. Hence the shortest wait is kShortest long; and
// requests of a lost peer, of which Gloo forgets to end those that were half through, are waited
// for twice, a little, before they count as failed.
//
// Thread rule: any thread; one wait at a time per buffer.
#pragma once

#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/plugin_side.h"

namespace shardrec::comm::gloo_plugin {

enum class Way : uint8_t { kSend, kReceive };
enum class Ended : uint8_t { kDone, kTimeout, kLost, kCancelled };

class Alarm {
 public:
  explicit Alarm(int peers);
  ~Alarm();  // no wait may be going on
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Throws what Gloo throws: the request has failed.
  Ended wait(gloo::transport::UnboundBuffer& buffer, Way way, int peer,
             plugin::Clock::time_point deadline);

  // From now on waits for this peer that are not done end with kLost; why: the first to be given.
  void lose(int peer, const std::string& why) noexcept;
  bool is_lost(int peer) const;
  std::string why_lost(int peer) const;

  // Ends all waits, now and later.
  void cancel() noexcept;
  bool is_cancelled() const;

 private:
  struct Entry {
    gloo::transport::UnboundBuffer* buffer;
    Way way;
    int peer;
    plugin::Clock::time_point at;
    bool rung = false;
  };

  static constexpr std::chrono::microseconds kShortest{100};
  static constexpr std::chrono::milliseconds kGrace[]{std::chrono::milliseconds{20},
                                                      std::chrono::milliseconds{200}};

  void keep_time();
  void ring(Entry& entry) noexcept;
  void wake_by(plugin::Clock::time_point at) noexcept;
  bool wait_once(Entry& entry);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry*> entries_;
  plugin::Clock::time_point wake_ = plugin::Clock::time_point::max();
  std::vector<char> lost_;
  std::vector<std::string> why_;
  bool cancelled_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace shardrec::comm::gloo_plugin
