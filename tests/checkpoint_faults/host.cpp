// A job of several ranks, in whose files a fault strikes:
//
//   checkpoint_host WORK ROOT RANKS SHARDING KEEP FAULT AT VICTIM RANK [TOKEN]
//
// RANK "all": ranks are threads of this process, and calls of all of them count. Else this process
// is that rank, over Gloo, and calls of the rank VICTIM count.
//
// WORK:
//   commit   goes on from the newest checkpoint by one step and commits it, under the fault. Prints
//            the commit's status and the number of calls. Exit code 0: committed; 3: an error.
//   background  the same with a commit in the background, during which a step is taken.
//   delta    the same with a delta, behind a whole commit without a fault.
//   commits  a commit for each AT-th call that a commit makes, with the fault at that call: each
//            succeeds or leaves the checkpoint before as the newest. Exit code 0: all was as
//            promised.
//   deltas   the same with commits two of three of which are deltas.
//   loads    the same for loading.
//   chains   the same for loading the second delta behind a whole checkpoint.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "file_faults.h"
#include "training.h"

namespace shardrec::checkpoint_faults {
namespace {

using file_faults::Fault;

struct Work {
  std::string name, root;
  Shape shape;
  int64_t keep = 0;
  Fault fault = Fault::kNone;
  long at = 0;  // of "commits" and "loads": from one call to the next
  int victim = 0;
};

[[noreturn]] void broken(const Work& work, long at, const std::string& what) {
  throw std::logic_error(work.name + ", " + file_faults::name_of(work.fault) + " at call " +
                         std::to_string(at) + ": " + what);
}

// What becomes of a call under a fault, on all ranks.
struct Outcome {
  shardrec_status status = SHARDREC_OK;  // of this rank
  std::string sentence;
  bool same = true;     // on all ranks
  bool struck = false;  // the fault, on any rank
};

// The communicator is as it was afterwards: faults of files do not end it.
Outcome under_fault(Comm& comm, const Work& work, long at, const std::function<void()>& call) {
  comm.barrier();
  const bool victim = comm.rank() == work.victim;
  if (victim) file_faults::start(work.root, work.fault, at);
  comm.barrier();
  Outcome outcome;
  outcome.status = status_of(call, &outcome.sentence);
  comm.barrier();
  bool struck = false;
  if (victim) file_faults::stop(&struck);
  std::vector<double> high = {static_cast<double>(outcome.status), struck ? 1.0 : 0.0};
  std::vector<double> low = {static_cast<double>(outcome.status)};
  comm.all_reduce(high, SHARDREC_REDUCTION_MAX);
  comm.all_reduce(low, SHARDREC_REDUCTION_MIN);
  outcome.same = high[0] == low[0];
  outcome.struck = high[1] > 0;
  return outcome;
}

int commit_once(Comm& comm, const Work& work) {
  Training training(comm, work.shape, work.root, work.keep);
  training.resume();
  const bool delta = work.name == "delta" || work.name == "background_delta";
  if (delta) training.commit_delta();  // the changes since are known
  training.train();
  comm.barrier();
  const bool victim = comm.rank() == work.victim;
  if (victim) file_faults::start(work.root, work.fault, work.at);
  comm.barrier();
  std::string sentence;
  const shardrec_status status = status_of(
      [&] {
        if (work.name == "background") {
          training.commit_while_training();
        } else if (work.name == "background_delta") {
          training.commit_delta_while_training();
        } else if (work.name == "delta") {
          training.commit_delta();
        } else {
          training.commit();
        }
      },
      &sentence);
  comm.barrier();
  if (victim) {
    const long calls = file_faults::stop();
    std::cout << ("status " + std::to_string(status) + " calls " + std::to_string(calls) + " " +
                  sentence + "\n")
              << std::flush;
  }
  return status == SHARDREC_OK ? 0 : 3;
}

// A dead disk may leave the new checkpoint in its place, whole; any other error leaves the one
// before.
void check_newest(Training& other, const Work& work, long at, const Outcome& outcome, int64_t& good,
                  uint64_t& good_digest, int64_t step, uint64_t digest) {
  if (!other.resume()) broken(work, at, "no checkpoint is there");
  const bool is_new = other.steps() == step;
  if (!is_new && other.steps() != good) broken(work, at, "an older checkpoint is the newest");
  if (outcome.status == SHARDREC_OK && !is_new) broken(work, at, "a commit was lost");
  if (outcome.status != SHARDREC_OK && is_new && work.fault != Fault::kDeadDisk) {
    broken(work, at, "a commit that failed counts: " + outcome.sentence);
  }
  if (other.digest() != (is_new ? digest : good_digest)) broken(work, at, "other values");
  if (!is_new) return;
  good = step;
  good_digest = digest;
}

// Every third one is whole; the others are deltas, which stay with what they are changes of.
void commit_at_each_call(Comm& comm, const Work& work) {
  Training training(comm, work.shape, work.root, work.keep);
  Training other(comm, work.shape, work.root, work.keep);
  if (!training.resume()) broken(work, 0, "there is no checkpoint to go on from");
  int64_t good = training.steps();
  uint64_t good_digest = training.digest();
  bool failed = false;
  for (long at = 1;; at += work.at) {
    training.train();
    const uint64_t digest = training.digest();
    const bool delta = work.name == "deltas" && at % 3 != 0;
    const Outcome outcome =
        under_fault(comm, work, at, [&] { delta ? training.commit_delta() : training.commit(); });
    if (!outcome.same) broken(work, at, "ranks got different statuses");
    if (outcome.status != SHARDREC_OK && outcome.status != SHARDREC_IO_ERROR) {
      broken(work, at, "status " + std::to_string(outcome.status) + ": " + outcome.sentence);
    }
    if (training.digest() != digest) broken(work, at, "a commit has changed the model");
    check_newest(other, work, at, outcome, good, good_digest, training.steps(), digest);
    failed = failed || outcome.status != SHARDREC_OK;
    if (outcome.struck) {
      // Works again with the disk, and removes what a dead one did not let go.
      training.train();
      work.name == "deltas" ? training.commit_delta() : training.commit();
      good = training.steps();
      good_digest = training.digest();
      continue;
    }
    if (outcome.status != SHARDREC_OK) broken(work, at, "failed without a fault");
    if (failed != (work.fault != Fault::kShort)) broken(work, at, "no fault made a commit fail");
    // One output: ranks that are threads print at the same time.
    std::cout << ("calls " + std::to_string(at) + "\n") << std::flush;
    return;
  }
}

void load_at_each_call(Comm& comm, const Work& work) {
  Training training(comm, work.shape, work.root, work.keep);
  if (!training.resume()) broken(work, 0, "there is no checkpoint to load");
  if (work.name == "chains") {
    for (int i = 0; i < 3; ++i) {  // the first one is whole
      training.train();
      training.commit_delta();
    }
    const int64_t step = training.steps();
    training.train();
    if (!training.resume() || training.steps() != step) broken(work, 0, "a delta is not loaded");
  }
  const uint64_t saved = training.digest();
  bool refused = false;
  for (long at = 1;; at += work.at) {
    training.train();
    const uint64_t trained = training.digest();
    const Outcome outcome = under_fault(comm, work, at, [&] { training.load(); });
    if (!outcome.same) broken(work, at, "ranks got different statuses");
    if (outcome.status == SHARDREC_OK) {
      if (training.digest() != saved) broken(work, at, "loaded other values: no error");
    } else if (outcome.status != SHARDREC_IO_ERROR) {
      broken(work, at, "status " + std::to_string(outcome.status) + ": " + outcome.sentence);
    } else if (training.filled_in_part()) {
      refused = true;
    } else if (training.digest() != trained) {
      broken(work, at, "a load that failed has left a mixture");
    }
    if (!training.resume() || training.digest() != saved) broken(work, at, "cannot be loaded");
    if (outcome.struck) continue;
    if (refused == (work.fault == Fault::kShort)) broken(work, at, "no load failed halfway");
    // One output: ranks that are threads print at the same time.
    std::cout << ("calls " + std::to_string(at) + "\n") << std::flush;
    return;
  }
}

int run(Comm& comm, const Work& work) {
  if (work.name == "commit" || work.name == "background" || work.name == "delta" ||
      work.name == "background_delta") {
    return commit_once(comm, work);
  }
  if (work.name == "commits" || work.name == "deltas") {
    commit_at_each_call(comm, work);
  } else if (work.name == "loads" || work.name == "chains") {
    load_at_each_call(comm, work);
  } else {
    throw std::invalid_argument("no work " + work.name);
  }
  return 0;
}

int run_as(const Work& work, const std::string& rank, const char* token) {
  if (rank != "all") {
    Comm comm(SHARDREC_ENGINE_GLOO, std::atoi(rank.c_str()), work.shape.ranks, token);
    const int code = run(comm, work);
    comm.close();
    return code;
  }
  std::vector<int> codes(static_cast<size_t>(work.shape.ranks));
  const std::string thrown = run_ranks(work.shape.ranks, [&](Comm& comm, int number) {
    codes[static_cast<size_t>(number)] = run(comm, work);
  });
  if (!thrown.empty()) throw std::runtime_error(thrown);
  return codes[0];
}

}  // namespace
}  // namespace shardrec::checkpoint_faults

int main(int count, char** words) {
  using namespace shardrec::checkpoint_faults;  // NOLINT(google-build-using-namespace)
  if (count < 10) return 2;
  try {
    const Work work{.name = words[1],
                    .root = words[2],
                    .shape = {std::atoi(words[3]), std::atoi(words[4])},
                    .keep = std::atoi(words[5]),
                    .fault = shardrec::file_faults::fault_of(words[6]),
                    .at = std::atol(words[7]),
                    .victim = std::atoi(words[8])};
    return run_as(work, words[9], count > 10 ? words[10] : "");
  } catch (const shardrec::Error& error) {
    std::cout << "error: " << error.what() << std::endl;
    return 3;
  } catch (const std::exception& error) {
    std::cout << "broken: " << error.what() << std::endl;
    return 1;
  }
}
