// Which samples of output 0 each bag of a feature stands for, in a batch whose features have batch
// sizes of their own (TorchRec's variable batch size: unique bags and an inverse index). Built in
// begin, from the caller's inverse index; read by the assembly of outputs and by the packing of
// gradients. Not thread-safe while being built.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/backend.h"
#include "compute/bags.h"
#include "compute/buffer.h"
#include "compute/host_staging.h"
#include "embedding/batch/verdict.h"
#include "plan/model/model.h"
#include "shardrec/tensor.h"

namespace shardrec::embedding {

class Expansion {
 public:
  explicit Expansion(const std::shared_ptr<compute::Memory>& memory) : memory_(memory) {}

  // Every bag is the sample of its number.
  void clear() { present_ = false; }
  bool present() const { return present_; }

  // inverse: [features * batch_size], checked but for its values: the bag of each sample of each
  // feature. first_bags: [features + 1]. Returns the first value that is no bag, or none. Sequences
  // have no place in output 0: their part of the inverse index is not read. staging: of the inverse index; null: it
  // is where it was given.
  Verdict build(const compute::Integers& inverse, std::span<const int64_t> first_bags,
                int64_t batch_size, const plan::Model& model, compute::RoutingOperations& routing,
                compute::HostStaging* staging);

  // The samples of the bags of a pooled feature.
  compute::BagSamples samples(int32_t feature) const {
    if (!present_) return {};
    return samples_[static_cast<size_t>(feature)];
  }

 private:
  bool present_ = false;
  std::vector<compute::BagSamples> samples_;  // by feature
  // While it is built: of the pooled features.
  std::vector<int32_t> pooled_;
  std::vector<compute::SamplesByBag> sorted_;
  std::vector<compute::WrongInteger> wrong_;
  compute::Buffer memory_;
};

}  // namespace shardrec::embedding
