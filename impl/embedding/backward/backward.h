// The way of a batch's gradients from the source of its bags to the owners of its rows, which update them.
//
// Thread rule: as the collection's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compute/buffer.h"
#include "embedding/backward/gradient.h"
#include "embedding/backward/index_plan.h"
#include "embedding/backward/update.h"
#include "embedding/backward/weight_gradient.h"
#include "embedding/batch/caller_memory.h"
#include "embedding/batch/finite_check.h"
#include "embedding/batch/operations_scope.h"
#include "embedding/batch/output_view.h"
#include "embedding/exchange/compression.h"
#include "embedding/exchange/exchange.h"
#include "embedding/exchange/input.h"
#include "embedding/exchange/lending.h"
#include "embedding/exchange/step_context.h"

namespace shardrec::embedding {

struct LookupOptions {
  bool borrow = false;           // the gradient is read in backward, not in set_gradient
  bool weight_gradient = false;  // backward computes the gradients of the ids' weights
};

// What a rank does with a batch in the end.
enum class Finish : uint8_t { kBackward, kAccumulate, kSkip };

class Backward {
 public:
  // update: the collection's.
  Backward(const StepContext& context, const LookupOptions& options, Update& update);
  ~Backward() { update_.forget(plan_); }
  Backward(const Backward&) = delete;
  Backward& operator=(const Backward&) = delete;

  // A batch has begun: gradients of weights are those of the one before no more.
  void drop_weight_gradient() {
    if (weight_gradients_ != nullptr) weight_gradients_->ready = false;
  }
  // Where the back end can do that, the index plan is built ahead: beside the lookup and what the caller does
  // before backward. fork_plan(): the batch's ids are there and about to be looked up, though it may be refused yet.
  // plan_ahead(): it was not, and the operations of the lookup were called.
  //
  // Lookups without training must not pay for it: the plan is built ahead if the batch before, of the same Lookup,
  // went on to backward or accumulate. If the batch then does not, the time of its plan is lost, and the next
  // batch's is not built ahead. If it cannot be built, backward tries again and says why.
  void fork_plan();
  void plan_ahead(const InputExchange& input) noexcept;
  // Operations from now on may write where the ids of the batch are.
  void end_plan() noexcept { plan_.end(); }
  // A batch was looked up: it has no gradients yet.
  void begin();
  // The gradient of an output, [rows, columns]: packed now or, with BORROW, read by write().
  void set_gradient(const InputExchange& input, int32_t output, const OutputView& gradient,
                    OperationsScope& operations);
  // The gradients that are the caller's still.
  void touch_borrowed(OperationsScope& operations) const;

  // The first half: posts this rank's messages; waits for nobody.
  void post(const InputExchange& input, uint64_t lookup, Finish how);
  // The second half, on all ranks: every rank's gradients, or what one of them says in their place,
  // then the step. Throws what any rank refuses. stream: the caller's, as set_stream() has it.
  void receive(const InputExchange& input, uint64_t lookup, int64_t stream);
  // Between the two.
  Finish posted() const { return posted_.how; }
  // The step is over, or failed: gradients that were lent are the caller's again.
  void end() noexcept;

  // The gradients of weights, [ids of the batch], in its order. Empty: the option is off, or there
  // are none yet.
  std::optional<std::span<const float>> weight_gradient() const;

 private:
  // Peers may read the messages after this is gone, and what it has lent.
  struct Lent {
    Lending lending;
    std::shared_ptr<const void> messages;
  };
  // Of one output.
  struct Gradient {
    explicit Gradient(const std::shared_ptr<compute::Memory>& memory) : reached(memory) {}
    bool given = false;
    FiniteCheck finite;  // where the option NON_FINITE asks
    OutputView borrowed;
    CallerMemory reached;
  };
  struct Posted {
    std::span<const comm::ConstBytes> messages;
    std::vector<TableStep> steps;  // by table: what the step does, where it is taken
    bool packed = false;           // false: this rank sent none, and the messages say why
    Finish how = Finish::kBackward;
  };
  // Where the option asks for gradients of weights.
  struct WeightGradientState {
    explicit WeightGradientState(const StepContext& context)
        : products(context.layout),
          gradients(context.layout),
          exchange(context.make_exchange(ExchangeKind::kWeightGradients, "backward")),
          memory(context.backend().memory()) {}
    WeightProducts products;
    WeightGradients gradients;
    Exchange exchange;
    compute::Buffer memory;
    std::span<float> values;  // [ids]
    bool ready = false;
  };

  // Of the batch.
  Divisors divisors(const InputExchange& input) const;
  // Of tables trained by this number of ranks, whose batches have so many samples together.
  Divisor divisor(const InputExchange& input, int ranks, int64_t samples) const;
  // An output with elements that has no gradient; -1: none.
  int32_t missing_gradient(const InputExchange& input) const;
  // Looks for a NaN or an infinity in the gradient of an output, where the option NON_FINITE asks.
  void look_through(const InputExchange& input, int32_t output, const OutputView& gradient);
  // What was found in the gradient of an output, at row * columns + column.
  Verdict non_finite_at(int32_t output, int64_t position, int64_t columns) const;
  // The first NaN or infinity of the batch: of any gradient, then of its weights; good: none. Waits for gradients on
  // a device that were looked through.
  Verdict non_finite(const InputExchange& input);
  Lends lends_to() const;
  void lay_out(const InputExchange& input);
  void pack(const InputExchange& input, int32_t output, const OutputView& gradient);
  // Packs what set_gradient has not. False: there is nothing, and the messages say why.
  bool write(const InputExchange& input, Finish how);
  // Do all ranks take part? Throws what any rank refuses. False: a rank skips the step.
  bool all_apply(std::span<const comm::ConstBytes> messages) const;
  // The step of a batch that all ranks apply.
  void apply(const InputExchange& input, uint64_t lookup,
             std::span<const comm::ConstBytes> messages, std::span<const comm::ConstBytes> bodies,
             PhaseTimer& timer);
  void exchange_weight_gradients(const InputExchange& input, uint64_t lookup,
                                 std::span<const comm::ConstBytes> messages,
                                 std::span<const comm::ConstBytes> bodies);

  StepContext context_;
  LookupOptions options_;
  Update& update_;
  std::vector<Gradient> gradients_;  // by output
  bool laid_out_ = false;
  GradientPacking packing_;
  IndexPlan plan_;
  bool trains_ = false;       // the last batch went on to backward or accumulate
  bool plans_ahead_ = false;  // for the batch that is looked up
  // With a codec the exchange's buffer is this rank's own, as Forward's.
  Exchange exchange_;
  std::unique_ptr<WireCodec> codec_;  // null: gradients travel as they are
  std::shared_ptr<Lent> lent_;
  LendingNumber lent_number_;
  LentGradients lent_to_here_;
  Posted posted_;
  std::unique_ptr<WeightGradientState> weight_gradients_;
};

}  // namespace shardrec::embedding
