#include "compute/cuda/host/routing/batch_checks.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace shardrec::compute::cuda::host {
namespace {

const std::byte* item(const Integers& integers, int64_t position) {
  return static_cast<const std::byte*>(integers.data) +
         static_cast<size_t>(position) * (integers.is_64 ? sizeof(int64_t) : sizeof(int32_t));
}

}  // namespace

BatchChecks::BatchChecks(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)),
      arguments_(stream_),
      results_(stream_),
      wrong_values_(stream_),
      work_(make_memory(stream_)),
      room_(make_memory(stream_)) {}

void BatchChecks::read_lengths(std::span<const BagLengths> features,
                               std::span<CheckedLengths> checked) {
  shardrec_cuda_length_reading job = send_lengths(features);
  job.checked = results_.begin<shardrec_cuda_checked_list>(features.size(), 0);
  require(table().read_lengths(stream_->handle(), &job), "read the lengths of bags on device ",
          stream_->device());
  take_lengths(features, results_.fetch<shardrec_cuda_checked_list>(), checked);
}

shardrec_cuda_length_reading BatchChecks::send_lengths(std::span<const BagLengths> features) {
  lengths_.clear();
  tiles_.clear();
  const void* const given = features.empty() ? nullptr : features.front().given.data;
  for (const BagLengths& feature : features) {
    lengths_.push_back({.given_at = bytes_between(given, item(feature.given, feature.first)),
                        .given_64 = feature.given.is_64,
                        .are_offsets = feature.are_offsets,
                        .bags = feature.bags,
                        .most = feature.most,
                        .out = feature.out});
    tiles_.add(feature.bags, 1);
  }
  const std::span<const shardrec_cuda_bag_lengths> list(lengths_);
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_bag_lengths>(list.size()) + tiles_.bytes());
  const shardrec_cuda_length_reading job{
      .features = arguments_.add(list), .given = given, .tiles = tiles_.add_to(arguments_)};
  arguments_.send();
  return job;
}

void BatchChecks::take_lengths(std::span<const BagLengths> features,
                               std::span<const shardrec_cuda_checked_list> found,
                               std::span<CheckedLengths> checked,
                               std::span<const shardrec_cuda_wrong_values> wrong) {
  for (size_t f = 0; f < features.size(); ++f) {
    const BagLengths& feature = features[f];
    checked[f] = {};
    checked[f].sum = static_cast<int64_t>(found[f].sum);
    if (found[f].wrong == 0) continue;
    const int64_t item = first_wrong(found[f].wrong);
    const shardrec_cuda_wrong_values values = wrong.empty() ? values_at(feature, item) : wrong[f];
    checked[f].wrong.position = feature.first + item + (feature.are_offsets ? 1 : 0);
    checked[f].wrong.value = values.length;
    if (feature.are_offsets) checked[f].wrong.before = values.before;
  }
}

shardrec_cuda_wrong_values BatchChecks::values_at(const BagLengths& feature, int64_t item) {
  const int64_t position = feature.first + item;
  if (!feature.are_offsets) return {.length = wrong_values_.of(feature.given, position)};
  return {.length = wrong_values_.of(feature.given, position + 1),
          .before = wrong_values_.of(feature.given, position)};
}

void BatchChecks::list(std::span<const SamplesByBag> features) {
  sorted_.clear();
  tiles_.clear();
  list_tiles_.clear();
  int64_t samples = 0;
  uint64_t bags = 0;
  for (const SamplesByBag& feature : features) {
    sorted_.push_back({.bag_of = item(feature.bag_of, feature.first),
                       .bag_of_64 = feature.bag_of.is_64,
                       .count = feature.count,
                       .bags = feature.bags,
                       .first_sample = samples,
                       .first_bag = bags,
                       .starts = feature.starts,
                       .samples = feature.samples});
    tiles_.add(feature.count);
    list_tiles_.add(std::max(feature.count, feature.bags + 1));
    samples += feature.count;
    // A feature without bags has one for the keys of its samples, all of which are wrong.
    bags += static_cast<uint64_t>(std::max(feature.bags, int64_t{1}));
  }
  job_ = {};
  job_.samples = samples;
  job_.key_bits = std::max(static_cast<int32_t>(std::bit_width(bags)), 1);
}

void BatchChecks::sort_checked_samples(std::span<const SamplesByBag> features) {
  list(features);
  const std::span<const shardrec_cuda_samples_by_bag> sorted(sorted_);
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_samples_by_bag>(sorted.size()) +
                   tiles_.bytes() + list_tiles_.bytes());
  job_.features = arguments_.add(sorted);
  job_.sample_tiles = tiles_.add_to(arguments_);
  job_.list_tiles = list_tiles_.add_to(arguments_);
  job_.checked = results_.begin<shardrec_cuda_checked_list>(features.size(), 0);
  arguments_.send();
  const auto samples = static_cast<size_t>(job_.samples);
  job_.keys = work_.resize_as<uint64_t>(3 * samples).data();
  job_.sorted_keys = job_.keys + samples;
  job_.values = static_cast<uint32_t*>(static_cast<void*>(job_.sorted_keys + samples));
  job_.sorted_values = job_.values + samples;
  const auto sort = [&] {
    require(table().sort_samples(stream_->handle(), &job_), "sort samples by their bags on device ",
            stream_->device());
  };
  sort();  // how much room it takes
  job_.room = room_.resize(job_.room_bytes);
  sort();
}

void BatchChecks::sort_samples(std::span<const SamplesByBag> features,
                               std::span<WrongInteger> wrong) {
  sort_checked_samples(features);
  const auto found = results_.fetch<shardrec_cuda_checked_list>();
  for (size_t f = 0; f < features.size(); ++f) {
    wrong[f] = {};
    if (found[f].wrong == 0) continue;
    wrong[f].position = features[f].first + first_wrong(found[f].wrong);
    wrong[f].value = wrong_values_.of(features[f].bag_of, wrong[f].position);
  }
}

}  // namespace shardrec::compute::cuda::host
