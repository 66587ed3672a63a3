#include "compute/backend.h"

#include <cstring>

#include "compute/cpu/operations/assembly.h"
#include "compute/cpu/operations/bag_outputs.h"
#include "compute/cpu/operations/bag_sums.h"
#include "compute/cpu/operations/batch_checks.h"
#include "compute/cpu/operations/context.h"
#include "compute/cpu/operations/gradient_packing.h"
#include "compute/cpu/operations/gradient_rows.h"
#include "compute/cpu/operations/initial_rows.h"
#include "compute/cpu/operations/kept_gradients.h"
#include "compute/cpu/operations/node_sums.h"
#include "compute/cpu/operations/routing.h"
#include "compute/cpu/operations/routing_dictionary.h"
#include "compute/cpu/operations/routing_received.h"
#include "compute/cpu/operations/row_codes.h"
#include "compute/cpu/operations/row_groups.h"
#include "compute/cpu/operations/row_totals.h"
#include "compute/cpu/operations/row_transfers.h"
#include "compute/cpu/operations/row_updates.h"
#include "compute/cpu/operations/slots.h"
#include "compute/cpu/operations/weight_products.h"

namespace shardrec::compute {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(const Kernels& kernels, core::Threads& threads, std::shared_ptr<Memory> memory)
      : context_{kernels, threads, work_, std::move(memory)} {}

  const std::shared_ptr<Memory>& memory() override { return context_.memory; }
  const std::shared_ptr<Memory>& host_memory() override { return cpu_memory(); }
  core::DeviceSet caller_devices() const override { return core::kHostOnly; }
  bool reaches_host() const override { return true; }
  void wait() override {}
  void fill(const InitialRows& rows) override { cpu::fill(rows, context_); }
  void copy_to_host(std::span<const RowTransfer> transfers) override {
    cpu::move_rows(transfers, context_);
  }
  void copy_from_host(std::span<const RowTransfer> transfers) override {
    cpu::move_rows(transfers, context_);
  }
  void convert_on_host(std::span<const RowTransfer> transfers) override {
    cpu::move_rows(transfers, context_);
  }
  void read_lengths(std::span<const BagLengths> features,
                    std::span<CheckedLengths> checked) override {
    cpu::read_lengths(features, checked, context_);
  }
  void sort_samples(std::span<const SamplesByBag> features,
                    std::span<WrongInteger> wrong) override {
    cpu::sort_samples(features, wrong, context_);
  }
  void count_ids(std::span<const RoutedIds> features, std::span<CheckedIds> checked,
                 std::span<BlockCount> counts) override {
    routing_.count(features, checked, counts, context_);
  }
  void write_ids(std::span<const RoutedIds> features, std::span<const BlockSections> blocks,
                 std::span<CheckedIds> checked) override {
    routing_.write(features, blocks, checked, context_);
  }
  void deduplicate_ids(std::span<const DeduplicatedBlocks> messages) override {
    cpu::deduplicate_ids(messages, context_);
  }
  void check_bags(std::span<const Bags> blocks, std::span<BagDefect> defects) override {
    cpu::check_bags(blocks, defects, context_);
  }
  void expand_ids(std::span<const CodedIds> blocks, std::span<WrongInteger> wrong) override {
    cpu::expand_ids(blocks, wrong, context_);
  }
  void sum_bags(std::span<const BagSums> blocks) override { bag_sums_.run(blocks, context_); }
  void look_up_outputs(std::span<const BagOutputs> blocks, size_t output_bytes) override {
    bag_outputs_.run(blocks, output_bytes, context_);
  }
  void count_node_sums(std::span<const NodeSum> sums, std::span<int64_t> rows) override {
    cpu::NodeSummation::count(sums, rows, context_);
  }
  void add_on_nodes(std::span<const NodeSum> sums) override { node_sums_.run(sums, context_); }
  void count_chunk_sums(std::span<const NodeSumCount> counts, std::span<int64_t> rows) override {
    cpu::Assembly::count(counts, rows, context_);
  }
  void assemble_bags(std::span<const PooledOutput> outputs) override {
    assembly_.run(outputs, context_);
  }
  void assemble_sequences(std::span<const SequenceOutput> outputs) override {
    assembly_.run(outputs, context_);
  }
  void encode_rows(std::span<const RowEncoding> blocks) override { codes_.run(blocks, context_); }
  void decode_rows(std::span<const RowDecoding> blocks) override { codes_.run(blocks, context_); }
  void pack_bag_gradients(std::span<const BagGradients> blocks) override {
    packing_.run(blocks, context_);
  }
  void pack_sequence_gradients(std::span<const SequenceGradients> blocks) override {
    packing_.run(blocks, context_);
  }
  void take_weight_products(std::span<const WeightProducts> blocks) override {
    weight_products_.run(blocks, context_);
  }
  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
  void sum_weight_products(std::span<const WeightGradients> features) override {
    cpu::sum_weight_products(features, context_);
  }
  std::unique_ptr<KeptGradients> make_kept_gradients(int64_t width) override {
    return std::make_unique<cpu::SlottedGradients>(width, context_);
  }
  std::unique_ptr<RowGroups> make_row_groups() override {
    return std::make_unique<cpu::BucketedRows>(context_);
  }
  void locate_gradients(std::span<const GradientBlock> blocks) override {
    cpu::locate_gradients(blocks, context_);
  }
  void open_rows(std::span<const TouchedRows> shards) override { rows_.open(shards, context_); }
  void sum_gradients(std::span<float* const> out) override { rows_.gradients(out, context_); }
  void sum_rows(std::span<const RowSums> shards) override { rows_.sums(shards, context_); }
  void update_rows(std::span<const RowStep> shards) override { rows_.update(shards, context_); }
  void sum_norms(std::span<const RowSums> shards) override { rows_.norms(shards, context_); }
  void rescale_rows(std::span<const float* const> norms) override {
    rows_.rescale(norms, context_);
  }
  void find_rows(std::span<const RowSearch> searches) override {
    cpu::find_rows(searches, context_);
  }
  void add_row_totals(std::span<const RowTotals> shards) override {
    cpu::add_row_totals(shards, context_);
  }
  void pack_slots(std::span<const SlotPacking> slots) override { cpu::pack_slots(slots, context_); }
  void check_slots(std::span<const SlotRows> slots, std::span<uint8_t> good) override {
    cpu::check_slots(slots, good, context_);
  }
  void count_slot_sums(std::span<const SlotSum> sums, std::span<int64_t> rows) override {
    cpu::count_slot_sums(sums, rows, context_);
  }
  void add_slots(std::span<const SlotSum> sums) override { cpu::add_slots(sums, context_); }
  void unpack_slots(std::span<const SlotUnpacking> tables) override {
    cpu::unpack_slots(tables, context_);
  }
  void number_occurrences(const SingleOccurrences& rows) override { cpu::number_occurrences(rows); }

 private:
  core::Scratch work_;
  cpu::Context context_;
  cpu::IdRouting routing_;
  cpu::BagSummation bag_sums_;
  cpu::OutputLookup bag_outputs_;
  cpu::NodeSummation node_sums_;
  cpu::Assembly assembly_;
  cpu::RowCodes codes_;
  cpu::GradientPacking packing_;
  cpu::WeightProductTasks weight_products_;
  cpu::RowUpdates rows_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const Kernels& kernels, core::Threads& threads,
                                          std::shared_ptr<Memory> memory) {
  return std::make_unique<CpuBackend>(kernels, threads, std::move(memory));
}

}  // namespace shardrec::compute
