// The plans of the products that a handle has prepared, the least recently used of which make room for new ones: to ask
// the library for an algorithm takes longer than many a product.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "dense/cublas/plan.h"

namespace shardrec::dense::cublas {

class Plans {
 public:
  static constexpr size_t kMost = 512;

  // The plan of products alike; null where it is not known.
  Plan* find(const PlanKey& key);
  bool is_full() const noexcept { return entries_.size() >= kMost; }
  // Adds one, instead of another where they are full. Throws std::bad_alloc.
  const Plan& add(const PlanKey& key, Plan plan);

 private:
  struct Entry {
    Plan plan;
    uint64_t used = 0;
  };
  void make_room();

  std::map<PlanKey, Entry> entries_;
  uint64_t uses_ = 0;
};

}  // namespace shardrec::dense::cublas
