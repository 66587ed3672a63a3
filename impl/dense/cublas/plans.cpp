#include "dense/cublas/plans.h"

#include <algorithm>
#include <utility>

namespace shardrec::dense::cublas {

Plan* Plans::find(const PlanKey& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  found->second.used = ++uses_;
  return &found->second.plan;
}

const Plan& Plans::add(const PlanKey& key, Plan plan) {
  make_room();
  Entry& entry = entries_[key];
  entry.plan = std::move(plan);
  entry.used = ++uses_;
  return entry.plan;
}

void Plans::make_room() {
  if (!is_full()) return;
  entries_.erase(
      std::min_element(entries_.begin(), entries_.end(),
                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

}  // namespace shardrec::dense::cublas
