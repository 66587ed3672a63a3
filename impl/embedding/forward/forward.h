// The way of a batch from the ids that owners have received to the outputs of its source.
//
// Thread rule: as the collection's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "embedding/batch/output_view.h"
#include "embedding/exchange/compression.h"
#include "embedding/exchange/exchange.h"
#include "embedding/exchange/input.h"
#include "embedding/exchange/step_context.h"
#include "embedding/forward/assembly.h"
#include "embedding/forward/direct.h"
#include "embedding/forward/node_sums.h"
#include "embedding/forward/output.h"

namespace shardrec::embedding {

class Forward {
 public:
  explicit Forward(const StepContext& context);
  Forward(const Forward&) = delete;
  Forward& operator=(const Forward&) = delete;

  // Is a batch whose bags are samples written into the outputs by this rank's lookups alone?
  bool looks_up_only() const { return codec_ == nullptr && direct_.all(); }
  // The lookups of such a batch that is pending; nothing is written if it is refused.
  void look_up_pending(const InputExchange& input, int32_t output, const OutputView& out,
                       size_t bytes, PhaseTimer& timer);
  // The whole way, for a batch whose input was received: owners sum, sums travel, `output`, of so many
  // bytes, is written. lookup: its number. looked_up: did look_up_pending() write the output?
  void run(const InputExchange& input, uint64_t lookup, int32_t output, const OutputView& out,
           size_t bytes, bool looked_up, PhaseTimer& timer);
  // One more output of the same batch. Throws INVALID_STATE where other exchanges have taken the
  // place of its sums.
  void write_again(const InputExchange& input, int32_t output, const OutputView& out, size_t bytes);

 private:
  // Sends the sums to their sources and looks up this rank's own boxes of the output meanwhile.
  void exchange_sums(const InputExchange& input, uint64_t lookup, int32_t output,
                     const OutputView& out, size_t bytes, bool looked_up, PhaseTimer& timer);
  // Received partial sums are added up on their node before they cross to another.
  void exchange_node_sums(const InputExchange& input, uint64_t lookup);
  // The boxes of this rank that nobody else adds to, straight into the output.
  void look_up_directly(const InputExchange& input, int32_t output, const OutputView& out,
                        size_t bytes);
  void assemble(const InputExchange& input, int32_t output, const OutputView& out);

  // Where partial sums are added up on their nodes.
  struct OnNodes {
    explicit OnNodes(const StepContext& context)
        : sums(context.layout),
          exchange(context.make_exchange(ExchangeKind::kNodeSums, "forward")) {}
    NodeSums sums;
    Exchange exchange;
  };

  StepContext context_;
  PartialSums partial_sums_;
  DirectLookup direct_;
  // With a codec the exchange's buffer is this rank's own: for the floats that it packs, then for those
  // that it got.
  Exchange exchange_;
  std::unique_ptr<WireCodec> codec_;  // null: sums travel as they are
  std::unique_ptr<OnNodes> on_nodes_;
  OutputAssembly assembly_;
  uint64_t epoch_ = 0;  // OrderedChannel::times_let_go() while the sums' messages are held
};

}  // namespace shardrec::embedding
