// One rank's end of a channel between processes. It has no thread of its own: it starts to receive
// messages in its own calls, and in calls on other channels of the link (poke).
//
// An exchange sends every peer an envelope (envelope.h), and a message that does not fit it right
// after. The receive of an envelope starts one exchange ahead, so that it travels before this rank
// comes to that exchange; the receive of a message starts when its envelope is there. What arrives
// lies in memory of the exchange; the own rank's message stays where the caller put it.
//
// Outlives the communicator it was opened on; destroying it leaves what it has posted to be sent.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/clock.h"
#include "comm/communicator.h"
#include "comm/failure.h"
#include "comm/remote/group.h"
#include "comm/remote/in_flight_exchange.h"
#include "comm/remote/link_state.h"

namespace shardrec::comm::remote {

class RemoteChannel final : public Channel, public Endpoint {
 public:
  RemoteChannel(std::shared_ptr<LinkState> link_state, std::shared_ptr<Group> group,
                Purpose purpose);
  ~RemoteChannel() override;
  RemoteChannel(const RemoteChannel&) = delete;
  RemoteChannel& operator=(const RemoteChannel&) = delete;
  // Once, before anything else.
  void attach(uint32_t number) noexcept;

  Ticket post(const Operation& operation, std::span<const ConstBytes> send,
              std::shared_ptr<const void> keep_alive) override;
  void receive(Ticket ticket, std::span<ConstBytes> received) override;
  bool has_arrived(Ticket ticket) noexcept override;
  void release(Ticket ticket) noexcept override;
  void reclaim(Ticket ticket) override;

  const Group& group() const noexcept override { return *group_; }
  std::optional<Progress> progress() const noexcept override;
  bool poke() noexcept override;
  void flush(Clock::time_point until) noexcept override;

 private:
  // One wait, until an exchange has arrived or its messages are sent (waiting.cpp).
  struct Wait {
    WaitFor wait_for;
    InFlightExchange& exchange;
    CallSite site;
    Clock::time_point deadline{};
    Clock::time_point alarm{};
    double seconds = 0;  // until the deadline
    double warn = 0;     // until the alarm
  };
  void wait(InFlightExchange& exchange, WaitFor wait_for);
  bool done(InFlightExchange& exchange, WaitFor wait_for);
  void look(Wait& wait);
  void nap(const Wait& wait, bool expecting, double& longest);
  // The failure if the wait for a peer that is late can never end, or its connection broke; else
  // nullopt.
  std::optional<Failure> failure_of(const Wait& wait, int peer) const;
  bool late(const Wait& wait, int peer) const;
  const Transfer& awaited(const Wait& wait, int peer) const;
  [[noreturn]] void fail(const Wait& wait, Failure failure);
  std::string describe(const Wait& wait, int peer) const;
  void warn(const Wait& wait) const;

  int size() const noexcept { return group_->size(); }
  CallSite call_site_of(const InFlightExchange& exchange) const noexcept;
  void check(const CallSite& site) const;
  void check_post(const Operation& operation, std::span<const ConstBytes> send);

  // The exchange of this number; it is made if there is none.
  InFlightExchange& find_or_make(uint64_t sequence);
  std::unique_ptr<InFlightExchange>& at(uint64_t sequence) noexcept {
    return ring_[sequence % kRing];
  }
  // Returns nullptr if the exchange is over. Throws if it was never posted.
  InFlightExchange* find(Ticket ticket, const char* call);
  // Reuses the memory of an exchange for later ones once it is released and reclaimed.
  void recycle_if_over(InFlightExchange& exchange) noexcept;
  void recycle(uint64_t sequence) noexcept;

  void close() noexcept;  // for the peers
  std::shared_ptr<const void> copy_of(std::span<const ConstBytes> send_to,
                                      std::vector<ConstBytes>& copies) const;
  void ask_envelopes(InFlightExchange& exchange);
  void send(InFlightExchange& exchange, std::span<const ConstBytes> messages);

  // Advances the receives of an exchange. Returns true when all its messages have arrived.
  bool advance(InFlightExchange& exchange);
  // Advances all exchanges from this number on. Returns true if more is to arrive.
  bool advance_from(uint64_t sequence);
  void advance_peer(InFlightExchange& exchange, int peer);
  // Parses an envelope that has arrived. If it belongs to another exchange, the group fails.
  void parse_envelope(InFlightExchange& exchange, int peer);
  std::optional<Cause> difference(const InFlightExchange& exchange, int peer) const;
  [[noreturn]] void mismatch(InFlightExchange& exchange);
  // Advances the sends of an exchange and abandons those to peers that have stopped receiving. Returns
  // true when none is left.
  bool settle_sends(InFlightExchange& exchange);
  void count_arrivals() noexcept;

  const std::shared_ptr<LinkState> link_state_;
  const std::shared_ptr<Group> group_;
  const Purpose purpose_;
  std::atomic<uint32_t> number_{UINT32_MAX};

  // Room for the exchanges that are posted and not reclaimed, and for the next one.
  static constexpr size_t kRing = 2 * kMostInFlight;
  std::mutex turn_;  // held by the one call in progress
  std::array<std::unique_ptr<InFlightExchange>, kRing> ring_;
  std::vector<std::unique_ptr<InFlightExchange>> pool_;
  std::atomic<uint64_t> posted_{0};   // exchanges; the next one's sequence number
  std::atomic<uint64_t> arrived_{0};  // all exchanges below have come, from all ranks
};

}  // namespace shardrec::comm::remote
