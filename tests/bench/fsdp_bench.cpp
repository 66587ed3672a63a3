// What prefetch hides: steps of two ranks over units of sharded parameters, whose messages arrive a
// fixed time after they were posted, while the host computes for a fixed time with each unit. The
// argument is FSDP_PREFETCH.
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/local/local_group.h"
#include "dense/fsdp/fsdp.h"
#include "measured.h"
#include "support/forwarding.h"

namespace shardrec::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLatency = std::chrono::milliseconds(2);
constexpr auto kCompute = std::chrono::milliseconds(2);
constexpr int64_t kUnits = 6;
constexpr int64_t kSize = 1 << 14;  // elements of a unit

void pass_until(Clock::time_point time) {
  while (Clock::now() < time) std::this_thread::yield();
}

// What this rank posts at a time, all ranks post at about that time.
class LateChannel final : public test::ForwardingChannel {
 public:
  using ForwardingChannel::ForwardingChannel;
  comm::Ticket post(const comm::Operation& operation, std::span<const comm::ConstBytes> send,
                    std::shared_ptr<const void> owner) override {
    const comm::Ticket ticket = ForwardingChannel::post(operation, send, std::move(owner));
    due_[ticket.sequence] = Clock::now() + kLatency;
    return ticket;
  }
  bool has_arrived(comm::Ticket ticket) noexcept override {
    const auto due = due_.find(ticket.sequence);
    return due != due_.end() && Clock::now() >= due->second &&
           ForwardingChannel::has_arrived(ticket);
  }
  void receive(comm::Ticket ticket, std::span<comm::ConstBytes> received) override {
    pass_until(due_.at(ticket.sequence));
    due_.erase(ticket.sequence);
    ForwardingChannel::receive(ticket, received);
  }

 private:
  std::map<uint64_t, Clock::time_point> due_;
};

class LateRank final : public test::ForwardingRank {
 public:
  using ForwardingRank::ForwardingRank;
  std::shared_ptr<comm::Channel> open_channel(comm::Purpose purpose) override {
    return std::make_shared<LateChannel>(ForwardingRank::open_channel(purpose));
  }
};

void one_step(dense::Fsdp& fsdp) {
  fsdp.begin(true);
  for (int64_t unit = 0; unit < kUnits; ++unit) {
    fsdp.unshard(unit);
    fsdp.wait_unshard(unit);
    pass_until(Clock::now() + kCompute);
    fsdp.reshard(unit);
  }
  for (int64_t unit = kUnits; unit-- > 0;) {
    fsdp.unshard(unit);
    fsdp.wait_unshard(unit);
    fsdp.parameter_gradients(unit);
    pass_until(Clock::now() + kCompute);
    fsdp.mark_ready(unit);
  }
  fsdp.end();
  fsdp.wait();
  fsdp.step();
  fsdp.zero_gradients();
}

void steps_over_a_late_network(benchmark::State& state) {
  const auto group = comm::local::make_group(2, 2);
  const auto steps = static_cast<int64_t>(state.max_iterations);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto communicator = std::make_shared<LateRank>(comm::local::join(group, rank));
      dense::Fsdp fsdp({.world = communicator}, false,
                       {.prefetch = static_cast<int>(state.range(0))});
      for (int64_t unit = 0; unit < kUnits; ++unit) {
        const std::string name = std::to_string(unit);
        fsdp.add_unit("u" + name);
        fsdp.add_parameter(unit, "p" + name, {kSize});
      }
      fsdp.set_optimizer({.kind = SHARDREC_OPTIMIZER_SGD});
      fsdp.commit();
      for (int i = 0; i < 3; ++i) one_step(fsdp);
      if (rank == 0) {
        for (auto _ : state) one_step(fsdp);
      } else {
        for (int64_t i = 0; i < steps; ++i) one_step(fsdp);
      }
      communicator->leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

void register_fsdp() {
  benchmark::RegisterBenchmark("fsdp/steps_over_a_late_network", steps_over_a_late_network)
      ->Arg(0)
      ->Arg(1)
      ->Arg(2)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

}  // namespace shardrec::bench
