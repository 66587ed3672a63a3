// Ranks of one job on several hosts, started as a launcher on each of them would: two per host, the
// last may have one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "namespaces.h"
#include "process.h"

namespace shardrec::hosts {

inline constexpr int kRanksPerHost = 2;
inline constexpr int kRendezvousPort = 29401;
inline constexpr const char* kSecret = "what-all-hosts-of-the-test-know";

using Variables = std::map<std::string, std::string>;

// What a rank finds in its environment; the first host is rank 0's.
Variables place_of(int rank, int ranks, const Host& first);

class Job {
 public:
  // arguments: of the program, on all ranks.
  Job(const std::vector<const Host*>& hosts, int ranks, const std::vector<std::string>& arguments,
      const std::string& program = SHARDREC_COMMAND);

  Process& rank(int rank) { return processes_[static_cast<size_t>(rank)]; }
  // What became of all, by rank; who has not ended by then has failed the test and is killed.
  std::vector<Finished> wait(double seconds = 60);

 private:
  cli::test::Scratch scratch_;
  std::vector<Process> processes_;
};

// The same by Open MPI, whose launcher runs on the first host and reaches the others not by ssh but
// by a script that enters them.
Finished mpirun(const std::vector<const Host*>& hosts, int ranks,
                const std::vector<std::string>& arguments);

}  // namespace shardrec::hosts
