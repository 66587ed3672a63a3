// A message under way: Gloo's buffer, and a wait of our own on it. Gloo's wait closes every
// connection of the rank when it times out, cannot be asked whether a message is through, and
// misses the end of its connection while the message is half through; this one does none of that.
//
// Thread rule: wait(): one thread at a time; end(): any.
#pragma once

#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/unbound_buffer.h>

#include <cstdint>
#include <memory>

#include "comm/plugin/plugin_side.h"

namespace shardrec::comm::gloo_plugin {

enum class Direction : uint8_t { kSend, kReceive };
// Messages up to here are copied: giving them up is harmless.
constexpr uint64_t kShort = 16 << 10;
constexpr plugin::Clock::time_point kNow = plugin::Clock::time_point::min();  // asks only

enum class Ended : uint8_t { kDone, kTimeout, kFailed, kEnded };

class Message final : public gloo::transport::tcp::UnboundBuffer {
 public:
  Message(const std::shared_ptr<gloo::transport::tcp::Context>& context, Direction direction,
          void* data, size_t bytes)
      : UnboundBuffer(context, data, bytes), direction_(direction) {}

  Ended wait(plugin::Clock::time_point deadline);
  // Ends every wait, now and later, but for one on a message that is through.
  void end() noexcept;
  // What Gloo said of a message that failed.
  std::string why();

 private:
  const Direction direction_;
  bool ended_ = false;
};

}  // namespace shardrec::comm::gloo_plugin
