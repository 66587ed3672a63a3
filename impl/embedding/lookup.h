// One batch on its way through a collection: the four files to read in this order are this one,
// route.h and output.h (the exchange), compute/backend.h (the back end), collection.h.
//
//   idle -- begin --> begun -- forward --> forwarded -- backward, accumulate or skip --> idle
//                                          |   \---- begin (evaluation) --> begun
//                                          \-- send_gradients --> sent -- backward or accumulate --> idle
//
// Ids travel on a channel of the lookup's own, so that the batches of two lookups overlap;
// everything that touches weights goes through the collection's ordered channel.
//
// Thread rule: as Collection.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/bodies/carrier.h"
#include "compute/backend.h"
#include "compute/buffer.h"
#include "embedding/backward/gradient.h"
#include "embedding/backward/index_plan.h"
#include "embedding/backward/weight_gradient.h"
#include "embedding/batch/batch.h"
#include "embedding/collection.h"
#include "embedding/exchange/compression.h"
#include "embedding/exchange/inbox.h"
#include "embedding/exchange/lending.h"
#include "embedding/exchange/route.h"
#include "embedding/forward/assembly.h"
#include "embedding/forward/direct.h"
#include "embedding/forward/node_sums.h"
#include "embedding/forward/output.h"

namespace shardrec::embedding {

struct LookupOptions {
  bool borrow = false;           // the gradient is read in backward, not in set_gradient
  bool weight_gradient = false;  // backward computes the gradients of the ids' weights
};

class Lookup {
 public:
  // Every rank makes its lookups in the same order. Waits for nobody.
  Lookup(std::shared_ptr<Collection> collection, const LookupOptions& options);
  // Between begin and forward, and between send_gradients and backward, it fails the communicator:
  // peers will wait for this rank.
  ~Lookup();
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  // The caller's stream from now on: tensors on the device are read and written in its order. Throws
  // INVALID_ARGUMENT.
  void set_stream(int64_t stream);

  void begin(const BatchArguments& arguments);
  void forward(int32_t output, const shardrec_tensor* out);
  // [rows, columns] of an output of the batch that has begun; no rows when this rank's checks
  // refused the batch.
  std::pair<int64_t, int64_t> output_shape(int32_t output) const;
  bool all_done() const;
  void set_gradient(int32_t output, const shardrec_tensor* gradient);
  // The first half of backward, or of accumulate, which must follow: posts the gradients, with the
  // settings that the step will have. Waits for nobody. Until then nothing else is exchanged on the
  // collection's ordered channel.
  void send_gradients(bool accumulate);
  void backward() { finish(Finish::kBackward); }
  void accumulate() { finish(Finish::kAccumulate); }
  void skip() { finish(Finish::kSkip); }

  // [ids of the batch], in its order, after backward or accumulate and up to the next begin.
  void weight_gradient(const shardrec_tensor* out);

  Collection& collection() { return *collection_; }

 private:
  enum class State : uint8_t { kIdle, kBegun, kForwarded, kSent };
  enum class Finish : uint8_t { kBackward, kAccumulate, kSkip };
  // The messages of one batch; two in turn, so that begin need not wait for slow readers.
  struct Outgoing {
    std::unique_ptr<comm::MessageBuffer> buffer;
    comm::Ticket ticket{};
    bool posted = false;
  };

  // Looks up the own boxes of the output that is asked for while the others' sums travel.
  void exchange_and_look_up(int32_t output, const OutputView& out);
  void exchange_outputs(int32_t output, const OutputView& out, PhaseTimer& timer);
  void look_up_directly(int32_t output, const OutputView& out);
  // messages: as they came, of the outputs.
  void exchange_node_sums(std::span<const comm::ConstBytes> messages);
  size_t output_bytes(int32_t output) const;
  void assemble(int32_t output, const OutputView& out);
  void finish(Finish how);
  // Throws where the state of the lookup does not allow it.
  void check_finish(Finish how, const char* name) const;
  // Runs a stage of the step; where it throws, the step is over, and the communicator too but for
  // what all ranks refuse alike.
  template <class Stage>
  void step_stage(Stage stage);
  // The stages of a step, in this order; between the second and the third, while gradients travel,
  // the update groups rows.
  // Packs what set_gradient has not. False: there is nothing, and the messages say why.
  bool pack_gradients(Finish how);
  void post_gradients(Finish how);
  // Throws what any rank refuses. False: a rank skips the step.
  bool all_apply(std::span<const comm::ConstBytes> messages) const;
  void receive_gradients(Finish how);
  void use_gradients(std::span<const comm::ConstBytes> messages, bool accumulate,
                     PhaseTimer& timer);
  // The messages of a step that all ranks apply.
  void apply(std::span<const comm::ConstBytes> messages, std::span<const comm::ConstBytes> bodies,
             bool accumulate, PhaseTimer& timer);
  void exchange_weight_gradients(std::span<const comm::ConstBytes> messages,
                                 std::span<const comm::ConstBytes> bodies,
                                 compute::Backend& backend);
  void take_step(Update& update, compute::Backend& backend, PhaseTimer& timer);
  // An output with elements that has no gradient; -1: none.
  int32_t missing_gradient() const;
  bool lends_to_peers() const;
  void pack_gradient(int32_t output, const OutputView& gradient);
  // The gradients that are the caller's still.
  void touch_borrowed(OperationsScope& operations) const;
  void lay_out_gradients();
  void end_batch() noexcept;
  void end_step() noexcept;
  OutputView output_view(int32_t output, const shardrec_tensor* tensor, const char* what) const;
  void check_output(int32_t output) const;
  void count_lookups();
  // Adds the bytes of messages to other ranks.
  void count_bytes(std::span<const comm::ConstBytes> messages, std::atomic<int64_t>& counter) const;
  float divisor() const;
  bool owners_apply_divisor() const;

  std::shared_ptr<Collection> collection_;
  LookupOptions options_;
  LookupPlace place_;
  uint64_t name_ = 0;  // the same on all ranks
  int64_t stream_ = 0;
  std::shared_ptr<comm::Channel> input_channel_;
  State state_ = State::kIdle;
  bool holds_input_ = false;  // views of the peers' input messages
  int turn_ = 0;
  Outgoing outgoing_[2]{{collection_->bodies().make_buffer()},
                        {collection_->bodies().make_buffer()}};

  CheckedBatch batch_;
  Verdict verdict_;
  RoutedBatch routed_;
  std::vector<comm::ConstBytes> input_views_;
  Inbox inbox_;
  PartialSums partial_sums_;
  // Where partial sums are added up on their nodes.
  struct NodeSumState {
    NodeSumState(const Layout& layout, comm::BodyCarrier& bodies)
        : sums(layout), buffer(bodies.make_buffer()), received(bodies.make_received()) {}
    NodeSums sums;
    std::unique_ptr<comm::MessageBuffer> buffer;
    std::unique_ptr<comm::ReceivedBodies> received;
  };
  std::unique_ptr<NodeSumState> node_sums_;
  OutputAssembly assembly_;
  DirectLookup direct_;
  std::unique_ptr<comm::MessageBuffer> output_buffer_ = collection_->bodies().make_buffer();
  std::unique_ptr<comm::ReceivedBodies> received_outputs_ = collection_->bodies().make_received();
  uint64_t output_epoch_ = 0;  // Collection::times_let_go() while the outputs' messages are held
  IndexPlan plan_;
  GradientPacking packing_;
  // Null: what is exchanged is what was packed. Else the buffers of outputs and gradients are this
  // rank's own, for the floats that it packs and then for those that it got.
  std::unique_ptr<WireCodec> output_codec_;
  std::unique_ptr<WireCodec> gradient_codec_;
  // Peers may read the messages after this lookup is gone, and ask for what it has lent.
  struct GradientMemory {
    explicit GradientMemory(comm::BodyCarrier& bodies) : buffer(bodies.make_buffer()) {}
    std::unique_ptr<comm::MessageBuffer> buffer;
    Lending lending;
  };
  std::shared_ptr<GradientMemory> gradient_memory_ =
      std::make_shared<GradientMemory>(collection_->bodies());
  comm::MessageBuffer& gradient_buffer_ = *gradient_memory_->buffer;
  std::unique_ptr<comm::ReceivedBodies> received_gradients_ = collection_->bodies().make_received();
  std::unique_ptr<comm::MessageBuffer> statistics_buffer_ = collection_->bodies().make_buffer();
  std::unique_ptr<comm::MessageBuffer> norms_buffer_ = collection_->bodies().make_buffer();
  std::unique_ptr<comm::MessageBuffer> replicas_buffer_ = collection_->bodies().make_buffer();
  std::unique_ptr<comm::MessageBuffer> replica_sums_buffer_ = collection_->bodies().make_buffer();
  struct Gradient {
    explicit Gradient(const std::shared_ptr<compute::Memory>& memory) : reached(memory) {}
    bool given = false;
    OutputView borrowed;
    CallerMemory reached;
  };
  std::vector<Gradient> gradients_;  // by output
  CallerMemory caller_output_;
  bool gradients_laid_out_ = false;
  // The gradients that were posted.
  struct Posted {
    std::span<const comm::ConstBytes> messages;
    std::vector<TableStep> steps;  // by table: what the step does, where it is taken
    bool packed = false;           // false: this rank sent none, and the messages say why
    bool accumulate = false;
  };
  Posted posted_;
  // Where the option asks for them.
  struct WeightGradientState {
    WeightGradientState(const Layout& layout, comm::BodyCarrier& bodies)
        : products(layout),
          gradients(layout),
          buffer(bodies.make_buffer()),
          received(bodies.make_received()),
          memory(bodies.backend().memory()) {}
    WeightProducts products;
    WeightGradients gradients;
    std::unique_ptr<comm::MessageBuffer> buffer;
    std::unique_ptr<comm::ReceivedBodies> received;
    compute::Buffer memory;
    std::span<float> values;  // [ids]
    bool ready = false;
  };
  std::unique_ptr<WeightGradientState> weight_gradient_state_;
};

}  // namespace shardrec::embedding
