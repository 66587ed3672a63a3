// Two ranks exchange messages of growing size, through a plug-in and through a loop that calls its
// library directly, by turns; the medians of both.
//
//   transport_bench gloo [ROUNDS]
//   mpirun -n 2 transport_bench mpi [ROUNDS]
//
// One line per size, from rank 0: bytes, microseconds of ours, of the direct loop, their ratio.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "comm/remote/transport.h"
#include "core/error.h"
#include "direct.h"
#include "transport/file_store.h"

namespace shardrec::bench {
namespace {

using comm::remote::Outcome;
using comm::remote::Transport;
using Clock = std::chrono::steady_clock;

void exchange(Transport& transport, std::span<const std::byte> send, std::span<std::byte> receive) {
  const int peer = 1 - transport.rank;
  const auto in = transport.carrier->receive(peer, 1, receive);
  const auto out = transport.carrier->send(peer, 1, send);
  for (const auto& request : {in.get(), out.get()}) {
    if (request->wait(60).outcome != Outcome::kDone)
      core::fail(SHARDREC_PEER_FAILED, "an exchange failed");
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <class Function>
double microseconds(int count, const Function& once) {
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) once();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / count;
}

void measure(Transport& transport, Direct& direct, int rounds) {
  for (size_t bytes = 4 << 10; bytes <= size_t{64} << 20; bytes *= 4) {
    const std::vector<std::byte> send(bytes, std::byte{1});
    std::vector<std::byte> receive(bytes);
    const int count = static_cast<int>(std::clamp<size_t>((size_t{16} << 20) / bytes, 1, 200));
    std::vector<double> ours, theirs;
    for (int round = 0; round < rounds + 1; ++round) {
      const double mine = microseconds(count, [&] { exchange(transport, send, receive); });
      const double other = microseconds(count, [&] { direct.exchange(send, receive); });
      if (round == 0) continue;  // connections and pages are warm from then on
      ours.push_back(mine);
      theirs.push_back(other);
    }
    if (transport.rank == 0)
      std::printf("%10zu %10.1f %10.1f %6.2f\n", bytes, median(ours), median(theirs),
                  median(ours) / median(theirs));
    std::fflush(stdout);
  }
}

int run_gloo(int rank, const std::string& folder, int rounds) {
  try {
    const auto store = comm::remote::file_store(folder + "/ours");
    std::filesystem::create_directories(folder + "/direct");
    const auto direct = direct_gloo(rank, folder + "/direct");
    Transport transport =
        comm::remote::open_transport({.engine = "gloo", .rank = rank, .size = 2, .store = &store});
    measure(transport, *direct, rounds);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 1;
  }
}

int run_mpi(int rounds) {
  try {
    const auto direct = direct_mpi();
    Transport transport = comm::remote::open_transport({.engine = "mpi"});
    measure(transport, *direct, rounds);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

int main_of(int argc, char** argv) {
  const std::string engine = argc > 1 ? argv[1] : "";
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 15;
  if (engine == "mpi") return run_mpi(rounds);
  if (engine != "gloo") {
    std::fprintf(stderr, "usage: transport_bench gloo | mpi [ROUNDS]\n");
    return 2;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "shardrec_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const pid_t other = fork();
  if (other == 0) _exit(run_gloo(1, folder, rounds));
  const int status = run_gloo(0, folder, rounds);
  int its_status = 1;
  waitpid(other, &its_status, 0);
  std::filesystem::remove_all(folder);
  return status != 0 || its_status != 0 ? 1 : 0;
}

}  // namespace
}  // namespace shardrec::bench

int main(int argc, char** argv) { return shardrec::bench::main_of(argc, argv); }
