// One exchange of one channel: its memory and its messages under way. Passive; reused from exchange
// to exchange, so that a channel in a steady state allocates nothing of its own.
//
// Thread rule: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/clock.h"
#include "comm/communicator.h"
#include "comm/remote/envelope.h"
#include "comm/remote/link.h"
#include "core/function_ref.h"
#include "core/memory.h"

namespace shardrec::comm::remote {

// A message under way, or what became of it.
class Transfer {
 public:
  // Where the transport refuses, it has failed; throws only where memory runs out.
  void start(core::FunctionRef<std::unique_ptr<Request>()> request);
  // Waits at most so long; 0 asks. Does nothing unless pending.
  void wait(double seconds);
  void drop() noexcept { *this = {}; }

  bool pending() const noexcept { return request_ != nullptr; }
  bool failed() const noexcept { return failed_; }
  bool done() const noexcept { return !pending() && !failed(); }  // or never started
  const std::string& why() const noexcept { return why_; }
  Clock::time_point failed_at() const noexcept { return failed_at_; }

 private:
  void fail(std::string why) noexcept;

  std::unique_ptr<Request> request_;
  bool failed_ = false;
  std::string why_;
  Clock::time_point failed_at_{};
};

// The transfers of one exchange between this rank and one peer, in both directions.
struct PeerTransfers {
  enum class Inbound : uint8_t { kNothing, kEnvelope, kArrived, kMessage, kDone };

  void ask_sending();
  bool sent() const noexcept { return sending[0].done() && sending[1].done(); }
  void drop_sending() noexcept;

  alignas(64) std::array<std::byte, kEnvelopeBytes> outgoing;
  alignas(64) std::array<std::byte, kEnvelopeBytes> incoming;
  core::Scratch message;  // received, where it does not fit its envelope
  ConstBytes view{};      // of the received message, when done
  Envelope arrived{};     // from kArrived on
  Inbound inbound = Inbound::kNothing;
  // The transfers are destroyed before the memory they use.
  Transfer receiving;
  std::array<Transfer, 2> sending;  // by TransferKind
};

struct InFlightExchange {
  explicit InFlightExchange(int ranks) : by_peer(static_cast<size_t>(ranks)) {}

  // As made, but for the memory.
  void clear() noexcept;
  bool sent() const noexcept;     // to all
  bool arrived() const noexcept;  // from all

  uint64_t sequence = 0;
  Operation operation{};
  std::shared_ptr<const void> keep_alive{};
  ConstBytes own{};  // the rank's message to itself
  bool reclaimed = false;
  bool released = false;
  std::vector<PeerTransfers> by_peer;  // of the own rank: done. They end before keep_alive.
};

}  // namespace shardrec::comm::remote
