#include "job.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

namespace shardrec::hosts {
namespace {

// Open MPI starts its daemons by AGENT HOST COMMAND...
std::string agent_script(const std::vector<const Host*>& hosts) {
  std::string script = "#!/bin/sh\ncase $1 in\n";
  for (const Host* host : hosts) {
    script += host->address() + ") process=" + std::to_string(host->holder()) + " ;;\n";
  }
  return script +
         "esac\nshift\nexec nsenter --net=/proc/$process/ns/net --uts=/proc/$process/ns/uts -- "
         "sh -c \"$*\"\n";
}

}  // namespace

Variables place_of(int rank, int ranks, const Host& first) {
  const int before = rank / kRanksPerHost * kRanksPerHost;
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(ranks)},
          {"LOCAL_RANK", std::to_string(rank - before)},
          {"LOCAL_WORLD_SIZE", std::to_string(std::min(kRanksPerHost, ranks - before))},
          {"MASTER_ADDR", first.address()},
          {"MASTER_PORT", "29400"},
          {"SHARDREC_PORT", std::to_string(kRendezvousPort)},
          {"SHARDREC_SECRET", kSecret},
          {"SHARDREC_ALLOW_PLAIN_TCP", "1"}};
}

Job::Job(const std::vector<const Host*>& hosts, int ranks,
         const std::vector<std::string>& arguments, const std::string& program) {
  std::vector<std::string> command{program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  for (int rank = 0; rank < ranks; ++rank) {
    processes_.emplace_back(*hosts[static_cast<size_t>(rank / kRanksPerHost)], command,
                            place_of(rank, ranks, *hosts[0]),
                            scratch_.path("rank" + std::to_string(rank)));
  }
}

std::vector<Finished> Job::wait(double seconds) {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds));
  std::vector<Finished> all;
  for (size_t rank = 0; rank < processes_.size(); ++rank) {
    auto finished = processes_[rank].wait(deadline);
    if (!finished) {
      ADD_FAILURE() << "rank " << rank << " hangs: " << processes_[rank].err();
      finished = Finished{-1, processes_[rank].out(), processes_[rank].err()};
    }
    all.push_back(*std::move(finished));
  }
  return all;
}

Finished mpirun(const std::vector<const Host*>& hosts, int ranks,
                const std::vector<std::string>& arguments) {
  const cli::test::Scratch scratch;
  scratch.write("agent", agent_script(hosts));
  std::filesystem::permissions(scratch.path("agent"), std::filesystem::perms::owner_all);
  std::string places;
  for (const Host* host : hosts) {
    places += (places.empty() ? "" : ",") + host->address() + ":" + std::to_string(kRanksPerHost);
  }
  std::vector<std::string> command{"mpirun",
                                   "--bind-to",
                                   "none",
                                   "--mca",
                                   "plm_rsh_agent",
                                   scratch.path("agent"),
                                   "--mca",
                                   "btl_tcp_if_include",
                                   "eth0",
                                   "--mca",
                                   "oob_tcp_if_include",
                                   "eth0",
                                   "--host",
                                   places,
                                   "-n",
                                   std::to_string(ranks),
                                   SHARDREC_COMMAND};
  command.insert(command.end(), arguments.begin(), arguments.end());
  // A folder of this run's own: hosts of other runs have the same names.
  const Variables variables{{"SHARDREC_ENGINE", "mpi"},
                            {"TMPDIR", scratch.path("")},
                            {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                            {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  Process process(*hosts[0], command, variables, scratch.path("mpirun"));
  const auto finished = process.wait(Clock::now() + std::chrono::seconds(60));
  if (finished) return *finished;
  ADD_FAILURE() << "mpirun hangs";
  return {-1, process.out(), process.err()};
}

}  // namespace shardrec::hosts
