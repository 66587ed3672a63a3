// A program that uses MPI itself, and the engine mpi beside it: mpi_host LEVEL, under mpirun.
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "comm/remote/transport.h"
#include "core/error.h"

namespace shardrec::comm::remote {
namespace {

void expect(bool holds, const std::string& what) {
  if (!holds) core::fail(SHARDREC_INTERNAL, what);
}

void expect_refusal(const TransportJob& job, const std::string& says) {
  try {
    open_transport(job);
  } catch (const core::Error& error) {
    return expect(
        error.status() == SHARDREC_UNSUPPORTED && error.sentence().find(says) != std::string::npos,
        error.sentence());
  }
  expect(false, "opened where \"" + says + "\" was to be said");
}

void exchange(Transport& transport) {
  std::vector<std::byte> sent(100'000, std::byte{7}), received(100'000);
  const int next = (transport.rank + 1) % transport.size;
  const int previous = (transport.rank + transport.size - 1) % transport.size;
  const auto in = transport.carrier->receive(previous, 3, received);
  const auto out = transport.carrier->send(next, 3, sent);
  expect(in->wait(20).outcome == Outcome::kDone, "nothing received");
  expect(out->wait(20).outcome == Outcome::kDone, "nothing sent");
  expect(received == sent, "other bytes received");
}

void run(int wanted) {
  int level = 0, rank = 0, size = 0, finalized = 0;
  MPI_Init_thread(nullptr, nullptr, wanted, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (level < MPI_THREAD_SERIALIZED) {
    expect_refusal({.engine = "mpi"}, "MPI_THREAD_MULTIPLE");
  } else {
    expect_refusal({.engine = "mpi", .rank = rank, .size = size + 1}, "is to be rank");
    for (int i = 0; i < 2; ++i) {
      Transport transport = open_transport({.engine = "mpi", .rank = rank, .size = size});
      expect(transport.rank == rank && transport.size == size, "another rank or size");
      exchange(transport);
      int all = 0;
      MPI_Allreduce(&size, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      expect(all == size * size, "the host's own all-reduce");
    }
  }
  MPI_Finalized(&finalized);
  expect(finalized == 0, "the engine has finalized the host's MPI");
  MPI_Finalize();
  expect_refusal({.engine = "mpi"}, "has been finalized");
}

}  // namespace
}  // namespace shardrec::comm::remote

int main(int argc, char** argv) {
  try {
    const bool multiple = argc > 1 && std::string(argv[1]) == "multiple";
    shardrec::comm::remote::run(multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi_host: %s\n", error.what());
    return 1;
  }
}
