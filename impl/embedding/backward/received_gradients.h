// The gradient messages of one step as the owner of parts sees them: checked, cut into blocks, and
// where the gradient row of each bag of the index plan lies, in a message or in the memory of a rank
// that lends it.
//
// One thread at a time. Addresses are valid as long as the messages are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/buffer.h"
#include "embedding/backward/index_plan.h"
#include "embedding/exchange/inbox.h"
#include "embedding/exchange/lending.h"
#include "embedding/exchange/wire.h"
#include "embedding/tables/layout.h"

namespace shardrec::embedding {

class ReceivedGradients {
 public:
  ReceivedGradients(const Layout& layout, const std::shared_ptr<compute::Memory>& memory);

  // Bytes of the heads of the messages, by rank.
  std::span<const size_t> heads() const { return heads_; }

  // messages: of a step that all ranks apply, decide() has read their heads; bodies: theirs, as floats.
  // lent: by source, blocks that are not in its body; they are there until the gradients were read. Throws
  // CORRUPT_DATA, naming the rank, when one is not what the batch needs.
  void open(const Inbox& inbox, std::span<const comm::ConstBytes> messages,
            std::span<const comm::ConstBytes> bodies,
            std::span<const std::span<const GradientRows>> lent);

  // After open(): lists where the gradient rows of all bags of a plan of the same batch lie, and makes room for their
  // addresses.
  void list(const Inbox& inbox, const IndexPlan& plan);
  std::span<const compute::GradientBlock> located(size_t part) const {
    return std::span(located_).subspan(first_located_[part],
                                       first_located_[part + 1] - first_located_[part]);
  }
  // [bags] of a part of the plan: the addresses, written by what located() says.
  const float* const* rows(size_t part) const { return rows_[part]; }

 private:
  const Layout& layout_;
  std::span<const Block> own_blocks_;
  std::vector<uint8_t> updated_;                 // by own block: do gradients come for it?
  std::vector<size_t> heads_;                    // by source, all the same
  std::vector<GradientRows> blocks_;             // as Inbox::present_blocks()
  std::vector<compute::GradientBlock> located_;  // of the parts, one after the other
  std::vector<size_t> first_located_;            // [parts + 1]
  std::vector<const float**> rows_;              // by part
  compute::Buffer memory_;
};

}  // namespace shardrec::embedding
