// The failure contract between processes: whoever dies or falls silent, whenever, the others are told in time whom they
// lost, give everything back, and go on without it.
#pragma once

#include <string>
#include <vector>

#include "failures/job.h"

namespace shardrec::failures {

inline constexpr double kDeadline = 60;  // until a job that hangs is ended

const std::vector<std::string>& phases();
// Of a job whose dense weights are a set of sharded parameters.
const std::vector<std::string>& sharded_phases();
JobOptions with_sharded_weights();
bool repeats(const std::string& phase);  // in each step of a training
Trouble trouble_in(const std::string& phase, int signal, int rank, int delay_us = 0);

// Nothing of the rank's groups is left, and nothing else was amiss.
void check_tidy(const Report& report, const JobOptions& options);

// Each in a job with these options, all at once. A machine that is busy with other things may hold up one of three tries.
// Where waits have a limit, a rank that stops is told by TIMEOUT when it passes, else by PEER_FAILED.
void expect_contract(std::vector<Trouble> troubles, const JobOptions& options = {});

}  // namespace shardrec::failures
