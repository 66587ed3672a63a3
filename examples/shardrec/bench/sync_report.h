// What `bench sync` found: one line of JSON.
#pragma once

#include <string>
#include <vector>

#include "bench/sync_options.h"
#include "bench/sync_rank.h"

namespace shardrec::cli {

// Syncs of one kind, as a rank measured them.
struct MeasuredSyncs {
  std::vector<SyncTimes> steps;  // one behind the other
};

// To and from plain numbers, for the rank that prints.
std::vector<double> numbers_of(const MeasuredSyncs& syncs);
MeasuredSyncs syncs_from(const std::vector<double>& numbers);

// By rank, at least one, with as many syncs each, at least one.
struct SyncKinds {
  std::vector<MeasuredSyncs> full;
  std::vector<MeasuredSyncs> touched;
  std::vector<MeasuredSyncs> overlapped;  // of touched rows
  // Of replicas that are trained together: what is sent between them is of the steps.
  std::vector<MeasuredSyncs> exact;
  std::vector<MeasuredSyncs> sharded;
};
// steps_meanwhile: of each overlapped one.
std::string sync_report(const SyncBenchOptions& options, const SyncKinds& kinds,
                        int64_t steps_meanwhile);

}  // namespace shardrec::cli
