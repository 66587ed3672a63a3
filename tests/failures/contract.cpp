#include "failures/contract.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <tuple>

namespace shardrec::failures {
namespace {

// What a rank learned in a group; "": it did not come to the end.
std::string digest_of(const Report& report, int generation) {
  const auto found = report.digests.find(generation);
  return found == report.digests.end() ? "" : found->second;
}

bool has_third_group(const JobOptions& options) {
  return options.trouble.rank >= 0 && !options.lonely;
}

// The bits that so many ranks come to when all is well.
std::string expected_digest(JobOptions options, int count) {
  static std::map<std::tuple<std::string, std::vector<std::string>, int, int>, std::string> known;
  std::string& digest = known[{options.engine, options.environment, options.steps, count}];
  if (digest.empty()) {
    options.count = count;
    options.trouble = {};
    Job job(options);
    EXPECT_TRUE(job.wait(kDeadline)) << job.output();
    digest = digest_of(job.report(0), 1);
    EXPECT_NE(digest, "") << job.output();
    for (int number = 0; number < count; ++number) {
      SCOPED_TRACE("rank " + std::to_string(number));
      const Report report = job.report(number);
      for (const Failed& failed : report.failed) ADD_FAILURE() << failed.sentence;
      check_tidy(report, job.options());
      EXPECT_EQ(digest_of(report, 1), digest);
    }
  }
  return digest;
}

// Of one rank that outlives another. Returns how late it was told.
double check_failed(const Report& report, const JobOptions& options, int64_t struck) {
  const Trouble& trouble = options.trouble;
  const bool times_out = trouble.signal == SIGSTOP && options.limit > 0;
  double latest = 0;
  // A little later than these begin, all may be over.
  const bool last = trouble.phase == "barrier" || trouble.phase == "close";
  EXPECT_TRUE(!report.failed.empty() || trouble.phase == "destroy" ||
              (last && trouble.delay_us > 0))
      << "no call failed";
  for (const Failed& failed : report.failed) {
    const std::string said = failed.caller + ", in " + failed.phase + ": " + failed.sentence;
    // Whoever had not joined when it died is late, as far as anybody can know.
    const bool late = trouble.phase == "create" && failed.status == "SHARDREC_TIMEOUT";
    const char* const expected = late || times_out ? "SHARDREC_TIMEOUT" : "SHARDREC_PEER_FAILED";
    EXPECT_EQ(failed.status, expected) << said;
    EXPECT_NE(failed.operation, "-") << said;
    // NCCL does not tell which rank was late: the one that noticed it is named then.
    if (times_out && options.engine == "nccl") {
      EXPECT_GE(failed.rank, 0) << said;
    } else {
      EXPECT_EQ(failed.rank, trouble.rank) << said;
    }
    EXPECT_NE(failed.sentence.find("rank " + std::to_string(failed.rank)), std::string::npos)
        << said;
    if (!late) latest = std::max(latest, static_cast<double>(failed.when - struck) * 1e-9);
  }
  return latest;
}

void check_exit(const Job& job, int number) {
  EXPECT_TRUE(WIFEXITED(job.status(number)) && WEXITSTATUS(job.status(number)) == 0)
      << job.status(number) << "\n"
      << job.output();
}

// It had stopped, and was continued: its group had gone on without it.
void check_continued(const Job& job, const Report& report) {
  check_exit(job, job.options().trouble.rank);
  EXPECT_FALSE(report.failed.empty()) << "no call failed";
  for (const Failed& failed : report.failed) {
    EXPECT_TRUE(failed.status == "SHARDREC_PEER_FAILED" || failed.status == "SHARDREC_TIMEOUT")
        << failed.status << ": " << failed.sentence;
    EXPECT_GE(failed.rank, 0) << failed.sentence;
    EXPECT_NE(failed.operation, "-") << failed.sentence;
  }
  JobOptions options = job.options();
  options.lonely = true;  // it is in no third group
  check_tidy(report, options);
}

// Returns how late the last of the others was told.
double check_others(Job& job) {
  const Trouble& trouble = job.options().trouble;
  SCOPED_TRACE(trouble.text());
  if (!job.wait(kDeadline)) {
    ADD_FAILURE() << "a process hung\n" << job.output();
    return 0;
  }
  const Report victim = job.report(trouble.rank);
  EXPECT_TRUE(victim.struck) << "nothing happened to it";
  double latest = 0;
  for (int number = 0; number < job.options().count; ++number) {
    if (number == trouble.rank) continue;
    SCOPED_TRACE("seen by rank " + std::to_string(number));
    check_exit(job, number);
    const Report report = job.report(number);
    latest = std::max(latest, check_failed(report, job.options(), victim.struck.value_or(0)));
    check_tidy(report, job.options());
    if (!has_third_group(job.options())) continue;
    EXPECT_EQ(digest_of(report, 2), expected_digest(job.options(), job.options().count - 1))
        << "what the others learned without it";
  }
  if (trouble.goes_on) {
    SCOPED_TRACE("seen by itself");
    check_continued(job, victim);
  }
  return latest;
}

double limit_of(const JobOptions& options) {
  if (options.trouble.signal == SIGKILL) return 1;
  return options.limit > 0 ? options.limit + 3 : 5;
}

}  // namespace

const std::vector<std::string>& phases() {
  static const std::vector<std::string> all = {
      "create", "plan",      "mesh", "collection", "commit",  "begin", "forward", "backward",
      "reduce", "sync_wait", "sync", "sync_begin", "barrier", "close", "destroy"};
  return all;
}

const std::vector<std::string>& sharded_phases() {
  static const std::vector<std::string> all = {"fsdp_commit", "set_full",  "unshard", "mark_ready",
                                               "fsdp_wait",   "fsdp_step", "full"};
  return all;
}

JobOptions with_sharded_weights() { return {.environment = {"SHARDREC_TEST_SHARDED=1"}}; }

bool repeats(const std::string& phase) {
  const auto of_steps = sharded_phases().begin() + 2;
  if (std::find(of_steps, of_steps + 4, phase) != of_steps + 4) return true;
  const auto first = phases().begin() + 5, end = phases().begin() + 12;
  return std::find(first, end, phase) != end;
}

Trouble trouble_in(const std::string& phase, int signal, int rank, int delay_us) {
  return {.rank = rank,
          .phase = phase,
          .step = repeats(phase) ? 2 : 0,
          .signal = signal,
          .delay_us = delay_us};
}

void check_tidy(const Report& report, const JobOptions& options) {
  const size_t groups = has_third_group(options) ? 3 : 2;
  EXPECT_TRUE(report.ended);
  EXPECT_EQ(report.left.size(), groups);
  // All tests may run on devices (SHARDREC_TEST_DEVICES); those that say so must.
  const bool on_devices = options.on_devices || !report.peer_bytes.empty();
  for (const Left& left : report.left) {
    EXPECT_LE(left.threads, 0);
    EXPECT_LE(left.files, 0);
    EXPECT_EQ(left.objects, 0);
  }
  EXPECT_EQ(report.destroyed.size(), groups);
  // By CUDA IPC each collection, and the set, waits for a peer that has stopped to close what it has of theirs.
  const bool waits_for_stopped =
      on_devices && options.trouble.signal == SIGSTOP && options.engine == "gloo";
  for (const auto& [generation, nanoseconds] : report.destroyed) {
    EXPECT_LT(static_cast<double>(nanoseconds) * 1e-9, waits_for_stopped ? 10 : 3)
        << "group " << generation;
  }
  for (const std::string& line : report.others) ADD_FAILURE() << line;
  if (!on_devices) return;
  ASSERT_EQ(report.peer_bytes.size(), groups);
  if (options.engine == "nccl") {
    EXPECT_EQ(report.peer_bytes.back(), 0) << "NCCL carried messages";
    return;
  }
  EXPECT_GT(report.peer_bytes.front(), 0) << "messages went through the hosts";
  if (groups == 3) {
    EXPECT_GT(report.peer_bytes[2], report.peer_bytes[1])
        << "messages of the ranks that are left went through the hosts";
  }
}

void expect_contract(std::vector<Trouble> troubles, const JobOptions& options) {
  // Before the jobs, not beside them.
  if (!options.lonely) (void)expected_digest(options, options.count - 1);
  for (int attempt = 0; !troubles.empty(); ++attempt) {
    std::vector<std::unique_ptr<Job>> jobs;
    for (const Trouble& trouble : troubles) {
      JobOptions of = options;
      of.trouble = trouble;
      jobs.push_back(std::make_unique<Job>(of));
    }
    std::vector<Trouble> late;
    for (const auto& job : jobs) {
      const Trouble& trouble = job->options().trouble;
      const double seconds = check_others(*job);
      if (seconds < limit_of(job->options())) continue;
      late.push_back(trouble);
      EXPECT_LT(attempt, 2) << trouble.text() << ": told " << seconds << " s later";
    }
    if (testing::Test::HasFailure()) return;
    troubles = late;
  }
}

}  // namespace shardrec::failures
