#include "compute/device/backend.h"

#include "compute/device/assembly.h"
#include "compute/device/bag_sums.h"
#include "compute/device/batch_checks.h"
#include "compute/device/caller_order.h"
#include "compute/device/deduplication.h"
#include "compute/device/event_clock.h"
#include "compute/device/gradient_packing.h"
#include "compute/device/gradient_rows.h"
#include "compute/device/id_routing.h"
#include "compute/device/initial_rows.h"
#include "compute/device/kept_gradients.h"
#include "compute/device/node_sums.h"
#include "compute/device/output_lookup.h"
#include "compute/device/received_blocks.h"
#include "compute/device/row_codes.h"
#include "compute/device/row_groups.h"
#include "compute/device/row_searches.h"
#include "compute/device/row_transfers.h"
#include "compute/device/row_updates.h"
#include "compute/device/slot_sums.h"
#include "compute/device/slots.h"
#include "compute/device/weight_products.h"

namespace shardrec::compute::device {
namespace {

class EventMark final : public Mark {
 public:
  explicit EventMark(int32_t device) : event_(device) {}

  int32_t device() const noexcept override { return event_.device(); }
  void wait() const noexcept override { table().wait_for_event(event_.handle()); }

  Event& event() noexcept { return event_; }
  const Event& event() const noexcept { return event_; }

 private:
  Event event_;
};

class DeviceBackend final : public Backend {
 public:
  DeviceBackend(std::shared_ptr<Stream> stream, core::Threads& threads, bool peers_in_process)
      : stream_(std::move(stream)),
        peers_in_process_(peers_in_process),
        caller_order_(stream_->device()),
        memory_(make_memory(stream_)),
        host_memory_(make_pinned_memory()),
        cpu_(make_cpu_backend(cpu_kernels(), threads, host_memory_)),
        transfers_(stream_, *cpu_),
        batch_(stream_),
        routing_(stream_),
        deduplication_(stream_, *cpu_),
        received_(stream_),
        bag_sums_(stream_),
        outputs_(stream_),
        node_sums_(stream_),
        assembly_(stream_),
        codes_(stream_),
        packing_(stream_),
        weight_products_(stream_),
        gradient_rows_(stream_),
        rows_(stream_),
        searches_(stream_),
        totals_(stream_),
        slots_(stream_),
        slot_sums_(stream_) {}

  const std::shared_ptr<Memory>& memory() override { return memory_; }
  const std::shared_ptr<Memory>& host_memory() override { return host_memory_; }
  core::DeviceSet caller_devices() const override { return {.cuda = stream_->device()}; }
  bool reaches_host() const override { return false; }
  void wait() override {
    stream_->wait();
    if (clock_.has_value()) clock_->read();
  }
  void follow_caller(int64_t stream) override { caller_order_.follow(stream, *stream_); }
  void hold_up_caller(int64_t stream) override { caller_order_.hold_up(stream, *stream_); }
  OperationClock* time_operations(std::span<std::atomic<int64_t>> nanoseconds) override {
    return &clock_.emplace(stream_, nanoseconds);
  }
  bool shares_bodies() const override { return peers_in_process_; }
  std::shared_ptr<Mark> make_mark() final {
    return peers_in_process_ ? std::make_shared<EventMark>(stream_->device()) : nullptr;
  }
  std::shared_ptr<Mark> read_mark() override { return read_; }
  // All marks of devices are events.
  void set(Mark& mark) override { static_cast<EventMark&>(mark).event().record(*stream_); }
  void follow(const Mark& mark) override {
    stream_->follow(static_cast<const EventMark&>(mark).event());
  }
  void copy(std::byte* to, const std::byte* from, size_t bytes) override {
    stream_->copy(to, from, bytes);
  }
  void copy_from_device(int32_t device, std::byte* to, const std::byte* from,
                        size_t bytes) override {
    stream_->copy_from_device(device, to, from, bytes);
  }
  void fill(const InitialRows& rows) override { device::fill(rows, *stream_); }
  void copy_to_host(std::span<const RowTransfer> transfers) override {
    transfers_.to_host(transfers);
  }
  void copy_from_host(std::span<const RowTransfer> transfers) override {
    transfers_.from_host(transfers);
  }
  void convert_on_host(std::span<const RowTransfer> transfers) override {
    cpu_->convert_on_host(transfers);
  }
  void read_lengths(std::span<const BagLengths> features,
                    std::span<CheckedLengths> checked) override {
    batch_.read_lengths(features, checked);
  }
  void sort_samples(std::span<const SamplesByBag> features,
                    std::span<WrongInteger> wrong) override {
    batch_.sort_samples(features, wrong);
  }
  void count_ids(std::span<const RoutedIds> features, std::span<CheckedIds> checked,
                 std::span<BlockCount> counts) override {
    routing_.count(features, checked, counts);
  }
  // Every id has been checked by count_ids.
  void write_ids(std::span<const RoutedIds> features, std::span<const BlockSections> blocks,
                 std::span<CheckedIds>) override {
    routing_.write(features, blocks);
  }
  void deduplicate_ids(std::span<const DeduplicatedBlocks> messages) override {
    deduplication_.run(messages);
  }
  void check_bags(std::span<const Bags> blocks, std::span<BagDefect> defects) override {
    received_.check_bags(blocks, defects);
  }
  void expand_ids(std::span<const CodedIds> blocks, std::span<WrongInteger> wrong) override {
    received_.expand_ids(blocks, wrong);
  }
  void sum_bags(std::span<const BagSums> blocks) override { bag_sums_.run(blocks); }
  void look_up_outputs(std::span<const BagOutputs> blocks, size_t) override {
    outputs_.run(blocks);
  }
  void count_node_sums(std::span<const NodeSum> sums, std::span<int64_t> rows) override {
    node_sums_.count(sums, rows);
  }
  void add_on_nodes(std::span<const NodeSum> sums) override { node_sums_.run(sums); }
  void count_chunk_sums(std::span<const NodeSumCount> counts, std::span<int64_t> rows) override {
    assembly_.count(counts, rows);
  }
  void assemble_bags(std::span<const PooledOutput> outputs) override { assembly_.run(outputs); }
  void assemble_sequences(std::span<const SequenceOutput> outputs) override {
    assembly_.run(outputs);
  }
  void encode_rows(std::span<const RowEncoding> blocks) override { codes_.run(blocks); }
  void decode_rows(std::span<const RowDecoding> blocks) override { codes_.run(blocks); }
  void pack_bag_gradients(std::span<const BagGradients> blocks) override { packing_.run(blocks); }
  void pack_sequence_gradients(std::span<const SequenceGradients> blocks) override {
    packing_.run(blocks);
  }
  void take_weight_products(std::span<const WeightProducts> blocks) override {
    weight_products_.run(blocks);
  }
  void sum_weight_products(std::span<const WeightGradients> features) override {
    weight_products_.run(features);
  }
  std::unique_ptr<KeptGradients> make_kept_gradients(int64_t width) override {
    return std::make_unique<SlottedGradients>(width, stream_);
  }
  std::unique_ptr<RowGroups> make_row_groups() override {
    return std::make_unique<SortedRows>(stream_);
  }
  void locate_gradients(std::span<const GradientBlock> blocks) override {
    gradient_rows_.locate(blocks);
  }
  void open_rows(std::span<const TouchedRows> shards) override { rows_.open(shards); }
  void sum_gradients(std::span<float* const> out) override { rows_.gradients(out); }
  void sum_rows(std::span<const RowSums> shards) override { rows_.sums(shards); }
  void update_rows(std::span<const RowStep> shards) override { rows_.update(shards); }
  void sum_norms(std::span<const RowSums> shards) override { rows_.norms(shards); }
  void rescale_rows(std::span<const float* const> norms) override { rows_.rescale(norms); }
  void find_rows(std::span<const RowSearch> searches) override { searches_.run(searches); }
  void add_row_totals(std::span<const RowTotals> shards) override { totals_.add(shards); }
  void pack_slots(std::span<const SlotPacking> slots) override { slots_.pack(slots); }
  void check_slots(std::span<const SlotRows> slots, std::span<uint8_t> good) override {
    slots_.check(slots, good);
  }
  void count_slot_sums(std::span<const SlotSum> sums, std::span<int64_t> rows) override {
    slot_sums_.count(sums, rows);
  }
  void add_slots(std::span<const SlotSum> sums) override { slot_sums_.add(sums); }
  void unpack_slots(std::span<const SlotUnpacking> tables) override { slots_.unpack(tables); }
  void number_occurrences(const SingleOccurrences& rows) override {
    device::number_occurrences(rows, *stream_);
  }

 private:
  std::shared_ptr<Stream> stream_;
  bool peers_in_process_;
  CallerOrder caller_order_;
  std::optional<EventClock> clock_;
  std::shared_ptr<Mark> read_ = std::make_shared<EventMark>(stream_->device());
  std::shared_ptr<Memory> memory_;
  std::shared_ptr<Memory> host_memory_;
  std::unique_ptr<Backend> cpu_;
  RowTransfers transfers_;
  BatchChecks batch_;
  IdRouting routing_;
  Deduplication deduplication_;
  ReceivedBlocks received_;
  BagSummation bag_sums_;
  OutputLookup outputs_;
  NodeSummation node_sums_;
  Assembly assembly_;
  RowCodes codes_;
  GradientPacking packing_;
  WeightProductTasks weight_products_;
  GradientRows gradient_rows_;
  RowUpdates rows_;
  RowSearches searches_;
  RowSumTotals totals_;
  Slots slots_;
  SlotSums slot_sums_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(int32_t device, core::Threads& threads,
                                      bool peers_in_process) {
  return std::make_unique<DeviceBackend>(std::make_shared<Stream>(device), threads,
                                         peers_in_process);
}

}  // namespace shardrec::compute::device
