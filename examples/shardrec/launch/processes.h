// Ranks as processes of this machine: starts them with what shardrec_comm_create_from_env reads in
// their environment, passes signals on to them, and ends the others when one fails.
//
// Called from the main thread, before this process has other threads that must not be forked.
#pragma once

#include <string>
#include <vector>

namespace shardrec::cli {

struct LaunchOptions {
  int ranks = 1;
  int ranks_per_node = 0;            // 0: all on one node
  std::string engine = "gloo";       // mpi: mpirun starts the processes
  std::vector<std::string> command;  // program and arguments, the same for all ranks
  bool capture = false;              // rank 0's standard output is kept, not shown
};

struct LaunchEnd {
  int code = 0;         // of the first that failed; 128 + its signal; 0: all went well
  std::string failure;  // "rank 2 was killed by signal 9 (Killed)"; empty: none
  std::string output;   // what was captured
};

// Returns when all processes have ended. Throws UserError where they cannot be started.
LaunchEnd launch(const LaunchOptions& options);

// The rank that this process was started as; -1: none.
int own_rank(const std::string& engine);

// The command line of this process, to start it again as ranks.
std::vector<std::string> own_command();

}  // namespace shardrec::cli
