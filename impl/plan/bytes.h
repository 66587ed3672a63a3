// What a plan's boxes take of their ranks' memory: weights in the table's dtype, and what the
// optimizer keeps, in float32. The same that a collection allocates.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace shardrec::plan {

struct Bytes {
  int64_t weights = 0;
  int64_t states = 0;

  int64_t total() const { return weights + states; }
  Bytes& operator+=(const Bytes& other) {
    weights += other.weights;
    states += other.states;
    return *this;
  }
  bool operator==(const Bytes&) const = default;
};

// The bytes of each box of a table. Boxes of one row range on one rank share what is kept once per
// row over the whole row (row_statistics ROW): it counts with the first of them.
std::vector<Bytes> bytes_of_boxes(const Plan& plan, const Model& model, size_t table);
Bytes bytes_of_box(const Plan& plan, const Model& model, size_t table, size_t box);

// The bytes of a replicated table's copy on each rank, or of a table that is one box.
Bytes bytes_of_whole(const Model& model, size_t table);

}  // namespace shardrec::plan
