// What callers of a scorer know of its model: what a batch has, and what they get for it.
#pragma once

#include <cstdint>
#include <shardrec/shardrec.hpp>
#include <vector>

#include "bench/bench_ids.h"

namespace shardrec::cli {

struct ServedModel {
  explicit ServedModel(const Scorer& scorer);

  struct Sequence {
    size_t feature;
    int64_t dim;
  };

  std::vector<BenchTable> features;  // the table of each
  int64_t tables = 0;
  int64_t elements = 0;             // of all tables
  int64_t rows = 0;                 // of all tables
  int64_t weight_bytes = 0;         // as the checkpoint has them
  int64_t width = 0;                // of output 0
  std::vector<Sequence> sequences;  // by output, from 1 on
  int64_t dense_columns = 0;
  int64_t scores = 0;  // 0: no dense half

  // Of the weights as they are served: in 8 bits, or as the checkpoint has them.
  [[nodiscard]] int64_t served_bytes(bool coded) const {
    return coded ? elements + 8 * rows : weight_bytes;
  }
};

}  // namespace shardrec::cli
