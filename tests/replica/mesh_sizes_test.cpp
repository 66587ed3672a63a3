// Tables that have different numbers of replicas, in collections on meshes of different sizes over one communicator:
// they train together, and are in one checkpoint.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "capi/checkpoint_job.h"
#include "shardrec/shardrec.hpp"

namespace shardrec::test {
namespace {

constexpr int kRanksOfMeshes = 4;
constexpr int64_t kRowsOfTable = 11, kColumnsOfTable = 3;
constexpr int kSizes[] = {1, 2, 4};  // of the sharding groups: 4, 2 and 1 replicas

shardrec::Model model_of(int size) {
  shardrec::Model model;
  const int32_t table =
      model.add_table("of groups of " + std::to_string(size), kRowsOfTable, kColumnsOfTable,
                      shardrec::TableOptions().init(SHARDREC_INIT_ZEROS));
  model.add_feature(table, "f", SHARDREC_POOLING_SUM);
  model.set_optimizer(shardrec::OptimizerOptions().learning_rate(0.5));  // of SGD
  return model;
}

std::vector<float> rows_of(shardrec::Collection& tables) {
  std::vector<float> rows(static_cast<size_t>(kRowsOfTable * kColumnsOfTable));
  tables.read_range(0, SHARDREC_TABLE_WEIGHTS, 0, kRowsOfTable,
                    {rows.data(), kRowsOfTable, kColumnsOfTable});
  return rows;
}

// A table whose sharding groups have `size` ranks.
struct OfSize {
  OfSize(shardrec::Comm& comm, int size)
      : mesh(comm, size),
        model(model_of(size)),
        tables(comm, mesh, model, shardrec::Plan::collective(comm, mesh, model)),
        lookup(tables) {}

  void step(int rank, int64_t number) {
    const std::vector<int64_t> values = {(number + 2 * rank) % kRowsOfTable,
                                         3 * number % kRowsOfTable};
    const std::vector<int64_t> lengths = {2};
    std::vector<float> output(kColumnsOfTable);
    lookup.begin(1, values, lengths);
    lookup.forward(0, {output.data(), 1, kColumnsOfTable});
    for (float& value : output) value = 0.25F * static_cast<float>(rank + 1) + value;
    lookup.set_gradient(0, {output.data(), 1, kColumnsOfTable});
    lookup.backward();
  }

  shardrec::Mesh mesh;
  shardrec::Model model;
  shardrec::Collection tables;
  shardrec::Lookup lookup;
};

TEST(MeshSizes, TablesOfDifferentNumbersOfReplicasTrainTogetherAndAreInOneCheckpoint) {
  const shardrec_test::Directory directory;
  std::vector<std::vector<float>> expected(std::size(kSizes));
  shardrec::run(kRanksOfMeshes, [&](shardrec::Comm& comm) {
    std::vector<std::unique_ptr<OfSize>> all;
    for (const int size : kSizes) all.push_back(std::make_unique<OfSize>(comm, size));
    for (int64_t number = 0; number < 6; ++number) {
      for (auto& one : all) one->step(comm.rank(), number);
      for (auto& one : all) one->tables.sync_replicas();
    }
    shardrec::Checkpoint checkpoint(comm, directory.path());
    const std::vector<float> whole = rows_of(all.back()->tables);
    for (size_t i = 0; i < all.size(); ++i) {
      all[i]->tables.check_replicas();
      const std::vector<float> rows = rows_of(all[i]->tables);
      // SGD that is averaged after each step is that of one model.
      for (size_t at = 0; at < rows.size(); ++at) EXPECT_NEAR(rows[at], whole[at], 1e-5) << i;
      if (comm.rank() == 0) expected[i] = rows;
      checkpoint.add("tables " + std::to_string(kSizes[i]), all[i]->tables);
    }
    EXPECT_NE(whole, std::vector<float>(whole.size()));
    checkpoint.commit(6);
  });
  shardrec::run(2, [&](shardrec::Comm& comm) {
    shardrec::Checkpoint checkpoint(comm, directory.path());
    std::vector<std::unique_ptr<shardrec::Collection>> all;
    for (const int size : kSizes) {
      const shardrec::Model model = model_of(size);
      all.push_back(std::make_unique<shardrec::Collection>(
          comm, model, shardrec::Plan::collective(comm, model)));
      checkpoint.add("tables " + std::to_string(size), *all.back());
    }
    checkpoint.open(6);
    checkpoint.load();
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(rows_of(*all[i]), expected[i]) << i;
  });
}

}  // namespace
}  // namespace shardrec::test
