// One rank of a job over a transport plug-in: transport_ranks ENGINE SCENARIO [RANK SIZE FOLDER].
// Ends with 0 when the plug-in kept its promises. SIGPIPE is at its default, as in a C host.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "core/error.h"
#include "transport/scenarios.h"

namespace shardrec::comm::remote {

Transport open_job(const Job& job, int n, double seconds) {
  static std::map<int, TransportStore> stores;
  TransportJob description{
      .engine = job.engine, .rank = job.rank, .size = job.size, .seconds = seconds};
  if (!job.folder.empty()) {
    stores[n] = file_store(job.folder / std::to_string(n));
    description.store = &stores[n];
  }
  return open_transport(description);
}

Bytes pattern(int from, int to, uint32_t tag, size_t size) {
  Bytes bytes(size);
  auto value = static_cast<uint32_t>(from * 7919 + to * 104729) ^ (tag * 2654435761U);
  for (std::byte& byte : bytes) {
    value = value * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(value >> 24U);
  }
  return bytes;
}

void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

void expect_outcome(const Result& result, Outcome outcome, const std::string& what) {
  expect(result.outcome == outcome,
         what + ": outcome " + std::to_string(static_cast<int>(result.outcome)) + " of peer " +
             std::to_string(result.peer) + " (" + result.text + "), not " +
             std::to_string(static_cast<int>(outcome)));
}

}  // namespace shardrec::comm::remote

int main(int argc, char** argv) {
  using namespace shardrec::comm::remote;
  if (argc < 3) {
    std::fprintf(stderr, "usage: transport_ranks ENGINE SCENARIO [RANK SIZE FOLDER]\n");
    return 2;
  }
  Job job{.engine = argv[1]};
  if (argc == 6) {
    job.rank = std::atoi(argv[3]);
    job.size = std::atoi(argv[4]);
    job.folder = argv[5];
  }
  for (const auto* scenarios : {&message_scenarios(), &ending_scenarios(), &failure_scenarios(),
                                &peer_memory_scenarios()}) {
    const auto found = scenarios->find(argv[2]);
    if (found == scenarios->end()) continue;
    try {
      found->second(job);
      return 0;
    } catch (const TooLate&) {
      return kTooLate;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s: %s\n", job.rank, argv[2], error.what());
      return 1;
    }
  }
  std::fprintf(stderr, "there is no scenario %s\n", argv[2]);
  return 2;
}
