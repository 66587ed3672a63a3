// A batch as the caller gave it, and its shape after the checks that need no table: step 1 of the
// exchange. Ids are checked while they are routed (route.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/backend.h"
#include "compute/buffer.h"
#include "core/tensor.h"
#include "embedding/batch/expansion.h"
#include "embedding/batch/finite_check.h"
#include "embedding/batch/given_tensors.h"
#include "embedding/batch/verdict.h"
#include "plan/model/model.h"
#include "shardrec/batch.h"
#include "shardrec/tensor.h"

namespace shardrec::embedding {

// Ids of one batch of one rank, at most: positions and counts on the wire have 32 bits.
constexpr int64_t kMostIds = (int64_t{1} << 31) - 1;

// As the caller gave it, every member there; struct_size is not read.
using BatchArguments = shardrec_batch;

// The batch with normalised bag lengths. Its pointers to what the caller gave are valid during begin
// only. One thread at a time; filling it again reuses its memory.
class CheckedBatch {
 public:
  explicit CheckedBatch(const std::shared_ptr<compute::Memory>& memory)
      : lengths_memory_(memory), expansion_(memory) {}

  // Returns the first defect of the arguments, of the lengths, or none.
  Verdict fill(const BatchArguments& arguments, const plan::Model& model,
               compute::Backend& backend);
  // The same in two halves, for who has unread_lengths() read in between (count(), or a LocalBatch): what is wrong but
  // for the lengths; then, where that was nothing and there is more data, what the reading found.
  Verdict open(const BatchArguments& arguments, const plan::Model& model,
               compute::Backend& backend);
  compute::BatchLengths unread_lengths() { return {unread_, checked_, ids_}; }
  // RoutingOperations::count_batch() of the batch, which is open. Of values and lengths in the host's memory, waits for no
  // operation but those that were called before the batch before had begun. False also of a batch without bags, which has
  // nothing to be counted.
  bool count(std::span<compute::RoutedIds> features, std::span<compute::CheckedIds> checked,
             std::span<compute::BlockCount> counts, compute::Backend& backend);
  // The staging that counted the batch and deduplicates its messages. Null if the back end does both.
  compute::HostStaging* staging() const {
    return given_.staging_of({Given::kValues, Given::kLengths});
  }
  Verdict finish(const BatchArguments& arguments, const plan::Model& model,
                 compute::Backend& backend);
  // The same where bag and sample are the same: without the caller's memory.
  Verdict finish_lengths();
  // All operations that read what the caller gave have been called.
  void release_given() { given_.release(); }

  int64_t batch_size() const { return batch_size_; }
  bool no_more_data() const { return no_more_data_; }
  // Have its features batch sizes of their own?
  bool variable() const { return variable_; }
  bool weighted() const { return weights_ != nullptr; }

  // Number of bags of a feature.
  int64_t samples(int32_t feature) const {
    return first_bags_[static_cast<size_t>(feature) + 1] -
           first_bags_[static_cast<size_t>(feature)];
  }
  // Bag lengths of a feature, [samples].
  std::span<const uint32_t> lengths(int32_t feature) const {
    return lengths_.subspan(static_cast<size_t>(first_bags_[static_cast<size_t>(feature)]),
                            static_cast<size_t>(samples(feature)));
  }
  // Bags of all features.
  int64_t bags() const { return first_bags_.back(); }
  // Of all features.
  int64_t ids() const { return first_ids_.back(); }
  // Ids that were given, before the lengths are read.
  int64_t given_ids() const { return ids_; }
  // Position of the feature's first id in values.
  int64_t first_id(int32_t feature) const { return first_ids_[static_cast<size_t>(feature)]; }
  int64_t ids(int32_t feature) const {
    return first_ids_[static_cast<size_t>(feature) + 1] - first_ids_[static_cast<size_t>(feature)];
  }

  // Are NaN and infinities looked for among weights, and is a batch with one refused?
  void set_non_finite(shardrec_non_finite how) { how_non_finite_ = how; }
  // May the batch, which is open, be refused for its weights?
  bool may_refuse_weights() const {
    return weighted() && how_non_finite_ == SHARDREC_NON_FINITE_ERROR;
  }
  // The first NaN or infinity of weights that were looked through; good: none.
  const Verdict& non_finite() const { return non_finite_; }

  // The samples that the bags stand for; not present: bag and sample are the same.
  const Expansion& expansion() const { return expansion_; }

  bool ids_are_64() const { return ids_are_64_; }
  const void* values() const { return values_; }
  const float* weights() const { return weights_; }

 private:
  Verdict refuse(const Verdict& verdict);
  // All but the integers themselves; sets ids_ and first_bags_. devices: what operations reach of the
  // caller's; sizes, and offsets, whose ends the host reads, are the host's.
  Verdict check_tensors(const BatchArguments& arguments, int64_t features, core::DeviceSet devices);
  // Checks and reads sizes; leaves the number of bags before each feature in first_bags_.
  Verdict read_sizes(const BatchArguments& arguments, int64_t features);
  // Of lengths or, where are_offsets, of offsets, the ends of which the host reads.
  Verdict list_lengths(const shardrec_tensor& given, bool are_offsets);
  Verdict check_lengths(bool are_offsets);
  // For check_weights().
  void look_through(const shardrec_tensor& weights, compute::Backend& backend);
  // The last check, of a batch without another defect.
  Verdict check_weights();

  int64_t batch_size_ = 0;
  bool no_more_data_ = false;
  bool variable_ = false;
  bool ids_are_64_ = false;
  const void* values_ = nullptr;
  const float* weights_ = nullptr;
  shardrec_non_finite how_non_finite_ = SHARDREC_NON_FINITE_ALLOW;
  FiniteCheck finite_weights_;
  Verdict non_finite_;
  int64_t ids_ = 0;
  compute::Buffer lengths_memory_;
  std::span<uint32_t> lengths_;
  Expansion expansion_;
  GivenTensors given_;
  std::vector<int64_t> first_bags_;  // [features + 1]
  std::vector<int64_t> first_ids_;   // [features + 1]
  // While lengths are read, by feature.
  std::vector<compute::BagLengths> unread_;
  std::vector<compute::CheckedLengths> checked_;
};

}  // namespace shardrec::embedding
