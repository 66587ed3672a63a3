// A rank's share of the sharded tables, and the one ordered channel on which everything that reads
// or writes weights is exchanged: forward, backward, rows, save, load take effect in call order,
// the same on all ranks; the channel's sequence numbers prove it.
//
// Thread rule: one thread at a time for a collection and all its lookups; counters() and
// table_counters() any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/collective/agree.h"
#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/backends/registry.h"
#include "core/threads.h"
#include "embedding/backward/update.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/phase.h"
#include "embedding/tables/settings.h"
#include "embedding/tables/shard.h"
#include "plan/model.h"
#include "plan/plan.h"
#include "shardrec/collection.h"

namespace shardrec::embedding {

struct CollectionOptions {
  int64_t seed = 0;
  int threads = 0;  // 0: as Communicator::default_threads() says
  shardrec_divisor divisor = SHARDREC_DIVISOR_RANKS;
  double divisor_value = 1;
  int lookups = 2;
  shardrec_dtype output_dtype = SHARDREC_FLOAT32;  // of outputs and their gradients
  std::optional<bool> deduplicate = {};            // empty: where ranks live in several processes
  // Are partial sums added up on their node before they cross to another (node_sums.h)? Empty:
  // where ranks live in several processes.
  std::optional<bool> hierarchical = {};
  // Of the output and of the gradient exchange (compression.h).
  shardrec_compression forward_compression = SHARDREC_COMPRESSION_NONE;
  shardrec_compression backward_compression = SHARDREC_COMPRESSION_NONE;
  // Of the tables, and of the operations on them (compute/backends/registry.h); device: number of the one that
  // is meant, where the back end is one of devices.
  std::string_view backend = compute::default_backend();
  int32_t device = -1;
  std::string host_root = {};  // of core/host.h, for tests

  bool on_host() const { return compute::backend_named(backend).on_host; }
};

// The options that decide which numbers come out: the ranks of a collection must bring the same,
// and so must its replicas on a mesh. Those that only decide how they are computed are not among
// them.
std::vector<comm::SharedValue> shared_options(const CollectionOptions& options);

// What the tables of the layout's rank take of the host's memory.
uint64_t host_bytes(const Layout& layout, const CollectionOptions& options);

// Kinds of exchanges on the ordered channel (comm::Operation::kind).
enum class Exchange : uint32_t {
  kOutput = 1,
  kGradient,
  kStatistics,
  kReadRequest,
  kReadReply,
  kWrite,
  kSync,
  kNorms,
  kReplicaRows,
  kReplicaSums,
  kWeightGradients,
  kNodeSums,
  kReadListRequest,
  kReadListReply,
  kWriteList,
};

// A rectangle of a table, or of one of its states, of this rank: what checkpoints hold. It is in the
// memory of the back end.
struct StoredPiece {
  int32_t table = 0;
  shardrec_table_part part = SHARDREC_TABLE_WEIGHTS;
  bool by_row = false;  // one value per row, for columns [col, col + cols)
  compute::Element element = compute::Element::kFloat32;
  int64_t row = 0;
  int64_t rows = 0;
  int64_t col = 0;
  int64_t cols = 0;
  std::byte* data = nullptr;
  size_t stride = 0;  // elements between rows

  int64_t row_width() const { return by_row ? 1 : cols; }  // elements
  // Its row number `index`, counted from its first.
  std::byte* at_row(int64_t index) const {
    return data + static_cast<size_t>(index) * stride * compute::element_bytes(element);
  }
};

enum class PieceUse : uint8_t { kSave, kLoad };

class Collection {
 public:
  // Collective: checks that all ranks bring the same, allocates and fills. An error on one rank is
  // every rank's.
  Collection(std::shared_ptr<comm::Communicator> communicator, const plan::Model& model,
             const plan::Plan& plan, const CollectionOptions& options);
  ~Collection();
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;

  const Layout& layout() const { return *layout_; }
  const plan::Model& model() const { return layout_->model(); }
  const CollectionOptions& options() const { return options_; }
  comm::Communicator& communicator() { return *communicator_; }
  comm::Collectives& collectives() { return *collectives_; }
  std::span<Shard> shards() { return shards_; }
  core::Threads& threads() { return *threads_; }
  const core::Threads& threads() const { return *threads_; }
  compute::Backend& backend() { return *backend_; }
  comm::BodyCarrier& bodies() { return *bodies_; }
  Update& update() { return *update_; }
  Counters& counters() { return counters_; }
  const Counters& counters() const { return counters_; }
  // Ids that each rank has looked up, as far as this rank has heard.
  void hear_looked_up(int rank, int64_t ids) {
    looked_up_[static_cast<size_t>(rank)].store(ids, std::memory_order_relaxed);
  }
  // The most that a rank has looked up / the mean of all ranks; 1 before any lookup.
  double imbalance() const;
  TableCounters& table_counters(int32_t table) {
    return table_counters_[static_cast<size_t>(table)];
  }

  int64_t step() const { return counters_.steps.load(std::memory_order_relaxed); }
  void set_step(int64_t step) { counters_.steps.store(step, std::memory_order_relaxed); }
  TrainingSettings& settings() { return *settings_; }
  int64_t table_bytes() const;
  // A load that failed after it had begun to fill the tables says so here, on all ranks, until one
  // succeeds: what reads or changes tables asks first. Throws INVALID_STATE.
  void set_filled_in_part(bool in_part) noexcept { filled_in_part_ = in_part; }
  void require_whole() const;
  // The pieces of this rank. kSave: each cell of a table and of its state by exactly one rank
  // (replicas by rank 0, a row's statistic by the owner of its first column). kLoad: every copy.
  std::vector<StoredPiece> stored_pieces(PieceUse use);

  // One exchange on the ordered channel. The views stay valid until let_go() or settle(); buffers
  // may be written again after settle(), or reclaim(). At most kMostHeld exchanges are not
  // reclaimed: INTERNAL for one more, and nothing was exchanged.
  std::span<const comm::ConstBytes> exchange(Exchange kind, const char* name, uint64_t detail,
                                             std::span<const comm::ConstBytes> messages,
                                             std::shared_ptr<const void> owner);
  // The same in two halves, for work while messages travel; nothing else is exchanged in between,
  // nor settled. What this rank sends to itself may be written until receive().
  void post(Exchange kind, const char* name, uint64_t detail,
            std::span<const comm::ConstBytes> messages, std::shared_ptr<const void> owner);
  std::span<const comm::ConstBytes> receive();
  // For calls that exchange something: the two halves may be those of two calls. Throws
  // INVALID_STATE where the first half was posted and not received.
  void require_nothing_posted(const char* call) const;
  // One backward exchanges 6 at most: kGradient, kWeightGradients, kReplicaRows, kReplicaSums,
  // kStatistics, kNorms. While it receives the first, those of the backward before it may be there
  // still. A forward, a read, a write or a sync exchanges two at most.
  static constexpr size_t kMostHeld = 7;
  // Exchanges that are not reclaimed.
  size_t held() const { return held_count_; }
  // Waits for the operations of the back end; the second where nothing can be done if one fails.
  void synchronize() { backend_->wait(); }
  void finish_operations() noexcept;

  // Lets go of all views. Waits for nobody.
  void let_go();
  // Waits until the peers have let go of what this rank sent in exchanges whose views it has let
  // go of itself. Where a later exchange has been received, and the peers let go before they post,
  // they have done so.
  void reclaim();
  // Both: waits for peers to come to their let_go() or settle().
  void settle();
  // Counts how often views were let go of: those of an older count are gone.
  uint64_t times_let_go() const { return times_let_go_; }

  // Room for a lookup: its number. Throws INVALID_STATE when all are taken.
  int take_lookup();
  void give_back_lookup(int number) noexcept;
  // Number of lookups made so far: names a lookup on all ranks.
  uint64_t next_lookup_name() { return lookups_made_++; }

 private:
  bool sums_on_nodes() const;
  void check_agreement(const plan::Plan& plan);

  std::shared_ptr<comm::Communicator> communicator_;
  CollectionOptions options_;
  std::unique_ptr<comm::Collectives> collectives_;
  std::shared_ptr<comm::Channel> channel_;
  std::unique_ptr<Layout> layout_;
  std::unique_ptr<core::Threads> threads_;
  Counters counters_;
  std::unique_ptr<compute::Backend> backend_;
  std::unique_ptr<comm::BodyCarrier> bodies_;
  std::vector<Shard> shards_;
  std::unique_ptr<Update> update_;
  std::unique_ptr<TrainingSettings> settings_;
  std::vector<TableCounters> table_counters_;
  std::vector<std::atomic<int64_t>> looked_up_;  // by rank

  struct Held {
    comm::Ticket ticket;
    std::vector<comm::ConstBytes> views;
  };
  static_assert(kMostHeld <= comm::Channel::kMostInFlight);
  std::array<Held, kMostHeld> held_;  // in the order of the exchanges
  size_t held_count_ = 0;
  size_t released_count_ = 0;  // of held_, from the first on: those whose views were let go of
  bool posted_ = false;        // the one behind held_count_ is posted and not received
  uint64_t times_let_go_ = 0;
  std::atomic<uint64_t> lookups_taken_{0};  // bit per number; given back by any thread
  uint64_t lookups_made_ = 0;
  bool filled_in_part_ = false;
};

// Operations on what a caller has given: tensors on the device of the collection in the order of the
// caller's stream, without a wait of the host; others are read and written when the scope ends.
class OperationsScope {
 public:
  // stream: as shardrec_lookup_set_stream() has it.
  OperationsScope(Collection& collection, int64_t stream)
      : collection_(collection), stream_(stream) {}
  // Where done() was not called, waits for the operations.
  ~OperationsScope();
  OperationsScope(const OperationsScope&) = delete;
  OperationsScope& operator=(const OperationsScope&) = delete;

  // Before the first operation on each tensor. device_type: any number; the tensor may be refused.
  void touches(int32_t device_type);
  void touches(const shardrec_tensor* tensor);  // null: none
  // All operations were called: what the caller enqueues now takes place behind them.
  void done();

 private:
  Collection& collection_;
  int64_t stream_;
  bool on_host_ = false;
  bool on_device_ = false;
  bool done_ = false;
};

// A lookup's room in its collection.
class LookupPlace {
 public:
  explicit LookupPlace(Collection& collection)
      : collection_(collection), number_(collection.take_lookup()) {}
  ~LookupPlace() { collection_.give_back_lookup(number_); }
  LookupPlace(const LookupPlace&) = delete;
  LookupPlace& operator=(const LookupPlace&) = delete;

 private:
  Collection& collection_;
  int number_;
};

}  // namespace shardrec::embedding
