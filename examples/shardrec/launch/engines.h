// The engines that the command offers, one row each: options, help and checks read these rows.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace shardrec::cli {

struct Engine {
  const char* name;
  bool in_processes = true;  // else ranks are threads of one process
  // The environment variable in which a process finds its rank.
  const char* rank_variable = "RANK";
  bool by_mpirun = false;  // mpirun starts the processes
};

inline constexpr std::array kEngines{
    Engine{.name = "local", .in_processes = false},
    Engine{.name = "gloo"},
    Engine{.name = "mpi", .rank_variable = "OMPI_COMM_WORLD_RANK", .by_mpirun = true},
    Engine{.name = "nccl"},
};

// What --engine says of the engines of kEngines.
inline constexpr const char* kEngineHelp =
    "Ranks are local (threads), or processes: gloo, mpi, or nccl between GPUs";
inline constexpr const char* kProcessEngineHelp =
    "gloo, mpi (mpirun starts the processes), or nccl (between GPUs)";

// The row of a name; throws UserError where there is none.
const Engine& find_engine(std::string_view name);
inline bool in_processes(std::string_view name) { return find_engine(name).in_processes; }

// The names of all engines, and of those between processes, in the order of the rows.
std::vector<std::string> engine_names();
std::vector<std::string> process_engine_names();

}  // namespace shardrec::cli
