// A back end for tests: the operations of the CPU's, later, on a thread of their stream, over memory
// that nobody else may touch. Whoever reads a result before it waits, or what lies in the memory of a
// back end, finds nothing, or ends by a signal.
#include "guarded/backend.h"

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "guarded/memory.h"
#include "guarded/stream.h"

namespace shardrec::test {
namespace {

using namespace compute;

class GuardedGroups final : public RowGroups {
 public:
  GuardedGroups(std::unique_ptr<RowGroups> groups, Stream& stream)
      : groups_(std::move(groups)), stream_(stream) {}

  void build(std::span<const GroupedPart> parts, bool weighted, int64_t most_samples) override {
    stream_.later([&] { groups_->build(parts, weighted, most_samples); });
    stream_.wait();
  }
  int64_t most_rows(size_t part) const override { return groups_->most_rows(part); }
  const int64_t* row_count(size_t part) const override { return groups_->row_count(part); }
  bool counted() override { return groups_->counted(); }
  std::span<const int64_t> rows(size_t part) override { return groups_->rows(part); }
  std::span<const int64_t> run(size_t part) override { return groups_->run(part); }
  void describe(size_t part, RowUpdate& job) const override { groups_->describe(part, job); }

 private:
  std::unique_ptr<RowGroups> groups_;
  Stream& stream_;
};

class GuardedKeptGradients final : public KeptGradients {
 public:
  GuardedKeptGradients(std::unique_ptr<KeptGradients> kept, Stream& stream)
      : kept_(std::move(kept)), stream_(stream) {}

  std::span<const int64_t> rows() const override { return kept_->rows(); }
  void add(std::span<const int64_t> rows, const float* gradients) override {
    stream_.later([&, rows, gradients] { kept_->add(rows, gradients); });
    stream_.wait();
  }
  void clear() noexcept override {
    stream_.finish();
    kept_->clear();
  }
  void finish() override {
    stream_.later([&] { kept_->finish(); });
    stream_.wait();
  }
  void describe(RowUpdate& job) const override { kept_->describe(job); }

 private:
  std::unique_ptr<KeptGradients> kept_;
  Stream& stream_;
};

template <class T>
std::vector<T> copy_of(std::span<const T> list) {
  return {list.begin(), list.end()};
}

// Calls an operation of a family later, with a copy of the list.
template <class Family, class T>
void later(Family& family, Stream& stream, void (Family::*operation)(std::span<const T>),
           std::type_identity_t<std::span<const T>> list) {
  stream.later([&family, operation, own = copy_of(list)] { (family.*operation)(own); });
}

class GuardedTransfer final : public TransferOperations {
 public:
  GuardedTransfer(TransferOperations& cpu, Stream& stream) : cpu_(cpu), stream_(stream) {}

  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    stream_.later([=, this] { cpu_.copy(to, from, bytes); });
  }
  void fill(const InitialRows& rows) override {
    stream_.later([=, this] { cpu_.fill(rows); });
  }
  void copy_to_host(std::span<const RowTransfer> transfers) override {
    later(cpu_, stream_, &TransferOperations::copy_to_host, transfers);
    stream_.wait();
  }
  void copy_from_host(std::span<const RowTransfer> transfers) override {
    later(cpu_, stream_, &TransferOperations::copy_from_host, transfers);
    stream_.wait();
  }
  void convert_on_host(std::span<const RowTransfer> transfers) override {
    later(cpu_, stream_, &TransferOperations::convert_on_host, transfers);
    stream_.wait();
  }
  void move_rows(std::span<const RowTransfer> transfers) override {
    later(cpu_, stream_, &TransferOperations::move_rows, transfers);
  }
  void average(const RankMeans& means) override {
    stream_.later([=, this, ranks = copy_of(means.ranks)] {
      RankMeans later = means;
      later.ranks = ranks;
      cpu_.average(later);
    });
  }
  void add_gains(std::span<const RowGains> gains) override {
    later(cpu_, stream_, &TransferOperations::add_gains, gains);
  }
  void encode_rows(std::span<const RowEncoding> blocks) override {
    later(cpu_, stream_, &TransferOperations::encode_rows, blocks);
  }
  void decode_rows(std::span<const RowDecoding> blocks) override {
    later(cpu_, stream_, &TransferOperations::decode_rows, blocks);
  }

 private:
  TransferOperations& cpu_;
  Stream& stream_;
};

class GuardedRouting final : public RoutingOperations {
 public:
  GuardedRouting(RoutingOperations& cpu, Stream& stream) : cpu_(cpu), stream_(stream) {}

  void read_lengths(std::span<const BagLengths> features,
                    std::span<CheckedLengths> checked) override {
    stream_.later([&] { cpu_.read_lengths(features, checked); });
    stream_.wait();
  }
  void sort_samples(std::span<const SamplesByBag> features,
                    std::span<WrongInteger> wrong) override {
    stream_.later([&] { cpu_.sort_samples(features, wrong); });
    stream_.wait();
  }
  void count_ids(std::span<const RoutedIds> features, std::span<CheckedIds> checked,
                 std::span<BlockCount> counts) override {
    stream_.later([&] { cpu_.count_ids(features, checked, counts); });
    stream_.wait();
  }
  void write_ids(std::span<const RoutedIds> features, const WrittenBlocks& blocks,
                 std::span<CheckedIds> checked) override {
    stream_.later([&] { cpu_.write_ids(features, blocks, checked); });
    stream_.wait();
  }
  void deduplicate_ids(std::span<const DeduplicatedBlocks> messages) override {
    stream_.later([&] { cpu_.deduplicate_ids(messages); });
    stream_.wait();
  }
  void check_bags(std::span<const Bags> blocks, std::span<BagDefect> defects) override {
    stream_.later([&] { cpu_.check_bags(blocks, defects); });
    stream_.wait();
  }
  void expand_ids(std::span<const CodedIds> blocks, std::span<WrongInteger> wrong) override {
    stream_.later([&] { cpu_.expand_ids(blocks, wrong); });
    stream_.wait();
  }

 private:
  RoutingOperations& cpu_;
  Stream& stream_;
};

class GuardedLookup final : public LookupOperations {
 public:
  GuardedLookup(LookupOperations& cpu, Stream& stream) : cpu_(cpu), stream_(stream) {}

  void sum_bags(std::span<const BagSums> blocks) override {
    later(cpu_, stream_, &LookupOperations::sum_bags, blocks);
  }
  void look_up_outputs(std::span<const BagOutputs> blocks, size_t output_bytes) override {
    stream_.later(
        [this, list = copy_of(blocks), output_bytes] { cpu_.look_up_outputs(list, output_bytes); });
  }

 private:
  LookupOperations& cpu_;
  Stream& stream_;
};

class GuardedAssembly final : public AssemblyOperations {
 public:
  GuardedAssembly(AssemblyOperations& cpu, Stream& stream) : cpu_(cpu), stream_(stream) {}

  void count_node_sums(std::span<const NodeSum> sums, std::span<int64_t> rows) override {
    stream_.later([&] { cpu_.count_node_sums(sums, rows); });
    stream_.wait();
  }
  void add_on_nodes(std::span<const NodeSum> sums) override {
    later(cpu_, stream_, &AssemblyOperations::add_on_nodes, sums);
  }
  void count_chunk_sums(std::span<const NodeSumCount> counts, std::span<int64_t> rows) override {
    stream_.later([&] { cpu_.count_chunk_sums(counts, rows); });
    stream_.wait();
  }
  void assemble_bags(std::span<const PooledOutput> outputs) override {
    later(cpu_, stream_, &AssemblyOperations::assemble_bags, outputs);
  }
  void assemble_sequences(std::span<const SequenceOutput> outputs) override {
    later(cpu_, stream_, &AssemblyOperations::assemble_sequences, outputs);
  }

 private:
  AssemblyOperations& cpu_;
  Stream& stream_;
};

class GuardedGradient final : public GradientOperations {
 public:
  GuardedGradient(GradientOperations& cpu, Stream& stream) : cpu_(cpu), stream_(stream) {}

  void pack_bag_gradients(std::span<const BagGradients> blocks) override {
    later(cpu_, stream_, &GradientOperations::pack_bag_gradients, blocks);
  }
  void pack_sequence_gradients(std::span<const SequenceGradients> blocks) override {
    later(cpu_, stream_, &GradientOperations::pack_sequence_gradients, blocks);
  }
  void take_weight_products(std::span<const WeightProducts> blocks) override {
    later(cpu_, stream_, &GradientOperations::take_weight_products, blocks);
  }
  void sum_weight_products(std::span<const WeightGradients> features) override {
    later(cpu_, stream_, &GradientOperations::sum_weight_products, features);
  }
  void number_occurrences(const SingleOccurrences& rows) override {
    stream_.later([=, this] { cpu_.number_occurrences(rows); });
  }
  std::unique_ptr<KeptGradients> make_kept_gradients(int64_t width) override {
    return std::make_unique<GuardedKeptGradients>(cpu_.make_kept_gradients(width), stream_);
  }

 private:
  GradientOperations& cpu_;
  Stream& stream_;
};

class GuardedRow final : public RowOperations {
 public:
  GuardedRow(RowOperations& cpu, Stream& stream) : cpu_(cpu), stream_(stream) {}

  std::unique_ptr<RowGroups> make_row_groups() override {
    return std::make_unique<GuardedGroups>(cpu_.make_row_groups(), stream_);
  }
  void open_rows(std::span<const TouchedRows> shards) override {
    std::vector<std::vector<GradientBlock>> located;
    for (const TouchedRows& shard : shards) located.push_back(copy_of(shard.located));
    stream_.later([this, own = copy_of(shards), located = std::move(located)]() mutable {
      for (size_t s = 0; s < own.size(); ++s) own[s].located = located[s];
      cpu_.open_rows(own);
    });
  }
  void sum_gradients(std::span<float* const> out) override {
    later(cpu_, stream_, &RowOperations::sum_gradients, out);
  }
  void sum_rows(std::span<const RowSums> shards) override {
    later(cpu_, stream_, &RowOperations::sum_rows, shards);
  }
  void update_rows(std::span<const RowStep> shards) override {
    later(cpu_, stream_, &RowOperations::update_rows, shards);
  }
  void sum_norms(std::span<const RowSums> shards) override {
    later(cpu_, stream_, &RowOperations::sum_norms, shards);
  }
  void rescale_rows(std::span<const float* const> norms) override {
    later(cpu_, stream_, &RowOperations::rescale_rows, norms);
  }

 private:
  RowOperations& cpu_;
  Stream& stream_;
};

class GuardedSlot final : public SlotOperations {
 public:
  GuardedSlot(SlotOperations& cpu, Stream& stream) : cpu_(cpu), stream_(stream) {}

  void find_rows(std::span<const RowSearch> searches) override {
    later(cpu_, stream_, &SlotOperations::find_rows, searches);
    stream_.wait();
  }
  void add_row_totals(std::span<const RowTotals> shards) override {
    later(cpu_, stream_, &SlotOperations::add_row_totals, shards);
  }
  void pack_slots(std::span<const SlotPacking> slots) override {
    later(cpu_, stream_, &SlotOperations::pack_slots, slots);
  }
  void check_slots(std::span<const SlotRows> slots, std::span<uint8_t> good) override {
    stream_.later([&] { cpu_.check_slots(slots, good); });
    stream_.wait();
  }
  void count_slot_sums(std::span<const SlotSum> sums, std::span<int64_t> rows) override {
    stream_.later([&] { cpu_.count_slot_sums(sums, rows); });
    stream_.wait();
  }
  void add_slots(std::span<const SlotSum> sums) override {
    later(cpu_, stream_, &SlotOperations::add_slots, sums);
  }
  void unpack_slots(std::span<const SlotUnpacking> tables) override {
    later(cpu_, stream_, &SlotOperations::unpack_slots, tables);
  }

 private:
  SlotOperations& cpu_;
  Stream& stream_;
};

class GuardedBackend final : public Backend {
 public:
  explicit GuardedBackend(const BackendOptions& options)
      : Backend({transfer_, routing_, lookup_, assembly_, gradients_, rows_, slots_}),
        memory_(std::make_shared<GuardedMemory>()),
        held_(book(memory_, options.booked)),
        cpu_(make_cpu_backend(cpu_kernels(), options.threads, held_,
                              book(cpu_memory(), options.booked))),
        stream_(memory_),
        transfer_(cpu_->transfer(), stream_),
        routing_(cpu_->routing(), stream_),
        lookup_(cpu_->lookup(), stream_),
        assembly_(cpu_->assembly(), stream_),
        gradients_(cpu_->gradients(), stream_),
        rows_(cpu_->rows(), stream_),
        slots_(cpu_->slots(), stream_) {}

  const std::shared_ptr<Memory>& memory() override { return held_; }
  const std::shared_ptr<Memory>& host_memory() override { return cpu_->host_memory(); }
  core::DeviceSet caller_devices() const override { return core::kHostOnly; }
  bool reaches_host() const override { return true; }
  void wait() override { stream_.wait(); }

 private:
  std::shared_ptr<GuardedMemory> memory_;
  std::shared_ptr<Memory> held_;
  std::unique_ptr<Backend> cpu_;
  Stream stream_;
  GuardedTransfer transfer_;
  GuardedRouting routing_;
  GuardedLookup lookup_;
  GuardedAssembly assembly_;
  GuardedGradient gradients_;
  GuardedRow rows_;
  GuardedSlot slots_;
};

}  // namespace

std::unique_ptr<Backend> guarded_backend(const BackendOptions& options) {
  return std::make_unique<GuardedBackend>(options);
}

}  // namespace shardrec::test
