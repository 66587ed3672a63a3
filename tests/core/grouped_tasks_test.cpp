// Tasks of several groups in one list, groups without tasks among them.
#include "core/grouped_tasks.h"

#include <gtest/gtest.h>

#include <vector>

namespace shardrec::core {
namespace {

TEST(GroupedTasks, EachTaskHasItsGroupAndNumber) {
  GroupedTasks tasks;
  EXPECT_EQ(tasks.count(), 0);
  for (const std::vector<int64_t>& groups :
       {std::vector<int64_t>{0, 3, 0, 0, 2, 0}, std::vector<int64_t>{1}, std::vector<int64_t>{}}) {
    tasks.clear();
    for (const int64_t count : groups) tasks.add(count);
    int64_t task = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      for (int64_t i = 0; i < groups[g]; ++i, ++task) {
        const GroupedTasks::Position position = tasks.find(task);
        EXPECT_EQ(position.group, g);
        EXPECT_EQ(position.task, i);
      }
    }
    EXPECT_EQ(tasks.count(), task);
  }
}

}  // namespace
}  // namespace shardrec::core
