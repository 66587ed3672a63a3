// A back end: what touches ids, rows and gradients, as operations on whole batches. What each does is
// said where its struct is: operations.h, batch_operations.h, routing_operations.h, output_operations.h,
// gradient_operations.h, slot_operations.h, row_groups.h, row_transfers.h.
// Above it, a step decides on sizes, states and the order of things, and knows neither threads nor
// instruction sets, nor what a row holds.
//
// The operations of a back end take place in the order of the calls, and may be over later than the
// call: wait() returns when all are. A call copies the list of structs that it is given; what of the
// host's memory they point to stays as it is until wait(). Where a call says so, its results are there
// when it returns. Those of the CPU are over when the call returns.
//
// Thread rule: one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "compute/batch_operations.h"
#include "compute/buffer.h"
#include "compute/gradient_operations.h"
#include "compute/kept_gradients.h"
#include "compute/mark.h"
#include "compute/operation_clock.h"
#include "compute/operations.h"
#include "compute/output_operations.h"
#include "compute/routing_operations.h"
#include "compute/row_groups.h"
#include "compute/row_transfers.h"
#include "compute/slot_operations.h"
#include "core/tensor.h"
#include "core/threads.h"

namespace shardrec::compute {

class Backend {
 public:
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // Memory that the operations reach, and nobody else.
  virtual const std::shared_ptr<Memory>& memory() = 0;
  // Memory that the host reaches too: for messages.
  virtual const std::shared_ptr<Memory>& host_memory() = 0;
  // May the host read and write memory() as well, between operations? Tables need no copy then, where
  // they are saved and loaded.
  bool host_reaches_memory() { return memory() == host_memory(); }

  // The devices whose tensors a caller may give.
  virtual core::DeviceSet caller_devices() const = 0;
  // Do operations reach all of the host's memory? Else what a caller has there is copied first, by
  // copy() and copy_from_host().
  virtual bool reaches_host() const = 0;

  // Returns when all operations are over. Throws what an operation threw that ended after its call;
  // those behind it did not take place.
  virtual void wait() = 0;

  // A caller's stream (shardrec_lookup_set_stream): operations from now on take place behind what is in
  // it, or what the caller puts into it from now on behind the operations so far. The CPU's need neither.
  // Throws INVALID_ARGUMENT: no stream of the device.
  virtual void follow_caller(int64_t /*stream*/) {}
  virtual void hold_up_caller(int64_t /*stream*/) {}

  // Adds the time of operations, by kind, to these, which outlive the back end; null: they are over when
  // their calls return. At most once; the clock is the back end's.
  virtual OperationClock* time_operations(std::span<std::atomic<int64_t>> /*nanoseconds*/) {
    return nullptr;
  }

  // Do back ends of other ranks of the process read bodies of messages in its memory()? Marks then say
  // when they may, and when they have; else there are none.
  virtual bool shares_bodies() const { return false; }
  virtual std::shared_ptr<Mark> make_mark() { return nullptr; }
  // The one that is set when what others have sent or share was read; null: wait() waits for that too.
  virtual std::shared_ptr<Mark> read_mark() { return nullptr; }
  // Sets one of its own marks behind the operations so far; operations from now on follow any mark.
  virtual void set(Mark& /*mark*/) {}
  virtual void follow(const Mark& /*mark*/) {}

  // Between its memory and the host's, or inside either.
  virtual void copy(std::byte* to, const std::byte* from, size_t bytes) = 0;
  // From the memory() of another device (Mark::device()), where bodies are shared.
  virtual void copy_from_device(int32_t /*device*/, std::byte* to, const std::byte* from,
                                size_t bytes) {
    copy(to, from, bytes);
  }

  virtual void fill(const InitialRows& rows) = 0;

  // Outside of steps: rows in memory() to the host's and back; rows in the host's memory to floats and
  // back. Over when the call returns.
  virtual void copy_to_host(std::span<const RowTransfer> transfers) = 0;
  virtual void copy_from_host(std::span<const RowTransfer> transfers) = 0;
  virtual void convert_on_host(std::span<const RowTransfer> transfers) = 0;

  // Begin: the caller's batch. The results are by feature, and there when the call returns.
  virtual void read_lengths(std::span<const BagLengths> features,
                            std::span<CheckedLengths> checked) = 0;
  virtual void sort_samples(std::span<const SamplesByBag> features,
                            std::span<WrongInteger> wrong) = 0;

  // Begin: ids to the owners of their rows, by feature. All results are there when the calls return.
  // Checks the ids and counts what each block gets. The check of the ids of a feature all blocks of
  // which hold all of them may be left to write_ids, unless an id of another feature is wrong.
  virtual void count_ids(std::span<const RoutedIds> features, std::span<CheckedIds> checked,
                         std::span<BlockCount> counts) = 0;
  // Writes the blocks, in the forms and of the sizes that follow from the counts. checked: as counted
  // before; a wrong id that is found now is added to it, and the blocks then hold anything.
  virtual void write_ids(std::span<const RoutedIds> features, std::span<const BlockSections> blocks,
                         std::span<CheckedIds> checked) = 0;
  virtual void deduplicate_ids(std::span<const DeduplicatedBlocks> messages) = 0;

  // Forward, on the owner of rows: what arrived. The results are by block, and there when the calls
  // return.
  virtual void check_bags(std::span<const Bags> blocks, std::span<BagDefect> defects) = 0;
  virtual void expand_ids(std::span<const CodedIds> blocks, std::span<WrongInteger> wrong) = 0;

  // Forward, on the owner of rows.
  virtual void sum_bags(std::span<const BagSums> blocks) = 0;
  // output_bytes: of the whole output that the blocks are in.
  virtual void look_up_outputs(std::span<const BagOutputs> blocks, size_t output_bytes) = 0;

  // On the rank that adds up the sums of its node, and on the source, which assembles outputs.
  // rows[i] = the rows that sums[i] will have, there when the call returns; where they are written to
  // is not read.
  virtual void count_node_sums(std::span<const NodeSum> sums, std::span<int64_t> rows) = 0;
  virtual void add_on_nodes(std::span<const NodeSum> sums) = 0;
  // rows[i] = all rows of counts[i], there when the call returns.
  virtual void count_chunk_sums(std::span<const NodeSumCount> counts, std::span<int64_t> rows) = 0;
  virtual void assemble_bags(std::span<const PooledOutput> outputs) = 0;
  virtual void assemble_sequences(std::span<const SequenceOutput> outputs) = 0;

  // Rows of outputs or gradients in fewer bytes, while they travel.
  virtual void encode_rows(std::span<const RowEncoding> blocks) = 0;
  virtual void decode_rows(std::span<const RowDecoding> blocks) = 0;

  // Backward, on the source; then the gradients of weights, on owners and on the source.
  virtual void pack_bag_gradients(std::span<const BagGradients> blocks) = 0;
  virtual void pack_sequence_gradients(std::span<const SequenceGradients> blocks) = 0;
  virtual void take_weight_products(std::span<const WeightProducts> blocks) = 0;
  virtual void sum_weight_products(std::span<const WeightGradients> features) = 0;

  // Backward, on the owner. width: columns of the rows.
  virtual std::unique_ptr<KeptGradients> make_kept_gradients(int64_t width) = 0;
  virtual std::unique_ptr<RowGroups> make_row_groups() = 0;
  virtual void locate_gradients(std::span<const GradientBlock> blocks) = 0;

  // The touched rows of a step, by shard: what the next five are about, until this is called again.
  // Rows and gradients stay where they are until then.
  virtual void open_rows(std::span<const TouchedRows> shards) = 0;
  // The gradients of the rows, by shard: [rows, width] floats; null: not wanted.
  virtual void sum_gradients(std::span<float* const> out) = 0;
  // What the optimizers sum over columns (Kernels::row_sums), by shard.
  virtual void sum_rows(std::span<const RowSums> shards) = 0;
  // One optimizer step of each row, by shard. Throws before the first row has changed, or not at all.
  virtual void update_rows(std::span<const RowStep> shards) = 0;
  // Norms of the stored rows (Kernels::row_norms), by shard; then max_norm with norms over whole rows,
  // by shard, [rows]; null: not wanted.
  virtual void sum_norms(std::span<const RowSums> shards) = 0;
  virtual void rescale_rows(std::span<const float* const> norms) = 0;

  // Sums over the ranks: of statistics of rows that are cut by columns, and of gradients of rows that
  // all ranks hold. good[i] (is slot i what it says?) and rows[i] (that sums[i] has; its room is not
  // read) are there when the call returns.
  virtual void find_rows(std::span<const RowSearch> searches) = 0;
  virtual void add_row_totals(std::span<const RowTotals> shards) = 0;
  virtual void pack_slots(std::span<const SlotPacking> slots) = 0;
  virtual void check_slots(std::span<const SlotRows> slots, std::span<uint8_t> good) = 0;
  virtual void count_slot_sums(std::span<const SlotSum> sums, std::span<int64_t> rows) = 0;
  virtual void add_slots(std::span<const SlotSum> sums) = 0;
  virtual void unpack_slots(std::span<const SlotUnpacking> tables) = 0;
  virtual void number_occurrences(const SingleOccurrences& rows) = 0;

 protected:
  Backend() = default;
};

// The CPU's, with these kernels. memory: of what its operations leave for others.
std::unique_ptr<Backend> make_cpu_backend(const Kernels& kernels, core::Threads& threads,
                                          std::shared_ptr<Memory> memory = cpu_memory());

// What collections on the CPU are made with: the CPU's back end, until a test sets another.
// peers_in_process: all ranks of the collection live in this process, and read each other's memory.
using BackendFactory = std::unique_ptr<Backend> (*)(core::Threads& threads, bool peers_in_process);
void set_backend_factory(BackendFactory factory) noexcept;
std::unique_ptr<Backend> make_backend(core::Threads& threads, bool peers_in_process);

}  // namespace shardrec::compute
