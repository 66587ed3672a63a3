// Step 7 of the exchange on the source rank: scale the output gradients of non-empty bags, and of
// the ids of sequences, and pack them for the owners of their boxes.
#pragma once

#include <span>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/gradient_operations.h"
#include "embedding/backward/divisors.h"
#include "embedding/batch/expansion.h"
#include "embedding/batch/output_view.h"
#include "embedding/exchange/lending.h"
#include "embedding/exchange/route.h"
#include "embedding/exchange/wire.h"
#include "embedding/tables/layout.h"

namespace shardrec::embedding {

class GradientPacking {
 public:
  explicit GradientPacking(const Layout& layout);

  // Makes room for the gradients of a batch in `buffer` and writes the headers. unscaled: pooled
  // gradients are packed as they are, too. divisors: of the batch. loan: the caller's
  // gradients are floats and there until the step is taken: blocks that need no change are not
  // packed, those for this rank or those for all, as the loan says.
  void lay_out(const RoutedBatch& routed, bool unscaled, const Divisors& divisors, const Loan& loan,
               comm::MessageBuffer& buffer);

  // Writes the gradient of one output, divided, clamped to the max_gradient of the
  // table's optimizer, divided by the bag's length for MEAN.
  // Before that, the gradients of the samples that share a bag are added up in ascending order.
  void pack(const RoutedBatch& routed, const Expansion& expansion, int32_t output,
            const OutputView& gradient, compute::Backend& backend);

  // Completes the headers of the messages, before they are sent.
  void seal(bool accumulate, uint64_t settings);

  // Messages with headers but no blocks, for a step that this rank does not apply.
  void decline(GradientVerdict decision, const Verdict& verdict, comm::MessageBuffer& buffer);

  // For the channel, by rank.
  std::span<const comm::ConstBytes> messages() const { return messages_; }
  // What of them operations write; none of a message that declines.
  std::span<const comm::ConstBytes> bodies() const { return bodies_; }
  // All packed: brings the bodies to where the channel reads them.
  void publish(const comm::MessageBuffer& buffer) const;

 private:
  // A block that is not empty of a message to its part's owner.
  struct Target {
    const SentBlock* block = nullptr;
    int32_t part = 0;
    int32_t feature = 0;
    float* rows = nullptr;
    float* unscaled = nullptr;     // null: not wanted
    GradientRows* lent = nullptr;  // of the lending; null: packed
  };
  size_t target_bytes(const Target& target) const;
  void lend(const Target& target, const OutputView& gradient);
  compute::BagGradients bag_gradients(const RoutedBatch& routed, const Expansion& expansion,
                                      const Target& target, const OutputView& gradient) const;
  compute::SequenceGradients sequence_gradients(const RoutedBatch& routed, const Target& target,
                                                const OutputView& gradient) const;
  compute::OutputGradient gradient_of(const Target& target, const OutputView& gradient) const;
  float divisor_of(const Target& target) const;
  float max_gradient_of(const Target& target) const;

  bool may_lend(const Block& block) const;
  const Part& part_of(const Block& block) const {
    return layout_.parts()[static_cast<size_t>(block.part)];
  }
  const Layout& layout_;
  std::vector<std::byte*> headers_;  // of messages_
  std::vector<comm::ConstBytes> messages_;
  std::vector<comm::ConstBytes> bodies_;
  std::vector<Target> targets_;  // in the order of the messages
  std::vector<size_t> lent_;     // by owner: blocks of the lending
  Divisors divisors_;
  std::span<const compute::ColumnMap> columns_of(int32_t part) const {
    const Part& about = layout_.parts()[static_cast<size_t>(part)];
    return columns_[static_cast<size_t>(about.column_cut)];
  }
  std::vector<std::vector<compute::ColumnMap>> columns_;  // as Layout::column_cuts()
  // While packing.
  std::vector<compute::BagGradients> bags_;
  std::vector<compute::SequenceGradients> sequences_;
};

}  // namespace shardrec::embedding
