// The input exchange of a lookup: batches on their way from the ranks that have them to the owners of their
// rows, on a channel of the lookup's own, so that those of two lookups overlap.
//
// Thread rule: as the collection's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "embedding/batch/batch.h"
#include "embedding/exchange/inbox.h"
#include "embedding/exchange/route.h"
#include "embedding/exchange/step_context.h"

namespace shardrec::embedding {

struct OutputShape {
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t elements() const { return rows * columns; }
};

class InputExchange {
 public:
  // Every rank makes its own in the same order.
  InputExchange(const StepContext& context, bool weight_gradient);
  InputExchange(const InputExchange&) = delete;
  InputExchange& operator=(const InputExchange&) = delete;

  // Checks a batch and writes its messages; what is wrong with it goes into their heads. Tensors of the host have been
  // read when the call returns, those on a device when the operations that were called are done.
  void write(const BatchArguments& arguments);
  // Posts them, if they are not and the batch is not pending: nothing of this batch fails any more. lookup: its number.
  void post(uint64_t lookup);

  // Batches whose ids all stay on this rank are pending between write() and settle() where the back end can go on
  // without the host: then lookups may be enqueued (DirectLookup::compute_pending).
  void set_stays() { routed_.set_stays(context_.backend()); }
  bool is_pending() const { return routed_.is_pending(); }
  // Waits until it is known whether a pending batch is good; then it may be posted.
  void settle();

  // Waits for the batches of all ranks, of which this rank gets its own rows' ids. Returns the error
  // that all ranks throw alike: DISAGREEMENT (lookups differ in WEIGHT_GRADIENT), INVALID_BATCH (a rank's
  // batch was refused). Then nothing is received, as after release().
  [[nodiscard]] std::optional<core::Error> receive();
  // Adds what was received to the counters: when it was looked up.
  void count_received();
  // The messages are not read any more.
  void release() noexcept;

  // This rank's batch: as it was given, the verdict on it, and where its ids went.
  const CheckedBatch& batch() const { return batch_; }
  const Verdict& verdict() const { return verdict_; }
  const RoutedBatch& routed() const { return routed_; }
  // Of an output of this rank's batch; no rows where its checks refused it.
  OutputShape output_shape(int32_t output) const;
  // Behind receive(): the ids of all ranks for this rank's boxes.
  const Inbox& inbox() const { return inbox_; }

 private:
  // The messages of one batch; two in turn, so that the next batch need not wait for slow readers.
  struct Outgoing {
    std::unique_ptr<comm::MessageBuffer> buffer;
    comm::Ticket ticket{};
    bool posted = false;
  };

  void count_sent();

  StepContext context_;
  std::shared_ptr<comm::Channel> channel_;
  Outgoing outgoing_[2];
  int turn_ = 0;
  bool is_posted_ = false;    // are the messages of the batch?
  bool holds_views_ = false;  // of the peers' messages
  CheckedBatch batch_;
  Verdict verdict_;
  RoutedBatch routed_;
  std::vector<comm::ConstBytes> views_;
  Inbox inbox_;
};

}  // namespace shardrec::embedding
