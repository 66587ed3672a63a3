// All-to-all of the local engine, ranks as threads: every rank posts a message for each rank,
// copies what it received out of the senders' memory, and waits until its own was read.
#include <thread>

#include "comm/local/local_group.h"
#include "measured.h"

namespace shardrec::bench {
namespace {

struct Rank {
  std::shared_ptr<comm::Communicator> communicator;
  std::shared_ptr<comm::Channel> channel;
  std::vector<std::byte> send;
  std::vector<std::byte> copy;
};

void exchange_once(Rank& rank, size_t ranks, size_t bytes, std::vector<comm::ConstBytes>& views) {
  std::fill(views.begin(), views.end(), comm::ConstBytes(rank.send));
  const comm::Ticket ticket = rank.channel->post({.name = "bench"}, views, nullptr);
  rank.channel->receive(ticket, views);
  for (size_t p = 0; p < ranks; ++p) {
    std::memcpy(rank.copy.data() + p * bytes, views[p].data(), bytes);
  }
  rank.channel->release(ticket);
  rank.channel->reclaim(ticket);
}

void exchange(benchmark::State& state, size_t ranks, size_t bytes) {
  const auto group = comm::local::make_group(static_cast<int>(ranks), static_cast<int>(ranks));
  std::vector<Rank> all(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    all[r].communicator = comm::local::join(group, static_cast<int>(r));
    all[r].channel = all[r].communicator->open_channel(comm::Purpose::kOutput);
    all[r].send.assign(bytes, std::byte{1});
    all[r].copy.assign(bytes * ranks, std::byte{0});
  }
  {
    const auto steps = static_cast<int64_t>(state.max_iterations);
    std::vector<std::jthread> others;
    for (size_t r = 1; r < ranks; ++r) {
      others.emplace_back([&, r] {
        std::vector<comm::ConstBytes> views(ranks);
        for (int64_t i = 0; i < steps; ++i) exchange_once(all[r], ranks, bytes, views);
      });
    }
    std::vector<comm::ConstBytes> views(ranks);
    for (auto _ : state) exchange_once(all[0], ranks, bytes, views);
  }
  for (Rank& rank : all) rank.communicator->leave();
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(ranks * ranks * bytes));
}

}  // namespace

void register_exchange() {
  for (const size_t ranks : {2, 4}) {
    for (const size_t bytes : {size_t{8}, size_t{64} << 10, size_t{1} << 20, size_t{16} << 20}) {
      const std::string name =
          "exchange/ranks:" + std::to_string(ranks) + "/bytes:" + std::to_string(bytes);
      benchmark::RegisterBenchmark(name.c_str(), [ranks, bytes](benchmark::State& state) {
        exchange(state, ranks, bytes);
      })->UseRealTime();
    }
  }
}

}  // namespace shardrec::bench
