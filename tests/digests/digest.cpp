#include "digests/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <span>

#include "core/hash.h"
#include "support/one_nan.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

class Digest {
 public:
  template <class Number>
  void add(const std::vector<Number>& values)
    requires std::is_arithmetic_v<Number>
  {
    const auto count = static_cast<uint64_t>(values.size());
    hash_.update(std::as_bytes(std::span(&count, 1)));
    std::vector<decltype(bits_with_one_nan(Number{}))> bits(values.size());
    std::transform(values.begin(), values.end(), bits.begin(),
                   [](Number value) { return bits_with_one_nan(value); });
    hash_.update(std::as_bytes(std::span(bits)));
  }
  template <class Number>
  void add(const std::vector<std::vector<Number>>& lists) {
    for (const auto& list : lists) add(list);
  }
  uint64_t value() const { return hash_.digest(); }

 private:
  core::StreamingHash hash_;
};

}  // namespace

uint64_t digest_of(const Configuration& configuration, shardrec_comm* comm) {
  int32_t rank = -1;
  SR_EXPECT_OK(shardrec_comm_rank(comm, &rank));
  const auto [scenario, deal] = configuration.make();
  // Of this rank alone: ranks may be processes.
  Outcome outcome = empty_outcome(scenario, deal);
  std::mutex mutex;
  train_rank(scenario, deal, rank, comm, mutex, outcome);
  Digest own;
  own.add(outcome.outputs);
  own.add(outcome.sequences);
  own.add(outcome.weight_gradients);
  own.add(outcome.tables);
  own.add(outcome.states);
  own.add(outcome.initial);
  own.add(outcome.out_of_range);
  std::vector<int64_t> mine = {static_cast<int64_t>(own.value())};
  std::vector<int64_t> all(static_cast<size_t>(configuration.world));
  const shardrec_tensor from = vector_of(mine);
  const shardrec_tensor to = vector_of(all);
  SR_EXPECT_OK(shardrec_comm_all_gather(comm, &from, &to));
  return core::hash64(0, std::as_bytes(std::span(all)));
}

std::vector<std::pair<std::string, uint64_t>> recorded_digests() {
  std::vector<std::pair<std::string, uint64_t>> all;
  std::ifstream file(SHARDREC_RECORDED_DIGESTS);
  std::string digest;
  std::string name;
  while (file >> digest >> name) all.emplace_back(name, std::stoull(digest, nullptr, 16));
  return all;
}

}  // namespace shardrec::test
