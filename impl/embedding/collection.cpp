#include "embedding/collection.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "comm/collective/agree.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/probe/profile_cache.h"
#include "embedding/room.h"

namespace shardrec::embedding {
namespace {

constexpr comm::Operation kCreate{.name = "collection_create",
                                  .kind = 1,
                                  .detail = 0,
                                  .deadline_kind = comm::DeadlineKind::kSetup};

std::byte* bytes_of(float* data) { return static_cast<std::byte*>(static_cast<void*>(data)); }

}  // namespace

std::vector<comm::SharedValue> shared_options(const CollectionOptions& options) {
  // Every option is named here, so that a new one does not compile before it is decided on.
  // Thanks to the canonical order of sums, no bit depends on those that are left out.
  const auto& [seed, threads, divisor, divisor_value, lookups, output_dtype, deduplicate,
               hierarchical, forward_compression, backward_compression, backend, device,
               host_root] = options;
  return {
      {"option SEED", static_cast<uint64_t>(seed)},
      {"option GRADIENT_DIVISOR", static_cast<uint64_t>(divisor)},
      {"option GRADIENT_DIVISOR_VALUE", std::bit_cast<uint64_t>(divisor_value)},
      {"option OUTPUT_DTYPE", static_cast<uint64_t>(output_dtype)},
      {"option FORWARD_COMPRESSION", static_cast<uint64_t>(forward_compression)},
      {"option BACKWARD_COMPRESSION", static_cast<uint64_t>(backward_compression)},
      {"option DEVICE on the CPU (1) or not (0)", options.on_host() ? uint64_t{1} : uint64_t{0}}};
}

uint64_t host_bytes(const Layout& layout, const CollectionOptions& options) {
  return options.on_host() ? shard_bytes(layout) : 0;
}

Collection::Collection(std::shared_ptr<comm::Communicator> communicator, const plan::Model& model,
                       const plan::Plan& plan, const CollectionOptions& options)
    : communicator_(std::move(communicator)),
      options_(options),
      table_counters_(model.tables.size()),
      looked_up_(static_cast<size_t>(communicator_->size())) {
  const int rank = communicator_->rank();
  const int size = communicator_->size();
  counters_.track.rank = rank;
  compute::memory_profile();  // its file is read now, not in the first step
  collectives_ = std::make_unique<comm::Collectives>(
      communicator_->open_channel(comm::Purpose::kControl), rank, size);
  channel_ = communicator_->open_channel(comm::Purpose::kOutput);
  for (Held& held : held_) held.views.resize(static_cast<size_t>(size));

  comm::agree(*collectives_, kCreate, [&] {
    compute::require_cpu_target();
    if (plan.topology.ranks != size) {
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence("the plan is for ", plan.topology.ranks,
                                " ranks, the communicator has ", size),
                 {.value = int64_t{plan.topology.ranks}, .limit = int64_t{size}});
    }
    plan::check_tiling(plan, model);
    if (options_.hierarchical.value_or(false) &&
        options_.forward_compression != SHARDREC_COMPRESSION_NONE) {
      core::fail(SHARDREC_UNSUPPORTED,
                 "option HIERARCHICAL does not go with FORWARD_COMPRESSION: sums that are added up "
                 "before they cross would be rounded twice");
    }
    layout_ = std::make_unique<Layout>(model, plan, rank, sums_on_nodes());
    if (options_.threads == 0) options_.threads = communicator_->default_threads();
    threads_ = std::make_unique<core::Threads>(options_.threads);
    const bool in_process = communicator_->reads_in_place();
    backend_ = compute::backend_named(options_.backend)
                   .make({.threads = *threads_,
                          .device = options_.device,
                          .peers_in_process = in_process,
                          .booked = counters_.buffer_bytes});
    bodies_ = comm::make_carrier(*backend_);
    counters_.clock = backend_->time_operations(counters_.nanoseconds);
  });
  check_agreement(plan);
  const GatheredNeeds needs(*collectives_, kCreate, rank, host_bytes(*layout_, options_),
                            options_.host_root);
  comm::agree(*collectives_, kCreate, [&] { needs.check(); });
  comm::agree(*collectives_, kCreate, [&] {
    for (const int32_t part : layout_->parts_of(rank)) {
      shards_.emplace_back(*layout_, part, *backend_->memory());
      shards_.back().fill(*layout_, options_.seed, *backend_);
    }
    backend_->wait();
    update_ = std::make_unique<Update>(*layout_, shards_, *bodies_);
    settings_ = std::make_unique<TrainingSettings>(this->model(), options_.seed);
  });
}

Collection::~Collection() {
  finish_operations();
  for (size_t h = released_count_; h < held_count_; ++h) channel_->release(held_[h].ticket);
}

// The same on all ranks, where the option is: one process has all ranks or none has.
bool Collection::sums_on_nodes() const {
  return options_.forward_compression == SHARDREC_COMPRESSION_NONE &&
         options_.hierarchical.value_or(communicator_->ranks_in_process() < communicator_->size());
}

void Collection::check_agreement(const plan::Plan& plan) {
  std::vector<comm::SharedValue> values = {
      {"model", plan::model_fingerprint(model())},
      {"plan", plan::plan_fingerprint(plan, model())},
      {"option LOOKUPS", static_cast<uint64_t>(options_.lookups)},
      {"option HIERARCHICAL", static_cast<uint64_t>(sums_on_nodes())}};
  for (const comm::SharedValue& option : shared_options(options_)) values.push_back(option);
  comm::require_same(*collectives_, kCreate, values);
}

double Collection::imbalance() const {
  int64_t most = 0;
  double all = 0;
  for (const auto& ids : looked_up_) {
    most = std::max(most, ids.load(std::memory_order_relaxed));
    all += static_cast<double>(ids.load(std::memory_order_relaxed));
  }
  if (most == 0) return 1;
  return static_cast<double>(most) * static_cast<double>(looked_up_.size()) / all;
}

int64_t Collection::table_bytes() const {
  size_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.memory();
  return static_cast<int64_t>(bytes);
}

void Collection::require_whole() const {
  if (!filled_in_part_) return;
  core::fail(SHARDREC_INVALID_STATE,
             "a load of this collection failed half-way, and its tables are filled in part: load a"
             " checkpoint before anything else");
}

std::vector<StoredPiece> Collection::stored_pieces(PieceUse use) {
  std::vector<StoredPiece> pieces;
  for (Shard& shard : shards_) {
    const Part& part = layout_->parts()[static_cast<size_t>(shard.part())];
    if (part.replicated && use == PieceUse::kSave && layout_->rank() != 0) continue;
    const StoredPiece whole{.table = part.table, .row = part.row, .rows = part.rows};
    const auto add_matrix = [&](shardrec_table_part kind, compute::Element element,
                                std::byte* first) {
      for (const ColumnPiece& piece : part.columns) {
        StoredPiece& added = pieces.emplace_back(whole);
        added.part = kind;
        added.element = element;
        added.col = piece.col;
        added.cols = piece.cols;
        added.data = first + static_cast<size_t>(piece.offset) * compute::element_bytes(element);
        added.stride = static_cast<size_t>(part.width);
      }
    };
    add_matrix(SHARDREC_TABLE_WEIGHTS, shard.element(), shard.weights());
    const plan::Optimizer& optimizer = model().optimizer_of(part.table);
    const bool whole_rows = optimizer.row_statistics == SHARDREC_ROW_STATISTICS_ROW;
    const auto states = plan::states_of(optimizer.kind);
    for (size_t k = 0; k < states.size(); ++k) {
      const auto kind = static_cast<shardrec_table_part>(SHARDREC_TABLE_STATE + k);
      if (!states[k].by_row) {
        add_matrix(kind, compute::Element::kFloat32, bytes_of(shard.matrix(k)));
        continue;
      }
      // Values of whole rows: every column owner has the same copy, for all columns.
      if (whole_rows && use == PieceUse::kSave && part.columns[0].col != 0) continue;
      for (size_t range = 0; range < shard.columns().size(); ++range) {
        StoredPiece& added = pieces.emplace_back(whole);
        added.part = kind;
        added.by_row = true;
        added.col = whole_rows ? 0 : part.columns[range].col;
        added.cols = whole_rows ? model().tables[static_cast<size_t>(part.table)].dim
                                : part.columns[range].cols;
        added.data = bytes_of(shard.row_values(k, range));
        added.stride = 1;
      }
    }
  }
  return pieces;
}

void Collection::finish_operations() noexcept {
  try {
    backend_->wait();
  } catch (...) {  // an operation ran out of memory: the call that began it has failed already
    return;
  }
}

void Collection::post(Exchange kind, const char* name, uint64_t detail,
                      std::span<const comm::ConstBytes> messages,
                      std::shared_ptr<const void> owner) {
  const comm::Operation operation{.name = name,
                                  .kind = static_cast<uint32_t>(kind),
                                  .detail = detail,
                                  .deadline_kind = comm::DeadlineKind::kStep};
  if (held_count_ == held_.size()) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence(name, " begins an exchange while ", held_count_,
                              " others are held: it must settle them first"),
               {.limit = static_cast<int64_t>(held_.size()), .operation = name});
  }
  bodies_->finish_writing();
  held_[held_count_].ticket = channel_->post(operation, messages, std::move(owner));
  posted_ = true;
}

std::span<const comm::ConstBytes> Collection::receive() {
  Held& held = held_[held_count_];
  channel_->receive(held.ticket, held.views);
  posted_ = false;
  ++held_count_;
  return held.views;
}

std::span<const comm::ConstBytes> Collection::exchange(Exchange kind, const char* name,
                                                       uint64_t detail,
                                                       std::span<const comm::ConstBytes> messages,
                                                       std::shared_ptr<const void> owner) {
  post(kind, name, detail, messages, std::move(owner));
  return receive();
}

void Collection::require_nothing_posted(const char* call) const {
  if (!posted_) return;
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence(call,
                            " was called while the gradients of a lookup are under way: call "
                            "backward or accumulate of that lookup first"),
             {.operation = call});
}

void Collection::let_go() {
  bodies_->finish_reading();
  ++times_let_go_;
  while (released_count_ < held_count_) channel_->release(held_[released_count_++].ticket);
}

void Collection::reclaim() {
  const size_t count = std::exchange(released_count_, 0);
  const auto first = held_.begin();
  std::rotate(first, first + static_cast<ptrdiff_t>(count),
              first + static_cast<ptrdiff_t>(held_count_));
  held_count_ -= count;
  for (size_t h = 0; h < count; ++h) channel_->reclaim(held_[held_count_ + h].ticket);
}

void Collection::settle() {
  let_go();
  reclaim();
}

OperationsScope::~OperationsScope() {
  if (!done_) collection_.finish_operations();
}

void OperationsScope::touches(int32_t device_type) {
  if (device_type == SHARDREC_DEVICE_CPU) {
    on_host_ = true;
  } else if (!std::exchange(on_device_, true)) {
    collection_.backend().follow_caller(stream_);
  }
}

void OperationsScope::touches(const shardrec_tensor* tensor) {
  if (tensor != nullptr) touches(tensor->device_type);
}

void OperationsScope::done() {
  if (on_host_) collection_.backend().wait();
  if (on_device_) collection_.backend().hold_up_caller(stream_);
  done_ = true;
}

int Collection::take_lookup() {
  uint64_t taken = lookups_taken_.load();
  int number = 0;
  do {
    number = std::countr_one(taken);
    if (number >= options_.lookups) {
      core::fail(SHARDREC_INVALID_STATE,
                 core::sentence("the collection has ", options_.lookups,
                                " lookups already: destroy one, or raise the option LOOKUPS"),
                 {.limit = int64_t{options_.lookups}});
    }
  } while (!lookups_taken_.compare_exchange_weak(taken, taken | (uint64_t{1} << number)));
  return number;
}

void Collection::give_back_lookup(int number) noexcept {
  lookups_taken_.fetch_and(~(uint64_t{1} << number));
}

}  // namespace shardrec::embedding
