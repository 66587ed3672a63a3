// A scorer beside lookups of one rank and the layers themselves: the same bits, whatever plan wrote the
// checkpoint and wherever the tables lie.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "serving/served.h"
#include "support/tables_alone.h"

namespace shardrec_test {
namespace {

using shardrec::Scorer;
using shardrec::ScorerOptions;

struct Written {
  int ranks;
  shardrec_sharding sharding;
};
void PrintTo(const Written& written, std::ostream* out) {
  *out << written.ranks << " ranks, sharding " << written.sharding;
}

class Served : public ::testing::TestWithParam<Written> {
 protected:
  void SetUp() override {
    train(directory_.path(), {.ranks = GetParam().ranks, .sharding = GetParam().sharding});
  }
  Directory directory_;
};

TEST_P(Served, LookupsAndScoresHaveTheBitsOfOneRank) {
  OneRank reference(directory_.path());
  for (const auto kind : {SHARDREC_SERVED_TABLES_MEMORY, SHARDREC_SERVED_TABLES_MAPPED}) {
    const Scorer scorer(directory_.path(), -1, ScorerOptions().tables(kind));
    EXPECT_EQ(scorer.info().step, 1);
    EXPECT_EQ(scorer.info().dense_columns, kDense);
    EXPECT_EQ(scorer.info().scores, 1);
    // Sizes around the tiles of the layers and the chunks of the lookup.
    for (const int64_t size : {0, 1, 5, 64, 129, 600, 1100}) {
      const ServedBatch batch = random_batch(static_cast<uint64_t>(size), size);
      const std::vector<float> pooled = reference.look_up(batch, 0);
      EXPECT_TRUE(same_bytes(look_up(scorer, batch, 0), pooled)) << kind << " " << size;
      EXPECT_TRUE(same_bytes(look_up(scorer, batch, 1), reference.look_up(batch, 1)))
          << kind << " " << size;
      EXPECT_TRUE(same_bytes(look_up(scorer, batch, 0, true), reference.look_up(batch, 0, true)))
          << kind << " " << size;
      EXPECT_TRUE(same_bytes(predict(scorer, batch), reference.net().scores(batch, pooled)))
          << kind << " " << size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, Served,
                         ::testing::Values(Written{1, SHARDREC_SHARDING_TABLE_WISE},
                                           Written{3, SHARDREC_SHARDING_TABLE_WISE},
                                           Written{2, SHARDREC_SHARDING_ROW_WISE},
                                           Written{4, SHARDREC_SHARDING_ROW_WISE},
                                           Written{3, SHARDREC_SHARDING_COLUMN_WISE},
                                           Written{4, SHARDREC_SHARDING_GRID},
                                           Written{2, SHARDREC_SHARDING_DATA_PARALLEL},
                                           Written{4, SHARDREC_SHARDING_MIXED}));

// Cross layers of both ranks, alone and in runs, layer norm, and dropout, which scores leave out.
TEST(Scorer, LayersOfAllKindsHaveTheBitsOfEvaluation) {
  Directory directory;
  train(directory.path(), {.layers = Layers::kAllKinds});
  OneRank reference(directory.path(), -1, Layers::kAllKinds);
  const Scorer scorer(directory.path());
  for (const int64_t size : {0, 1, 7, 64, 129, 600, 1100}) {
    const ServedBatch batch = random_batch(static_cast<uint64_t>(size), size);
    const std::vector<float> pooled = reference.look_up(batch, 0);
    EXPECT_TRUE(same_bytes(predict(scorer, batch), reference.net().scores(batch, pooled))) << size;
  }
}

// A tiling that is no grid: four boxes around a fifth one.
TEST(Scorer, AnyTilingByRectanglesIsServedWhereItLies) {
  Directory directory;
  constexpr int64_t kRowsOfTable = 30;
  constexpr int64_t kColumns = 12;
  run(2, [&](shardrec::Comm& comm, int) {
    shardrec::Model model;
    const int32_t table = model.add_table("pinwheel", kRowsOfTable, kColumns);
    model.add_feature(table, "f");
    shardrec::Plan plan = shardrec::Plan::empty(model, shardrec::Topology(2));
    const auto add = [&](int32_t rank, int64_t row, int64_t rows, int64_t col, int64_t cols) {
      plan.add_box(table, {.rank = rank, .row = row, .rows = rows, .col = col, .cols = cols});
    };
    add(0, 0, 10, 0, 8);
    add(1, 0, 20, 8, 4);
    add(0, 20, 10, 4, 8);
    add(1, 10, 20, 0, 4);
    add(0, 10, 10, 4, 4);
    shardrec::Collection tables(comm, model, plan);
    shardrec::test::save_tables(comm, tables, directory.path());
  });
  const std::vector<int64_t> ids = {0, 9, 10, 15, 19, 20, 29};
  const std::vector<int64_t> lengths = {7};
  std::vector<float> memory(kColumns), mapped(kColumns);
  Scorer(directory.path())
      .lookup(0, {.batch_size = 1, .values = ids, .lengths = lengths},
              {memory.data(), 1, kColumns});
  Scorer(directory.path(), -1, ScorerOptions().tables("mapped"))
      .lookup(0, {.batch_size = 1, .values = ids, .lengths = lengths},
              {mapped.data(), 1, kColumns});
  EXPECT_TRUE(same_bytes(memory, mapped));
  for (const float x : memory) EXPECT_NE(x, 0);
}

TEST(Scorer, OutputsOf16BitsAreRoundedOnceAndIdsOf32BitsAreTheSame) {
  Directory directory;
  train(directory.path(), {});
  const Scorer scorer(directory.path());
  const ServedBatch batch = random_batch(5, 33);
  const std::vector<float> expected = look_up(scorer, batch, 0);
  const std::vector<int32_t> ids(batch.values.begin(), batch.values.end());
  const std::vector<int32_t> lengths(batch.lengths.begin(), batch.lengths.end());
  std::vector<float> out(expected.size());
  scorer.lookup(0, {.batch_size = batch.size, .values = ids, .lengths = lengths},
                {out.data(), batch.size, kWidth});
  EXPECT_TRUE(same_bytes(out, expected));
  std::vector<uint16_t> halves(expected.size());
  scorer.lookup(0, {.batch_size = batch.size, .values = batch.values, .lengths = batch.lengths},
                {halves.data(), SHARDREC_BFLOAT16, batch.size, kWidth});
  for (size_t i = 0; i < expected.size(); ++i) {
    const uint32_t bits = uint32_t{halves[i]} << 16;
    float x = 0;
    std::memcpy(&x, &bits, sizeof x);
    EXPECT_LE(std::fabs(x - expected[i]), std::ldexp(std::fabs(expected[i]), -8));
  }
  // Rows further apart than their columns; what is between stays.
  constexpr int64_t kStride = kWidth + 3;
  std::vector<float> wide(static_cast<size_t>(batch.size * kStride), -7.0F);
  scorer.lookup(0, {.batch_size = batch.size, .values = batch.values, .lengths = batch.lengths},
                {wide.data(), batch.size, kWidth, kStride});
  for (int64_t row = 0; row < batch.size; ++row) {
    for (int64_t c = 0; c < kStride; ++c) {
      const float at = wide[static_cast<size_t>(row * kStride + c)];
      EXPECT_EQ(at, c < kWidth ? expected[static_cast<size_t>(row * kWidth + c)] : -7.0F);
    }
  }
}

class Policies : public ::testing::TestWithParam<shardrec_out_of_range> {};

TEST_P(Policies, IdsOutOfRangeAreWhatTheirTableSays) {
  Directory directory;
  train(directory.path(),
        {.ranks = 2, .sharding = SHARDREC_SHARDING_ROW_WISE, .policy = GetParam()});
  OneRank reference(directory.path());
  for (const char* kind : {"memory", "mapped"}) {
    const Scorer scorer(directory.path(), -1, ScorerOptions().tables(kind));
    for (const int64_t size : {1, 40, 700}) {
      const ServedBatch batch = random_batch(static_cast<uint64_t>(size), size, true);
      for (const bool weighted : {false, true}) {
        EXPECT_TRUE(
            same_bytes(look_up(scorer, batch, 0, weighted), reference.look_up(batch, 0, weighted)))
            << kind << " " << size << " " << weighted;
      }
      EXPECT_TRUE(same_bytes(look_up(scorer, batch, 1), reference.look_up(batch, 1)))
          << kind << " " << size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Policies,
                         ::testing::Values(SHARDREC_OUT_OF_RANGE_DROP,
                                           SHARDREC_OUT_OF_RANGE_CLAMP));

// A finite row that 8 bits cannot hold is named when the checkpoint is opened, not served as NaN.
TEST(Scorer, RowsOfTooWideARangeAreNotServedIn8Bits) {
  Directory directory;
  shardrec::Local group(1);
  shardrec::Comm comm(group, 0);
  shardrec::Model model;
  model.add_feature(model.add_table("wide", 50, 4), "f");
  shardrec::Collection tables(comm, model, shardrec::Plan(model, shardrec::Topology(1)));
  shardrec::Checkpoint checkpoint(comm, directory.path());
  checkpoint.add("tables", tables);
  const auto refusal = [&](int64_t step, std::vector<float> row) {
    tables.write_range(0, SHARDREC_TABLE_WEIGHTS, 37, 1, {row.data(), 1, 4});
    checkpoint.commit(step);
    try {
      const Scorer coded(directory.path(), -1, ScorerOptions().tables("int8"));
    } catch (const shardrec::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_UNSUPPORTED);
      return std::string(error.what());
    }
    return std::string();
  };
  constexpr float kMost = std::numeric_limits<float>::max();
  EXPECT_EQ(refusal(1, {-kMost / 2, 0, 1, kMost / 2}), "");
  EXPECT_EQ(refusal(2, {-kMost, 0, 1, 1}), "");
  const std::string wide = refusal(3, {-kMost, 0, 1, kMost});
  EXPECT_NE(wide.find("row 37 of table \"wide\" spans a range"), std::string::npos) << wide;
  // One that is not finite is not so in any kind of table.
  EXPECT_EQ(refusal(4, {-kMost, 0, std::numeric_limits<float>::infinity(), kMost}), "");
}

// Elements are no further from what was trained than half a step of their row, and sums are those of
// the elements that sequences show.
TEST(Scorer, TablesOf8BitsAreWithinHalfAStepOfTheirRows) {
  for (const auto sharding : {SHARDREC_SHARDING_ROW_WISE, SHARDREC_SHARDING_COLUMN_WISE}) {
    Directory directory;
    train(directory.path(), {.ranks = 2, .sharding = sharding});
    const Scorer exact(directory.path());
    const Scorer coded(directory.path(), -1, ScorerOptions().tables("int8"));
    // Every row of table "a" once, in the sequence and one bag each.
    ServedBatch batch;
    batch.size = kTableRows[0];
    batch.sequence_ids = kTableRows[0];
    for (int64_t f = 0; f < kFeatures; ++f) {
      for (int64_t s = 0; s < batch.size; ++s) {
        batch.lengths.push_back(1);
        batch.values.push_back(s % kTableRows[kTableOf[f]]);
      }
    }
    const std::vector<float> rows = look_up(exact, batch, 1);
    const std::vector<float> near = look_up(coded, batch, 1);
    for (int64_t row = 0; row < batch.size; ++row) {
      const auto first = rows.begin() + row * kDim;
      const auto [least, most] = std::minmax_element(first, first + kDim);
      const float step = (*most - *least) / 255;
      for (int64_t c = 0; c < kDim; ++c) {
        EXPECT_LE(std::fabs(near[static_cast<size_t>(row * kDim + c)] - *(first + c)),
                  step * 0.5001F + 1e-7F);
      }
    }
    // A bag is the sum of its rows.
    const ServedBatch bags = random_batch(9, 50);
    const std::vector<float> sums = look_up(coded, bags, 0, true);
    size_t i = 0;
    for (int64_t s = 0; s < bags.size; ++s) {
      double expected[kDim] = {};
      double terms = 0;
      for (int64_t k = 0; k < bags.lengths[static_cast<size_t>(s)]; ++k, ++i) {
        for (int64_t c = 0; c < kDim; ++c) {
          const double term = double{bags.weights[i]} *
                              double{near[static_cast<size_t>(bags.values[i] * kDim + c)]};
          expected[c] += term;
          terms += std::fabs(term);
        }
      }
      for (int64_t c = 0; c < kDim; ++c) {
        EXPECT_NEAR(sums[static_cast<size_t>(s * kWidth + c)], expected[c], 1e-5 + 1e-5 * terms);
      }
    }
    // And scores are near.
    const std::vector<float> a = predict(exact, bags);
    const std::vector<float> b = predict(coded, bags);
    for (size_t s = 0; s < a.size(); ++s) EXPECT_NEAR(a[s], b[s], 0.01);
  }
}

// Pages of a file that several processes map are there once.
TEST(Scorer, MappedTablesAreTheFilesThemselves) {
  Directory directory;
  train(directory.path(), {.ranks = 2, .sharding = SHARDREC_SHARDING_ROW_WISE});
  const auto mapped_files = [] {
    std::ifstream maps("/proc/self/maps");
    std::set<std::string> files;
    for (std::string line; std::getline(maps, line);) {
      if (line.find(".safetensors") == std::string::npos) continue;
      EXPECT_NE(line.find(" r--s "), std::string::npos) << line;  // read, shared
      files.insert(line.substr(line.find('/')));
    }
    return files.size();
  };
  {
    const Scorer memory(directory.path());
    EXPECT_EQ(mapped_files(), 0U);
    const Scorer mapped(directory.path(), -1, ScorerOptions().tables("mapped"));
    EXPECT_EQ(mapped_files(), 2U);  // one of each rank that saved
  }
  EXPECT_EQ(mapped_files(), 0U);
}

TEST(Scorer, LogitsAreWhatTheTopLayersGive) {
  Directory directory;
  train(directory.path(), {});
  OneRank reference(directory.path());
  const Scorer scorer(directory.path(), -1, ScorerOptions().logits(true));
  const ServedBatch batch = random_batch(4, 70);
  EXPECT_TRUE(same_bytes(predict(scorer, batch),
                         reference.net().logits(batch, reference.look_up(batch, 0))));
  // [batch, 1], with a stride of its own.
  std::vector<float> out(static_cast<size_t>(batch.size * 2), -7.0F);
  scorer.predict({.batch_size = batch.size, .values = batch.values, .lengths = batch.lengths},
                 {batch.dense.data(), batch.size, kDense},
                 shardrec::Matrix(out.data(), batch.size, 1, 2));
  const std::vector<float> compact = predict(scorer, batch);
  for (size_t s = 0; s < compact.size(); ++s) {
    EXPECT_EQ(out[2 * s], compact[s]);
    EXPECT_EQ(out[2 * s + 1], -7.0F);
  }
}

TEST(Scorer, ServesAModelAsItWasSaved) {
  Directory directory;
  train(directory.path(), {.steps = {4, 9}});
  EXPECT_EQ(Scorer(directory.path()).info().step, 9);
  const Scorer scorer(directory.path(), 4);
  EXPECT_EQ(scorer.info().step, 4);
  EXPECT_EQ(scorer.model().to_json(), served_model().to_json());
  int64_t step = 0;
  (void)look_up(scorer, random_batch(1, 3), 0, false, &step);
  EXPECT_EQ(step, 4);
}

// A checkpoint may have tables only, and several collections.
TEST(Scorer, ServesTablesAlone) {
  Directory directory;
  run(1, [&](shardrec::Comm& comm, int) {
    const shardrec::Model model = served_model();
    const shardrec::Plan plan = make_plan(model, 1, SHARDREC_SHARDING_TABLE_WISE);
    shardrec::Collection tables(comm, model, plan);
    shardrec::Collection others(comm, model, plan, shardrec::CollectionOptions().seed(8));
    shardrec::test::save_tables(comm, tables, directory.path("alone"));
    shardrec::Checkpoint checkpoint(comm, directory.path("two"));
    checkpoint.add("first", tables);
    checkpoint.add("second", others);
    checkpoint.commit(0);
  });
  const ServedBatch batch = random_batch(2, 10);
  const Scorer alone(directory.path("alone"));
  EXPECT_EQ(alone.info().scores, 0);
  std::string sentence;
  EXPECT_EQ(status_of([&] { (void)predict(alone, batch); }, &sentence), SHARDREC_UNSUPPORTED);
  EXPECT_NE(sentence.find("no layers of the name \"bottom\""), std::string::npos) << sentence;

  EXPECT_EQ(status_of([&] { Scorer(directory.path("two")); }, &sentence), SHARDREC_NOT_FOUND);
  EXPECT_NE(sentence.find("2 collections"), std::string::npos) << sentence;
  const Scorer first(directory.path("two"), -1, ScorerOptions().collection("first"));
  const Scorer second(directory.path("two"), -1, ScorerOptions().collection("second"));
  EXPECT_TRUE(same_bytes(look_up(first, batch, 0), look_up(alone, batch, 0)));
  EXPECT_FALSE(same_bytes(look_up(second, batch, 0), look_up(alone, batch, 0)));
}

}  // namespace
}  // namespace shardrec_test
