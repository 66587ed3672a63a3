// Whatever mesh has saved: commits of tables alone and of all are loaded by the same mesh and by others.
#include <gtest/gtest.h>

#include "job.h"
#include "support/tables_alone.h"

namespace shardrec::checkpoint_faults {
namespace {

struct Layout {
  int replicas = 1;
  int sharding = 1;
  Shape shape() const { return {replicas * sharding, sharding}; }
};

const std::vector<Layout> kLayouts = {{1, 1}, {2, 1}, {1, 2}, {2, 2},
                                      {4, 1}, {1, 4}, {3, 2}, {2, 3}};

class Layouts : public testing::TestWithParam<Layout> {};

TEST_P(Layouts, WhatWasSavedIsLoaded) {
  const Scratch scratch;
  const std::string root = scratch.path("run");
  const std::string flat = scratch.path("flat");
  const Shape shape = GetParam().shape();
  uint64_t saved = 0;
  EXPECT_EQ(run_ranks(shape.ranks,
                      [&](Comm& comm, int rank) {
                        Training training(comm, shape, root, 0);
                        for (int i = 0; i < 3; ++i) training.train();
                        test::save_tables(comm, training.tables(), flat);
                        training.commit();
                        const uint64_t digest = training.digest();
                        if (rank == 0) saved = digest;
                        training.train();
                        test::load_tables(comm, training.tables(), flat);  // the tables alone
                        EXPECT_EQ(training.tables().step(), 3);
                        EXPECT_NE(training.digest(), saved);
                        EXPECT_TRUE(training.resume());
                        EXPECT_EQ(training.digest(), saved);
                        training.checkpoint().verify();
                      }),
            "");
  for (const Layout& other : kLayouts) {
    const Shape others = other.shape();
    EXPECT_EQ(run_ranks(others.ranks,
                        [&](Comm& comm, int) {
                          Training training(comm, others, root, 0);
                          training.checkpoint().open();
                          training.checkpoint().load();
                          EXPECT_EQ(training.digest(), saved) << others.text();
                          training.train();
                          // The layers are those that were loaded, and the tables are loaded again.
                          training.checkpoint().load();
                          test::load_tables(comm, training.tables(), flat);
                          EXPECT_EQ(training.digest(), saved) << others.text();
                        }),
              "");
  }
}

INSTANTIATE_TEST_SUITE_P(ReplicasTimesRanks, Layouts, testing::ValuesIn(kLayouts),
                         [](const auto& layout) {
                           return std::to_string(layout.param.replicas) + "x" +
                                  std::to_string(layout.param.sharding);
                         });

}  // namespace
}  // namespace shardrec::checkpoint_faults
