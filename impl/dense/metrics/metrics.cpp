#include "dense/metrics/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "comm/collective/all_to_all.h"
#include "compute/math/packed_sample.h"
#include "core/environment.h"
#include "core/error.h"

namespace shardrec::dense {
namespace {

constexpr size_t kLimits = 64;
constexpr int64_t kMostOnDevice = int64_t{1} << 24;  // samples: 64 MiB

constexpr comm::Operation kSummaries{.name = "metrics: summaries", .kind = 1};
constexpr comm::Operation kSamples{.name = "metrics: samples", .kind = 2};
constexpr comm::Operation kCounts{.name = "metrics: counts", .kind = 3};

// A float's predictions reach 1 long before the logits are large: the loss of a certain, wrong one
// is bounded.
constexpr double kLeast = 1e-12;

double cross_entropy(double probability, bool positive) noexcept {
  const double p = std::clamp(probability, kLeast, 1 - kLeast);
  return positive ? -std::log(p) : -std::log1p(-p);
}

double entropy(double rate) noexcept {
  return -rate * std::log(rate) - (1 - rate) * std::log1p(-rate);
}

// PairCounts as it travels.
struct Counts {
  int64_t positives = 0;
  int64_t negatives = 0;
  uint64_t doubled_low = 0;
  uint64_t doubled_high = 0;
};

template <class T>
comm::ConstBytes bytes_of(const T& value) noexcept {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

template <class T>
T value_in(comm::ConstBytes message, size_t offset = 0) noexcept {
  T value;
  std::memcpy(&value, message.data() + offset, sizeof value);
  return value;
}

// ranks - 1 predictions that part all samples into ranges of about one size. Each prediction of a
// rank stands for as many samples as there are between two of them.
struct Weighted {
  PackedSample prediction;
  double samples;
};
std::vector<PackedSample> limits_of(std::vector<Weighted>& drawn, double total, size_t ranks) {
  std::sort(drawn.begin(), drawn.end(), [](const Weighted& a, const Weighted& b) {
    return a.prediction != b.prediction ? a.prediction < b.prediction : a.samples < b.samples;
  });
  std::vector<PackedSample> limits;
  double seen = 0;
  for (const Weighted& item : drawn) {
    const double share =
        total * static_cast<double>(limits.size() + 1) / static_cast<double>(ranks);
    if (limits.size() + 1 < ranks && seen >= share) limits.push_back(item.prediction);
    seen += item.samples;
  }
  // Ranks that are left over count an empty range.
  limits.resize(ranks - 1, std::numeric_limits<PackedSample>::max());
  return limits;
}

std::span<const float> floats_of_row(const device::CallerMatrix& row) {
  return {row.rows.data, static_cast<size_t>(row.rows.cols)};
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(core::default_environment().now() - start).count();
}

[[noreturn]] void refuse(const device::DeviceSamples::Wrong& sample, std::optional<int64_t> rank) {
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence(sample.is_label ? "the label" : "the probability", " at position ",
                            sample.position, " of all since the metric was made or reset",
                            rank ? core::sentence(", on rank ", *rank, ",") : "",
                            sample.is_label ? " is neither 0 nor 1" : " is not in 0 .. 1"),
             {.rank = rank, .position = sample.position});
}

[[noreturn]] void undefined(const char* metric, const char* reason) {
  core::fail(SHARDREC_NOT_FOUND, core::sentence(metric, " is not defined: ", reason));
}

}  // namespace

Metrics::Metrics(std::shared_ptr<comm::Communicator> communicator,
                 const device::ContextOptions& place)
    : communicator_(std::move(communicator)),
      on_device_(place.device < 0 ? nullptr : std::make_unique<device::DeviceSamples>(place)),
      samples_(std::make_shared<Samples>()),
      start_(core::default_environment().now()) {}

core::DeviceSet Metrics::caller_devices() const noexcept {
  return on_device_ == nullptr ? core::kHostOnly : core::DeviceSet{.cuda = on_device_->device()};
}

void Metrics::update(const device::CallerMatrix& probabilities,
                     const device::CallerMatrix& labels) {
  if (on_device_ != nullptr) {
    if (on_device_->size() >= kMostOnDevice) take_from_device();
    on_device_->add(probabilities, labels);
  } else {
    update(floats_of_row(probabilities), floats_of_row(labels));
  }
}

void Metrics::update(std::span<const float> probabilities, std::span<const float> labels) {
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const bool known = labels[i] == 0 || labels[i] == 1;
    if (probabilities[i] >= 0 && probabilities[i] <= 1 && known) continue;
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence(known ? "the probability" : "the label", " at position ", i,
                              known ? " is not in 0 .. 1" : " is neither 0 nor 1"),
               {.position = static_cast<int64_t>(i)});
  }
  std::vector<PackedSample>& packed = samples_->packed;
  const size_t needed = packed.size() + probabilities.size();
  if (needed > packed.capacity()) packed.reserve(std::max(needed, 2 * packed.capacity()));
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const bool positive = labels[i] == 1;
    packed.push_back(compute::math::packed_sample(probabilities[i], positive));
    loss_sum_ += cross_entropy(probabilities[i], positive);
  }
}

void Metrics::take_from_device() {
  if (on_device_ == nullptr) return;
  std::vector<PackedSample>& packed = samples_->packed;
  const size_t before = packed.size();
  on_device_->move_to(packed);
  for (size_t i = before; i < packed.size(); ++i) {
    loss_sum_ += cross_entropy(compute::math::probability_of_packed(packed[i]),
                               compute::math::is_positive_sample(packed[i]));
  }
}

Metrics::Summary Metrics::summary() const {
  Summary own{.samples = static_cast<int64_t>(samples_->packed.size()),
              .loss_sum = loss_sum_,
              .seconds = seconds_since(start_)};
  if (on_device_ != nullptr && on_device_->wrong()) {
    own.wrong_position = on_device_->wrong()->position;
    own.wrong_label = on_device_->wrong()->is_label ? 1 : 0;
  }
  return own;
}

void Metrics::compute() {
  Results results;
  if (communicator_ != nullptr && communicator_->size() > 1) {
    try {
      take_from_device();
      sort_samples(samples_->packed, spare_);
      results = over_ranks(summary());
    } catch (...) {
      communicator_->fail("metrics");  // peers must not wait for the rest of it
      throw;
    }
    if (results.wrong) refuse(results.wrong->sample, results.wrong->rank);
  } else {
    take_from_device();
    if (on_device_ != nullptr && on_device_->wrong()) refuse(*on_device_->wrong(), std::nullopt);
    sort_samples(samples_->packed, spare_);
    results = {count_pairs(samples_->packed), loss_sum_, seconds_since(start_)};
  }
  results_ = results;
}

Metrics::Results Metrics::over_ranks(const Summary& own) {
  if (!collectives_) {
    collectives_.emplace(communicator_->open_channel(comm::Purpose::kStatistics),
                         communicator_->rank(), communicator_->size());
    samples_channel_.emplace(communicator_->open_channel(comm::Purpose::kStatistics));
  }
  const std::vector<PackedSample>& packed = samples_->packed;
  const size_t drawn_here = std::min(packed.size(), kLimits);
  std::vector<std::byte> message(sizeof own + drawn_here * sizeof(PackedSample));
  std::memcpy(message.data(), &own, sizeof own);
  for (size_t i = 0; i < drawn_here; ++i) {
    const PackedSample prediction = packed[i * packed.size() / drawn_here] >> 1;
    std::memcpy(message.data() + sizeof own + i * sizeof prediction, &prediction,
                sizeof prediction);
  }

  Results results;
  std::vector<Weighted> drawn;
  double total = 0;
  int rank = 0;
  for (const comm::ConstBytes theirs : collectives_->all_gather(kSummaries, message)) {
    const auto summary = value_in<Summary>(theirs);
    if (summary.wrong_position >= 0 && !results.wrong) {
      results.wrong = {
          .rank = rank,
          .sample = {.position = summary.wrong_position, .is_label = summary.wrong_label != 0}};
    }
    ++rank;
    results.loss_sum += summary.loss_sum;
    results.seconds = std::max(results.seconds, summary.seconds);
    total += static_cast<double>(summary.samples);
    const size_t count = (theirs.size() - sizeof summary) / sizeof(PackedSample);
    for (size_t i = 0; i < count; ++i) {
      drawn.push_back({value_in<PackedSample>(theirs, sizeof summary + i * sizeof(PackedSample)),
                       static_cast<double>(summary.samples) / static_cast<double>(count)});
    }
  }
  if (results.wrong) return results;
  const auto ranks = static_cast<size_t>(communicator_->size());
  const PairCounts pairs = count_pairs(own_range(limits_of(drawn, total, ranks)));
  const Counts counts{pairs.positives, pairs.negatives, static_cast<uint64_t>(pairs.doubled),
                      static_cast<uint64_t>(pairs.doubled >> 64)};
  for (const comm::ConstBytes theirs : collectives_->all_gather(kCounts, bytes_of(counts))) {
    const auto range = value_in<Counts>(theirs);
    results.pairs = add_ranges(
        results.pairs, {range.positives, range.negatives,
                        static_cast<uint128_t>(range.doubled_high) << 64 | range.doubled_low});
  }
  return results;
}

// Sends each rank its range and returns this rank's one, sorted.
std::span<const PackedSample> Metrics::own_range(const std::vector<PackedSample>& limits) {
  const std::span<const PackedSample> packed = samples_->packed;
  std::vector<comm::ConstBytes> send;
  size_t begin = 0;
  for (size_t rank = 0; rank <= limits.size(); ++rank) {
    size_t end = packed.size();
    if (rank < limits.size()) {
      const auto above = std::partition_point(
          packed.begin(), packed.end(),
          [limit = limits[rank]](PackedSample sample) { return sample >> 1 < limit; });
      end = static_cast<size_t>(above - packed.begin());
    }
    send.push_back(std::as_bytes(packed.subspan(begin, end - begin)));
    begin = end;
  }
  comm::AllToAll exchange(*samples_channel_, communicator_->size());
  exchange.start(kSamples, send, samples_);
  const std::span<const comm::ConstBytes> received = exchange.finish();
  size_t bytes = 0;
  for (const comm::ConstBytes theirs : received) bytes += theirs.size();
  range_.resize(bytes / sizeof(PackedSample));
  size_t at = 0;
  for (const comm::ConstBytes theirs : received) {
    if (!theirs.empty()) std::memcpy(range_.data() + at, theirs.data(), theirs.size());
    at += theirs.size() / sizeof(PackedSample);
  }
  exchange.release();
  exchange.reclaim();
  sort_samples(range_, spare_);
  return range_;
}

double Metrics::get(shardrec_metric metric) const {
  if (!results_) {
    core::fail(SHARDREC_INVALID_STATE, "no metric was computed yet; call compute first");
  }
  const PairCounts& pairs = results_->pairs;
  const auto samples = static_cast<double>(pairs.positives + pairs.negatives);
  const bool one_sided = pairs.positives == 0 || pairs.negatives == 0;
  const double rate = static_cast<double>(pairs.positives) / samples;
  switch (metric) {
    case SHARDREC_METRIC_AUC:
      if (one_sided) undefined("AUC", "it needs samples of both labels");
      return area(pairs);
    case SHARDREC_METRIC_NE:
      if (one_sided) undefined("normalised entropy", "it needs samples of both labels");
      return results_->loss_sum / samples / entropy(rate);
    case SHARDREC_METRIC_LOSS:
      if (samples == 0) undefined("the loss", "there are no samples");
      return results_->loss_sum / samples;
    case SHARDREC_METRIC_CTR:
      if (samples == 0) undefined("CTR", "there are no samples");
      return rate;
    case SHARDREC_METRIC_SAMPLES:
      return samples;
    case SHARDREC_METRIC_SAMPLES_PER_SECOND:
      return samples / std::max(results_->seconds, 1e-9);
    default:
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence("there is no metric number ", static_cast<int>(metric)),
                 {.value = static_cast<int>(metric)});
  }
}

void Metrics::reset() {
  if (on_device_ != nullptr) on_device_->clear();
  samples_->packed.clear();
  loss_sum_ = 0;
  start_ = core::default_environment().now();
  results_.reset();
}

}  // namespace shardrec::dense
