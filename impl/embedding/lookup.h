// One batch on its way through a collection, and the order in which a caller may ask for it:
//
//   idle -- begin --> begun -- forward --> forwarded -- backward, accumulate or skip --> idle
//                                          |   \---- begin (evaluation) --> begun
//                                          |   \---- a load of the tables, then backward --> idle, refused
//                                          \-- send_gradients --> sent -- backward or accumulate --> idle
//
// Each way to idle may be taken on a thread of the lookup, from backward_begin to backward_wait.
//
// The way itself is read in three functions: InputExchange::write (exchange/input.h), Forward::run
// (forward/forward.h) and Backward::receive (backward/backward.h).
//
// Thread rule: as Collection.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "core/worker.h"
#include "embedding/backward/backward.h"
#include "embedding/batch/caller_memory.h"
#include "embedding/collection.h"
#include "embedding/exchange/input.h"
#include "embedding/forward/forward.h"

namespace shardrec::embedding {

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
  // Of an output of the batch that has begun; no rows when this rank's checks refused the batch. Waits for these.
  OutputShape output_shape(int32_t output);
  bool all_done() const;
  void set_gradient(int32_t output, const shardrec_tensor* gradient);
  // The first half of backward, or of accumulate, which must follow: posts the gradients, with the
  // settings that the step will have. Waits for nobody. Until then nothing else is exchanged on the
  // collection's ordered channel.
  void send_gradients(bool accumulate);
  void backward(Finish how = Finish::kBackward);
  // The same on a thread of the lookup's own; what can be refused on this rank alone is thrown here. Until
  // backward_wait() nothing else is asked of the collection and its lookups.
  void backward_begin(Finish how);
  // Throws what the backward did.
  void backward_wait();

  // [ids of the batch], in its order, after backward or accumulate and up to the next begin.
  void weight_gradient(const shardrec_tensor* out);

 private:
  enum class State : uint8_t { kIdle, kBegun, kForwarded, kSent };

  compute::Backend& backend() const { return collection_->backend(); }
  // May the batch end so? Throws where not. False: it is over, and nothing is left to do.
  bool may_finish(Finish how, const char* name);
  // The first half of the end, or what is left of it.
  void send(Finish how, const char* name);
  void finish(Finish how, const char* name);
  // Throws where the state of the lookup does not allow it.
  void check_finish(Finish how) const;
  // Were the tables loaded since forward? The gradients are then those of other weights: the batch is over.
  bool end_where_loaded() noexcept;
  [[noreturn]] static void refuse_loaded(const char* name);
  // Runs a part of the step; where it throws, the step is over, and the communicator too but for
  // what all ranks refuse alike.
  template <class Body>
  void in_step(Body body);
  void end_step() noexcept;
  // The messages of the batch are not read any more, by its plan neither.
  void release_input() noexcept;
  OutputView output_view(int32_t output, const shardrec_tensor* tensor, const char* what) const;
  // Until it is known whether the batch is good (InputExchange::settle).
  void settle_input();
  // Has an output the size that it will have if a pending batch is good? Only then it is looked up before.
  bool has_size_of_batch(const shardrec_tensor* out) const;
  void check_output(int32_t output) const;

  std::shared_ptr<Collection> collection_;
  LookupOptions options_;
  LookupPlace place_;
  Forward forward_;
  Backward backward_;
  CallerMemory caller_output_;
  InputExchange input_;  // behind what may fail on one rank alone: it opens a channel
  int64_t stream_ = 0;
  State state_ = State::kIdle;
  uint64_t loads_before_ = 0;  // of the tables, at forward
  uint64_t name_ = 0;          // its number, the same on all ranks
  bool receives_ = false;      // has backward_begin anything to wait for?
  core::Worker worker_;        // ends before what it works with
};

}  // namespace shardrec::embedding
