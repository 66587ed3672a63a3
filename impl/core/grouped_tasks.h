// The tasks of several groups (tables, features, blocks) as one list, for one parallel_for over all
// of them. Each group numbers its tasks from 0. The list is not thread-safe while it is filled;
// find() is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardrec::core {

class GroupedTasks {
 public:
  // Up to so many groups, add() allocates nothing.
  void reserve(size_t groups) { first_.reserve(groups + 1); }
  void clear() { first_.assign(1, 0); }
  // The next group, which may have no tasks.
  void add(int64_t tasks) { first_.push_back(first_.back() + tasks); }

  int64_t count() const { return first_.back(); }

  struct Position {
    size_t group = 0;
    int64_t task = 0;  // of the group
  };
  // task in [0, count())
  Position find(int64_t task) const {
    const auto above = std::upper_bound(first_.begin(), first_.end(), task);
    const auto group = static_cast<size_t>(above - first_.begin()) - 1;
    return {group, task - first_[group]};
  }

 private:
  std::vector<int64_t> first_ = {0};  // by group: number of tasks in the groups before it
};

}  // namespace shardrec::core
