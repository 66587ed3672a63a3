// Fills this rank's boxes of tables by a load plan: reads, verifies, sends, receives.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "checkpoint/read/convert.h"
#include "checkpoint/read/files.h"
#include "checkpoint/read/load_plan.h"
#include "comm/collective/agree.h"
#include "compute/buffer.h"

namespace shardrec::checkpoint {

class TableLoader {
 public:
  // boxes: of this rank, by BoxNote::index; their dtypes may be others than the checkpoint's.
  // narrowed: what of that is counted, on the rank that reads it.
  TableLoader(const Group& group, const Opened& opened, const LoadPlan& plan,
              std::span<const BoxTensor* const> boxes, std::span<NarrowedTable> narrowed,
              Files& files, core::Control* control)
      : group_(group),
        opened_(opened),
        plan_(plan),
        boxes_(boxes),
        narrowed_(narrowed),
        files_(files),
        control_(control),
        outgoing_(static_cast<size_t>(group.size)),
        incoming_(static_cast<size_t>(group.size)) {}

  // Bytes that this rank reads.
  int64_t bytes_to_read() const;

  // Collective. Errors of this rank's reading are kept, told to the other ranks, which stop too,
  // and thrown when all have stopped; those of the communicator pass through.
  void run(const comm::Operation& operation);

 private:
  void read_own();
  // True when this rank has told the others that it failed.
  bool run_round(const comm::Operation& operation, const std::vector<Chunk>& round);
  void read_and_pack(const Chunk& chunk);
  std::span<const std::byte> read_chunk(const Chunk& chunk, std::span<std::byte> into);
  bool read_in_place(const Chunk& chunk);
  // Copies what a need is about between a chunk, or a message of just it, and the box.
  void scatter(const Chunk& chunk, const Need& need, const std::byte* from, bool from_message);
  void unpack(const Chunk& chunk, comm::ConstBytes message);
  int64_t message_bytes(const Chunk& chunk, int rank);
  void count_narrowed(const Chunk& chunk, std::span<const std::byte> data);

  const ManifestTensor& tensor_of(const Chunk& chunk) const {
    return opened_.manifest.tensors[static_cast<size_t>(chunk.tensor)];
  }
  int64_t bytes_of_chunk(const Chunk& chunk) const {
    const ManifestTensor& tensor = tensor_of(chunk);
    return chunk.rows * tensor.layout.row_bytes(tensor.cells.cols);
  }

  const Group& group_;
  const Opened& opened_;
  const LoadPlan& plan_;
  std::span<const BoxTensor* const> boxes_;
  std::span<NarrowedTable> narrowed_;
  Files& files_;
  core::Control* control_;
  std::exception_ptr failure_;
  compute::Buffer buffer_{compute::cpu_memory()};  // the chunk that is read
  compute::Buffer packed_{compute::cpu_memory()};  // messages of it
  Converter converter_;
  std::vector<comm::ConstBytes> outgoing_;
  std::vector<comm::ConstBytes> incoming_;
  std::vector<Need> needs_;
};

}  // namespace shardrec::checkpoint
