#include "compute/probe/probe.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "compute/probe/area.h"
#include "compute/probe/choice.h"
#include "compute/probe/machine.h"
#include "compute/probe/profile_cache.h"
#include "compute/profile/prefetch.h"
#include "core/error.h"
#include "core/host.h"
#include "core/threads.h"

namespace shardrec::compute::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kShortBag = 1;  // its outputs are as many bytes as its rows
constexpr int64_t kLongBag = 20;
constexpr size_t kRoughRounds = 2;
constexpr int kCopyRounds = 3;
constexpr int kSmallPageRounds = 3;
constexpr size_t kFinalists = 3;
// A consumer finds outputs of plain stores in the caches, which no measurement here sees.
constexpr double kStreamingGain = 1.1;
constexpr double kSmallPagesGain = 1.05;  // less is noise
constexpr double kBytesPerGb = 1e9;

// One way, and the best rates seen: rough, then fine.
struct Candidate {
  ProbeWay way;
  double rough = 0;
  double fine = 0;

  double rate() const noexcept { return fine > 0 ? fine : rough; }
};

// A case: all ways at first, then those worth a second look.
struct Contest {
  ProbeCase what;
  std::vector<Candidate> candidates;
  std::vector<TimedPrefetch> kernels;  // of the library
  double small_pages = 0;
};

// The way that kernels go without a probe comes first: it is measured everywhere. Then those that
// are most likely the fastest: time may run out.
std::vector<Candidate> all_ways(int64_t row_bytes) {
  using enum PrefetchHint;
  const ProbeWay usual{.hint = kT1, .distance_rows = usual_prefetch(row_bytes).distance_rows};
  std::vector<Candidate> ways = {{.way = usual}};
  for (const auto& [hint, distance] :
       std::initializer_list<std::pair<PrefetchHint, int64_t>>{{kT1, 32},
                                                               {kNone, kLeastPrefetchDistance},
                                                               {kT0, 16},
                                                               {kT1, 16},
                                                               {kT1, 24},
                                                               {kT1, 40},
                                                               {kT1, 48},
                                                               {kT1, 64},
                                                               {kT1, 8},
                                                               {kNta, 16},
                                                               {kT0, 8},
                                                               {kT0, 32},
                                                               {kNta, 32}}) {
    const ProbeWay way{.hint = hint, .distance_rows = distance};
    if (way != usual) ways.push_back({.way = way});
  }
  return ways;
}

std::vector<ProbeCase> all_cases() {
  std::vector<ProbeCase> cases;
  for (size_t size = 0; size < kProbeRowSizes; ++size) {
    for (const int64_t bag : {kShortBag, kLongBag}) {
      cases.push_back({MemoryAccess::kGather, size, bag});
    }
  }
  for (size_t size = 0; size < kProbeRowSizes; ++size) {
    cases.push_back({MemoryAccess::kUpdate, size, 0});
  }
  return cases;
}

// Keeps the usual way, the fastest ways and the fastest of each hint; where outputs weigh as much
// as rows, the fastest of each hint also with streaming stores.
void keep_finalists(Contest& contest) {
  std::vector<Candidate>& all = contest.candidates;
  const ProbeWay usual = all[0].way;
  std::erase_if(all, [](const Candidate& candidate) { return candidate.rough == 0; });
  std::sort(all.begin(), all.end(),
            [](const Candidate& a, const Candidate& b) { return a.rough > b.rough; });
  std::vector<Candidate> kept;
  std::array<bool, kPrefetchHints> seen = {};
  for (const Candidate& candidate : all) {
    bool& hint_seen = seen[static_cast<size_t>(candidate.way.hint)];
    const bool keeps = kept.size() < kFinalists || !hint_seen || candidate.way == usual;
    if (keeps) kept.push_back(candidate);
    hint_seen = true;
  }
  if (contest.what.bag_length == kShortBag) {
    seen = {};
    for (size_t i = 0, plain = kept.size(); i < plain; ++i) {
      bool& hint_seen = seen[static_cast<size_t>(kept[i].way.hint)];
      if (hint_seen || kept[i].way.hint == PrefetchHint::kNone) continue;
      hint_seen = true;
      kept.push_back({.way = kept[i].way});
      kept.back().way.streaming_stores = true;
    }
  }
  all = std::move(kept);
}

const Candidate* best(const Contest& contest, bool streaming) {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : contest.candidates) {
    if (candidate.way.streaming_stores != streaming) continue;
    if (best == nullptr || candidate.rate() > best->rate()) best = &candidate;
  }
  return best;
}

const Candidate& winner(const Contest& contest) {
  const Candidate* plain = best(contest, false);
  const Candidate* streaming = best(contest, true);
  const bool worth = streaming != nullptr && streaming->rate() > kStreamingGain * plain->rate();
  return worth ? *streaming : *plain;
}

RowRate result_of(const Contest& contest, int64_t threads) {
  const Candidate& won = winner(contest);
  const bool huge_pages = contest.small_pages <= kSmallPagesGain * won.rate();
  RowRate rate{.access = contest.what.access,
               .row_bytes = kProbeRowBytes[contest.what.row_size],
               .bag_length = contest.what.bag_length,
               .threads = threads,
               .hint = won.way.hint,
               .distance_rows = won.way.distance_rows,
               .kernel = choose_way(contest.kernels),
               .huge_pages = huge_pages,
               .streaming_stores = won.way.streaming_stores,
               .gb_per_second = (huge_pages ? won.rate() : contest.small_pages) / kBytesPerGb,
               .small_pages = contest.small_pages / kBytesPerGb};
  for (const Candidate& candidate : contest.candidates) {
    double& kept = candidate.way.streaming_stores
                       ? rate.streaming
                       : rate.by_hint[static_cast<size_t>(candidate.way.hint)];
    kept = std::max(kept, candidate.rate() / kBytesPerGb);
  }
  return rate;
}

// Threads together move at least what one moves alone, unless other work takes their processors.
bool was_quiet(const MemoryProfile& profile) {
  constexpr double kLeast = 0.9;
  const size_t half = profile.rows.size() / 2;
  size_t slower = 0;
  if (profile.copies.size() < 2) return true;
  for (size_t i = 0; i < half; ++i) {
    const double alone = profile.rows[i].gb_per_second;
    if (profile.rows[half + i].gb_per_second < kLeast * alone) ++slower;
  }
  return 2 * slower <= half;
}

// All contests on one number of threads.
class TeamProbe {
 public:
  TeamProbe(core::Control* control, const ProbeSizes& sizes) : control_(control), sizes_(sizes) {
    for (const ProbeCase& what : all_cases()) {
      const int64_t row_bytes = kProbeRowBytes[what.row_size];
      contests_.push_back(
          {.what = what, .candidates = all_ways(row_bytes), .kernels = kernel_ways(row_bytes)});
    }
  }

  // In bytes; an estimate: how many fine rounds there are depends on time.
  int64_t planned() const {
    const auto ways = static_cast<int64_t>(contests_[0].candidates.size() * kRoughRounds);
    const auto finalists = static_cast<int64_t>(kFinalists + kPrefetchHints + 1);
    const auto of_kernels = static_cast<int64_t>(contests_[0].kernels.size());
    const int64_t fine = (finalists + of_kernels) * sizes_.fine_rounds + kSmallPageRounds;
    return kCopyRounds * (sizes_.table / 2) +
           static_cast<int64_t>(contests_.size()) * (ways * sizes_.rough + fine * sizes_.fine) +
           static_cast<int64_t>(kProbeRowSizes) * fine * (sizes_.updates - sizes_.fine);
  }

  void huge_pages(ProbeArea& area, ProbeTeam& team) {
    threads_ = team.count();
    for (int round = 0; round < kCopyRounds; ++round) {
      advance(sizes_.table / 2);
      copy_ = std::max(copy_, area.copy_rate(team));
    }
    rough(area, team);
    fine(area, team);
  }

  // The library's kernels. All contests for each way, as rough() does.
  void kernels(ProbeArea& area, ProbeTeam& team) {
    const auto until = Clock::now() + sizes_.kernels_time;
    size_t most = 0;
    for (const Contest& contest : contests_) most = std::max(most, contest.kernels.size());
    for (size_t i = 0; i < static_cast<size_t>(sizes_.fine_rounds) * most; ++i) {
      for (Contest& contest : contests_) {
        if (Clock::now() > until) return;
        if (i % most >= contest.kernels.size()) continue;
        TimedPrefetch& timed = contest.kernels[i % most];
        const int64_t bytes = fine_bytes(contest);
        advance(bytes);
        timed.rate = std::max(timed.rate, area.kernel_rate(contest.what, timed.way, bytes, team));
      }
    }
  }

  void small_pages(ProbeArea& area, ProbeTeam& team) {
    const auto until = Clock::now() + sizes_.small_pages_time;
    for (int round = 0; round < kSmallPageRounds; ++round) {
      for (Contest& contest : contests_) {
        if (Clock::now() > until) return;
        measure(area, team, contest, winner(contest).way, fine_bytes(contest), contest.small_pages);
      }
    }
  }

  bool measured() const { return copy_ > 0; }
  void add_to(MemoryProfile& profile) const {
    profile.copies.push_back({.threads = threads_, .gb_per_second = copy_ / kBytesPerGb});
    for (const Contest& contest : contests_) profile.rows.push_back(result_of(contest, threads_));
  }

 private:
  // All contests for each way, not all ways for each contest: noise that lasts a while then spoils
  // no contest whole. The first way is measured everywhere.
  void rough(ProbeArea& area, ProbeTeam& team) {
    const auto until = Clock::now() + sizes_.rough_time;
    const size_t ways = contests_[0].candidates.size();
    for (size_t i = 0; i < kRoughRounds * ways; ++i) {
      for (Contest& contest : contests_) {
        if (i > 0 && Clock::now() > until) break;
        Candidate& candidate = contest.candidates[i % ways];
        measure(area, team, contest, candidate.way, sizes_.rough, candidate.rough);
      }
    }
    for (Contest& contest : contests_) keep_finalists(contest);
  }

  void fine(ProbeArea& area, ProbeTeam& team) {
    const auto until = Clock::now() + sizes_.fine_time;
    for (int round = 0; round < sizes_.fine_rounds; ++round) {
      for (Contest& contest : contests_) {
        // The likely best last: the others bring the state of updated rows into the caches.
        for (size_t i = contest.candidates.size(); i > 0; --i) {
          if (Clock::now() > until) return;
          Candidate& candidate = contest.candidates[i - 1];
          measure(area, team, contest, candidate.way, fine_bytes(contest), candidate.fine);
        }
      }
    }
  }

  int64_t fine_bytes(const Contest& contest) const {
    return contest.what.access == MemoryAccess::kUpdate ? sizes_.updates : sizes_.fine;
  }

  void measure(ProbeArea& area, ProbeTeam& team, const Contest& contest, const ProbeWay& way,
               int64_t bytes, double& best_rate) {
    advance(bytes);
    best_rate = std::max(best_rate, area.rate(contest.what, way, bytes, team));
  }

  void advance(int64_t bytes) {
    if (control_ != nullptr) control_->advance(bytes);
  }

  core::Control* control_;
  const ProbeSizes& sizes_;
  std::vector<Contest> contests_;
  int64_t threads_ = 1;
  double copy_ = 0;
};

}  // namespace

void keep_to_time(ProbeSizes& sizes, std::chrono::duration<double> spent, int64_t threads) {
  using std::chrono::milliseconds;
  constexpr double kLeast = 0.25;
  constexpr milliseconds kCopies(100);  // and what else has no time of its own
  const int teams = threads > 1 ? 2 : 1;
  const milliseconds wanted =
      teams * (sizes.rough_time + sizes.fine_time + sizes.small_pages_time) + sizes.kernels_time;
  if (wanted.count() == 0) return;
  const double share = std::clamp((sizes.time - spent - teams * kCopies) / wanted, kLeast, 1.0);
  for (milliseconds* time :
       {&sizes.rough_time, &sizes.fine_time, &sizes.kernels_time, &sizes.small_pages_time}) {
    *time = std::chrono::round<milliseconds>(share * *time);
  }
}

ProbeSizes probe_sizes(const Machine& machine, int threads) {
  constexpr int64_t kMiB = 1 << 20;
  ProbeSizes sizes;
  // Far beyond the caches and what is translated at once, but at most an eighth of the memory that
  // can be had.
  const auto memory = static_cast<int64_t>(
      std::min<uint64_t>(core::memory_room().least(), std::numeric_limits<int64_t>::max()));
  const int64_t most = std::max((memory / 8) / kMiB * kMiB, 64 * kMiB);
  sizes.table = std::min(sizes.table, most);
  sizes.least_table = std::min(sizes.least_table, sizes.table);
  sizes.outputs = std::min(std::clamp(2 * machine.l3_bytes, sizes.outputs, 512 * kMiB), most / 4);
  // Enough for each thread to be at work for a while.
  sizes.fine = std::min(std::clamp(4 * kMiB * threads, sizes.fine, 64 * kMiB), sizes.outputs / 4);
  sizes.least_outputs = std::min(std::max(sizes.least_outputs, 4 * sizes.fine), sizes.outputs);
  sizes.rough = std::min(std::clamp(2 * kMiB * threads, sizes.rough, 32 * kMiB), sizes.fine);
  sizes.gathered = std::min(std::max(8 * machine.l3_bytes, sizes.gathered), 512 * kMiB);
  sizes.updates = std::min(std::max(2 * machine.l3_bytes, sizes.updates), sizes.table / 8);
  return sizes;
}

MemoryProfile probe_memory(int threads, core::Control* control, ProbeSizes sizes) {
  const auto start = Clock::now();
  core::Threads one(1);
  core::Threads several(threads);
  TeamProbe alone(control, sizes);
  TeamProbe together(control, sizes);
  if (control != nullptr) {
    control->start(alone.planned() * (threads > 1 ? 2 : 1));
    control->check();
  }

  std::optional<ProbeArea> area;
  lead_team(several, [&](ProbeTeam& team) {
    area.emplace(sizes, team);
    keep_to_time(sizes, Clock::now() - start, team.count());
    if (team.count() > 1) together.huge_pages(*area, team);
  });
  lead_team(one, [&](ProbeTeam& team) {
    alone.huge_pages(*area, team);
    alone.kernels(*area, team);
  });
  lead_team(several, [&](ProbeTeam& team) {
    area->use_small_pages(team);
    if (team.count() > 1) together.small_pages(*area, team);
  });
  lead_team(one, [&](ProbeTeam& team) { alone.small_pages(*area, team); });

  MemoryProfile profile{.machine = this_machine(), .table_bytes = area->table_bytes()};
  alone.add_to(profile);
  if (together.measured()) together.add_to(profile);
  for (size_t i = 0, cases = all_cases().size(); i < profile.rows.size(); ++i) {
    profile.rows[i].kernel = profile.rows[i % cases].kernel;
  }
  // Where no second thread came in time, others have the processors.
  profile.quiet = was_quiet(profile) && (threads == 1 || together.measured());
  profile.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (control != nullptr) control->add(control->total() - control->done());
  return profile;
}

MemoryProfile probe_this_machine(int threads, core::Control* control) {
  static std::mutex* const probing = std::make_unique<std::mutex>().release();
  const std::unique_lock alone(*probing, std::try_to_lock);
  if (!alone.owns_lock()) {
    core::fail(SHARDREC_BUSY,
               "another probe is running in this process; two would measure each other");
  }
  const int count = threads == 0 ? core::default_thread_count(1) : threads;
  MemoryProfile profile = probe_memory(count, control, probe_sizes(this_machine(), count));
  keep_profile(core::default_environment(), profile);
  return profile;
}

}  // namespace shardrec::compute::probe
