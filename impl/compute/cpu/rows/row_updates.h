// The operations of a back end on the touched rows of a step, on the CPU: rows are cut into pieces of
// about as many occurrences; those that very many ids name are summed by all threads (hot_rows.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compute/cpu/rows/hot_rows.h"
#include "compute/cpu/tasks/context.h"
#include "compute/row_operations.h"
#include "core/memory.h"

namespace shardrec::compute::cpu {

class RowUpdates {
 public:
  RowUpdates();

  void open(std::span<const TouchedRows> shards, const Context& context);
  void gradients(std::span<float* const> out, const Context& context);
  void sums(std::span<const RowSums> shards, const Context& context);
  void update(std::span<const RowStep> shards, const Context& context);
  void norms(std::span<const RowSums> shards, const Context& context);
  void rescale(std::span<const float* const> norms, const Context& context);

 private:
  // Rows [first, last) of one shard's touched rows: a share of the occurrences. hot: the one row's
  // number among hot_, -1: none.
  struct Piece {
    size_t shard = 0;
    int64_t first = 0;
    int64_t last = 0;
    int hot = -1;
  };
  // A piece as a kernel's job: rows [first, last) of the job are rows [first + base, last + base)
  // of the shard's touched ones.
  struct Share {
    RowUpdate job;
    int64_t first = 0;
    int64_t last = 0;
    int64_t base = 0;
  };

  void cut(const Context& context);
  void add_pieces(size_t shard, int64_t first, int64_t last);
  Share share_of(const Piece& piece) const;
  template <class Body>
  void for_each_piece(const Context& context, Body body);

  std::vector<TouchedRows> shards_;
  std::vector<GradientBlock> located_;  // of all shards
  std::vector<Piece> pieces_;
  HotRows hot_;
  size_t scratch_bytes_ = 0;  // of a kernel call
  size_t far_bytes_;          // gradients of more come from memory
  core::Scratch norms_memory_;
  std::vector<float*> norms_;  // by shard
};

}  // namespace shardrec::compute::cpu
