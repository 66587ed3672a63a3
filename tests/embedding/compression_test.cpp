// Compression of the output and gradient exchanges, against float64: the error bounds that
// shardrec_compression states, for every kind of sharding, direction and type; and what must not
// change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>

#include "embedding/comparison.h"
#include "embedding/variations.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

constexpr shardrec_compression kNone = SHARDREC_COMPRESSION_NONE;
constexpr shardrec_compression kTypes[] = {
    SHARDREC_COMPRESSION_FLOAT16, SHARDREC_COMPRESSION_BFLOAT16, SHARDREC_COMPRESSION_INT8};
constexpr shardrec_sharding kKinds[] = {
    SHARDREC_SHARDING_TABLE_WISE,        SHARDREC_SHARDING_ROW_WISE,
    SHARDREC_SHARDING_COLUMN_WISE,       SHARDREC_SHARDING_TABLE_ROW_WISE,
    SHARDREC_SHARDING_TABLE_COLUMN_WISE, SHARDREC_SHARDING_GRID,
    SHARDREC_SHARDING_DATA_PARALLEL};

std::vector<BoxSpec> boxes_of(const TableSpec& table, const TablePlanSpec& plan) {
  if (plan.replicated) return {{0, 0, table.rows, 0, table.dim}};
  return plan.boxes;
}

// One row of a box on its way: how far each of its numbers may be off.
std::vector<double> bounds(shardrec_compression type, const std::vector<double>& row) {
  const auto [least, most] = std::minmax_element(row.begin(), row.end());
  const double range = *most - *least;
  const double largest = std::max(std::fabs(*least), std::fabs(*most));
  std::vector<double> out;
  for (const double x : row) {
    const double size = std::fabs(x);
    out.push_back(type == SHARDREC_COMPRESSION_FLOAT16    ? std::max(0x1p-11 * size, 0x1p-25)
                  : type == SHARDREC_COMPRESSION_BFLOAT16 ? std::max(0x1p-8 * size, 0x1p-134)
                  : type == SHARDREC_COMPRESSION_INT8
                      ? range / 510 * (1 + 0x1p-12) + 0x1p-23 * largest + 0x1p-100
                      : 0.0);
  }
  return out;
}

// A number in double, how far off it may be, and the sum of its terms' sizes.
struct Expected {
  double value = 0;
  double bound = 0;
  double size = 0;

  // Sums and products in fp32 beside what travelled.
  double limit() const { return bound * (1 + 1e-3) + 0x1p-19 * size; }
};
using ExpectedRow = std::vector<Expected>;

double at(const std::vector<float>& table, int64_t dim, int64_t row, int64_t col) {
  return static_cast<double>(table[static_cast<size_t>(row * dim + col)]);
}

// What a bag (or one id of a sequence) gives.
ExpectedRow expected_output(const TableSpec& table, const std::vector<BoxSpec>& boxes,
                            const std::vector<float>& weights, const std::vector<int64_t>& ids,
                            const std::vector<float>& id_weights, bool mean,
                            shardrec_compression type) {
  ExpectedRow out(static_cast<size_t>(table.dim));
  for (const BoxSpec& box : boxes) {
    std::vector<double> sums(static_cast<size_t>(box.cols));
    std::vector<double> sizes(sums.size());
    bool any = false;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < box.row || ids[i] >= box.row + box.rows) continue;
      any = true;
      for (int64_t c = 0; c < box.cols; ++c) {
        const double term =
            static_cast<double>(id_weights[i]) * at(weights, table.dim, ids[i], box.col + c);
        sums[static_cast<size_t>(c)] += term;
        sizes[static_cast<size_t>(c)] += std::fabs(term);
      }
    }
    if (!any) continue;
    const std::vector<double> off = bounds(type, sums);
    const double length = mean ? static_cast<double>(ids.size()) : 1;
    for (size_t c = 0; c < sums.size(); ++c) {
      Expected& column = out[static_cast<size_t>(box.col) + c];
      column.value += sums[c] / length;
      column.bound += off[c] / length;
      column.size += sizes[c] / length;
    }
  }
  return out;
}

void expect_within(const ExpectedRow& expected, const float* actual, const std::string& what) {
  for (size_t c = 0; c < expected.size(); ++c) {
    const double error = std::fabs(static_cast<double>(actual[c]) - expected[c].value);
    EXPECT_LE(error, expected[c].limit()) << what << ", column " << c << ", " << expected[c].value;
  }
}

void expect_outputs(const Scenario& scenario, const Deal& deal, const Outcome& run) {
  for (size_t i = 0; i < scenario.steps[0].size(); ++i) {
    const Sample& sample = scenario.steps[0][i];
    for (size_t f = 0; f < scenario.features.size(); ++f) {
      const FeatureSpec& feature = scenario.features[f];
      const auto t = static_cast<size_t>(feature.table);
      const TableSpec& table = scenario.tables[t];
      const std::vector<BoxSpec> boxes = boxes_of(table, deal.plan[t]);
      if (!feature.sequence) {
        const ExpectedRow row =
            expected_output(table, boxes, run.initial[t], sample.bags[f], sample.weights[f],
                            feature.mean, deal.forward_compression);
        expect_within(row, &run.outputs[0][i][static_cast<size_t>(scenario.column(f))], "output");
        continue;
      }
      for (size_t k = 0; k < sample.bags[f].size(); ++k) {
        const ExpectedRow row = expected_output(table, boxes, run.initial[t], {sample.bags[f][k]},
                                                {1.0F}, false, deal.forward_compression);
        expect_within(row, &run.sequences[0][i][f][k * static_cast<size_t>(table.dim)], "sequence");
      }
    }
  }
}

// SGD of rate 1, one step.
void expect_tables(const Scenario& scenario, const Deal& deal, const Outcome& run) {
  std::vector<ExpectedRow> tables;
  for (const std::vector<float>& initial : run.initial) {
    ExpectedRow& cells = tables.emplace_back();
    for (const float x : initial) {
      cells.push_back({static_cast<double>(x), 0, std::fabs(static_cast<double>(x))});
    }
  }
  const auto subtract = [&](size_t t, int64_t id, double weight, const float* gradient,
                            double length) {
    const TableSpec& table = scenario.tables[t];
    for (const BoxSpec& box : boxes_of(table, deal.plan[t])) {
      if (id < box.row || id >= box.row + box.rows) continue;
      std::vector<double> row;
      for (int64_t c = 0; c < box.cols; ++c) {
        row.push_back(static_cast<double>(gradient[box.col + c]) / scenario.divisor / length);
      }
      const std::vector<double> off = bounds(deal.backward_compression, row);
      for (size_t c = 0; c < row.size(); ++c) {
        Expected& cell = tables[t][static_cast<size_t>(id * table.dim + box.col) + c];
        cell.value -= weight * row[c];
        cell.bound += std::fabs(weight) * off[c];
        cell.size += std::fabs(weight * row[c]);
      }
    }
  };
  for (const Sample& sample : scenario.steps[0]) {
    for (size_t f = 0; f < scenario.features.size(); ++f) {
      const FeatureSpec& feature = scenario.features[f];
      const auto t = static_cast<size_t>(feature.table);
      const auto dim = static_cast<size_t>(scenario.tables[t].dim);
      for (size_t k = 0; k < sample.bags[f].size(); ++k) {
        if (feature.sequence) {
          subtract(t, sample.bags[f][k], 1, &sample.sequence_gradients[f][k * dim], 1);
        } else {
          const double length = feature.mean ? static_cast<double>(sample.bags[f].size()) : 1;
          subtract(t, sample.bags[f][k], static_cast<double>(sample.weights[f][k]),
                   &sample.gradient[static_cast<size_t>(scenario.column(f))], length);
        }
      }
    }
  }
  for (size_t t = 0; t < tables.size(); ++t) {
    expect_within(tables[t], run.tables[t].data(), "table " + std::to_string(t));
  }
}

Scenario plain_scenario(std::mt19937_64& random, int steps) {
  Scenario scenario = random_scenario(random, steps);
  scenario.optimizer = {.kind = SHARDREC_OPTIMIZER_SGD, .learning_rate = 1};
  add_sequences(scenario, random);
  return scenario;
}

void expect_same_outputs(const Scenario& scenario, const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.outputs.size(), scenario.steps.size());
  expect_same_bits(a.outputs, b.outputs, "output");
  expect_same_bits(a.sequences, b.sequences, "sequence");
}

void expect_same_tables(const Outcome& a, const Outcome& b) {
  expect_same_bits(a.tables, b.tables, "table");
}

class Compression : public ::testing::TestWithParam<shardrec_sharding> {};

TEST_P(Compression, StaysWithinItsBoundsAndChangesNothingElse) {
  std::map<shardrec_compression, int> changed_outputs;
  std::map<shardrec_compression, int> changed_tables;
  for (int seed = 0; seed < seeds(4); ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed) + 50);
    const Scenario scenario = plain_scenario(random, 1);
    Deal deal = named_deal(scenario, random, 4, 2, GetParam());
    deal.threads = 1 + seed % 2;
    const Outcome plain = train(scenario, deal);
    if (HasFatalFailure()) return;
    expect_outputs(scenario, deal, plain);
    expect_tables(scenario, deal, plain);
    for (const shardrec_compression type : kTypes) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", type " << type);
      deal.forward_compression = type;
      deal.backward_compression = kNone;
      const Outcome forward = train(scenario, deal);
      if (HasFatalFailure()) return;
      expect_outputs(scenario, deal, forward);
      expect_same_tables(forward, plain);
      EXPECT_EQ(forward.bytes_gradient, plain.bytes_gradient);
      changed_outputs[type] += forward.outputs != plain.outputs ? 1 : 0;

      deal.forward_compression = kNone;
      deal.backward_compression = type;
      const Outcome backward = train(scenario, deal);
      if (HasFatalFailure()) return;
      expect_tables(scenario, deal, backward);
      expect_same_outputs(scenario, backward, plain);
      EXPECT_EQ(backward.bytes_output, plain.bytes_output);
      EXPECT_EQ(backward.bytes_input, plain.bytes_input);
      changed_tables[type] += backward.tables != plain.tables ? 1 : 0;
      deal.backward_compression = kNone;
    }
  }
  for (const shardrec_compression type : kTypes) {
    EXPECT_GT(changed_outputs[type], 0) << "nothing was rounded on the way out, type " << type;
    EXPECT_GT(changed_tables[type], 0) << "nothing was rounded on the way back, type " << type;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Compression, ::testing::ValuesIn(kKinds));

bool cuts_rows(const Deal& deal, const Scenario& scenario) {
  for (size_t t = 0; t < scenario.tables.size(); ++t) {
    for (const BoxSpec& box : boxes_of(scenario.tables[t], deal.plan[t])) {
      if (box.rows != scenario.tables[t].rows) return true;
    }
  }
  return false;
}

bool cuts_columns(const Deal& deal, const Scenario& scenario) {
  for (size_t t = 0; t < scenario.tables.size(); ++t) {
    for (const BoxSpec& box : boxes_of(scenario.tables[t], deal.plan[t])) {
      if (box.cols != scenario.tables[t].dim) return true;
    }
  }
  return false;
}

TEST(CompressionPlans, GiveTheOneRankBitsWhereBoxesDoNotCutWhatIsRounded) {
  int compared_outputs = 0;
  int compared_tables = 0;
  for (int seed = 0; seed < seeds(4); ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed) + 70);
    const Scenario scenario = plain_scenario(random, 3);
    std::vector<Deal> deals;
    for (const shardrec_sharding kind : kKinds) {
      deals.push_back(named_deal(scenario, random, 4, 2, kind));
    }
    for (const int ranks : {1, 2, 3}) deals.push_back(random_deal(scenario, random, ranks));
    for (const shardrec_compression type : kTypes) {
      Deal alone = one_rank(scenario);
      alone.forward_compression = alone.backward_compression = type;
      const Outcome one = train(scenario, alone);
      for (Deal deal : deals) {
        deal.forward_compression = deal.backward_compression = type;
        const Outcome many = train(scenario, deal);
        if (HasFatalFailure()) return;
        const bool by_element = type != SHARDREC_COMPRESSION_INT8;
        if (by_element || !cuts_columns(deal, scenario)) {
          expect_same_tables(one, many);
          ++compared_tables;
          if (cuts_rows(deal, scenario)) continue;
          expect_same_outputs(scenario, one, many);
          ++compared_outputs;
        }
      }
    }
  }
  EXPECT_GT(compared_tables, seeds(4) * 20);
  EXPECT_GT(compared_outputs, seeds(4) * 7);
}

// The boxes of a row range on one rank, which travel side by side.
struct Piece {
  int32_t owner = 0;
  int64_t row = 0;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t boxes = 0;
};

std::vector<Piece> pieces_of(const TableSpec& table, const TablePlanSpec& plan) {
  std::map<std::tuple<int32_t, int64_t, int64_t>, Piece> pieces;
  for (const BoxSpec& box : boxes_of(table, plan)) {
    Piece& piece = pieces[{box.rank, box.row, box.rows}];
    piece = {box.rank, box.row, box.rows, piece.width + box.cols, piece.boxes + 1};
  }
  std::vector<Piece> out;
  for (const auto& [key, piece] : pieces) out.push_back(piece);
  return out;
}

int64_t block_bytes(int64_t rows, const Piece& piece, shardrec_compression type) {
  const int64_t row = type == kNone                       ? 4 * piece.width
                      : type == SHARDREC_COMPRESSION_INT8 ? piece.width + 8 * piece.boxes
                                                          : 2 * piece.width;
  return (rows * row + 63) / 64 * 64;
}

struct Bytes {
  int64_t output = 0;
  int64_t gradient = 0;
};

// What travels between different ranks, worked out from the boxes and the bags.
Bytes expected_bytes(const Scenario& scenario, const Deal& deal) {
  Bytes bytes;
  for (size_t s = 0; s < scenario.steps.size(); ++s) {
    size_t sample = 0;
    for (int source = 0; source < deal.ranks; ++source) {
      bytes.gradient += int64_t{64} * (deal.ranks - 1);  // headers
      const size_t first = sample;
      sample += static_cast<size_t>(deal.share[s][static_cast<size_t>(source)]);
      for (const FeatureSpec& feature : scenario.features) {
        const auto f = static_cast<size_t>(&feature - scenario.features.data());
        const auto t = static_cast<size_t>(feature.table);
        for (const Piece& piece : pieces_of(scenario.tables[t], deal.plan[t])) {
          int64_t rows = 0;
          for (size_t i = first; i < sample; ++i) {
            const auto& bag = scenario.steps[s][i].bags[f];
            const auto here = std::count_if(bag.begin(), bag.end(), [&](int64_t id) {
              return piece.row <= id && id < piece.row + piece.rows;
            });
            rows += feature.sequence ? here : (here > 0 ? 1 : 0);
          }
          if (deal.plan[t].replicated) {
            bytes.gradient +=
                (deal.ranks - 1) * block_bytes(rows, piece, deal.backward_compression);
          } else if (piece.owner != source) {
            bytes.output += block_bytes(rows, piece, deal.forward_compression);
            bytes.gradient += block_bytes(rows, piece, deal.backward_compression);
          }
        }
      }
    }
  }
  return bytes;
}

TEST(CompressionBytes, AreThoseOfTheRowsThatTravel) {
  for (int seed = 0; seed < seeds(4); ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed) + 90);
    const Scenario scenario = plain_scenario(random, 2);
    Deal deal = random_deal(scenario, random, 3);
    for (const shardrec_compression type :
         {kNone, SHARDREC_COMPRESSION_FLOAT16, SHARDREC_COMPRESSION_BFLOAT16,
          SHARDREC_COMPRESSION_INT8}) {
      deal.forward_compression = type;
      deal.backward_compression = kTypes[seed % 3];
      const Outcome run = train(scenario, deal);
      if (HasFatalFailure()) return;
      expect_outputs(scenario, deal, run);  // of tilings that no named kind has
      const Bytes expected = expected_bytes(scenario, deal);
      EXPECT_EQ(run.bytes_output, expected.output) << "type " << type;
      EXPECT_EQ(run.bytes_gradient, expected.gradient) << "type " << type;
    }
  }
}

TEST(CompressionBytes, AreHalfInSixteenBitsAndAQuarterAndTheScalesInEight) {
  std::mt19937_64 random(3);
  Scenario scenario;
  scenario.tables = {{1000, 128}, {500, 128}};
  scenario.features = {{0, false}, {1, true}};
  scenario.optimizer = {.kind = SHARDREC_OPTIMIZER_SGD, .learning_rate = 1};
  std::vector<Sample> batch(64);
  for (Sample& sample : batch) {
    for (const TableSpec& table : scenario.tables) {
      sample.bags.push_back({static_cast<int64_t>(random() % static_cast<uint64_t>(table.rows))});
      sample.weights.push_back({1.0F});
    }
    sample.gradient.assign(256, 0.25F);
  }
  scenario.steps.push_back(std::move(batch));
  for (const shardrec_sharding kind :
       {SHARDREC_SHARDING_TABLE_WISE, SHARDREC_SHARDING_COLUMN_WISE}) {
    Deal deal = named_deal(scenario, random, 4, 2, kind);
    deal.share = {{16, 16, 16, 16}};
    std::map<shardrec_compression, Outcome> runs;
    for (const shardrec_compression type :
         {kNone, SHARDREC_COMPRESSION_FLOAT16, SHARDREC_COMPRESSION_BFLOAT16,
          SHARDREC_COMPRESSION_INT8}) {
      deal.forward_compression = deal.backward_compression = type;
      runs[type] = train(scenario, deal);
      if (HasFatalFailure()) return;
    }
    // 64 samples, 2 tables, 3 of 4 ranks away, rows of 128 floats.
    const int64_t floats = int64_t{64} * 2 * 3 / 4 * 128;
    const int64_t scales = int64_t{64} * 2 * 3 / 4 * (kind == SHARDREC_SHARDING_TABLE_WISE ? 1 : 4);
    const int64_t headers = int64_t{4} * 3 * 64;
    EXPECT_EQ(runs[kNone].bytes_output, 4 * floats);
    EXPECT_EQ(runs[SHARDREC_COMPRESSION_FLOAT16].bytes_output, 2 * floats);
    EXPECT_EQ(runs[SHARDREC_COMPRESSION_BFLOAT16].bytes_output, 2 * floats);
    EXPECT_EQ(runs[SHARDREC_COMPRESSION_INT8].bytes_output, floats + 8 * scales);
    EXPECT_EQ(runs[kNone].bytes_gradient, 4 * floats + headers);
    EXPECT_EQ(runs[SHARDREC_COMPRESSION_FLOAT16].bytes_gradient, 2 * floats + headers);
    EXPECT_EQ(runs[SHARDREC_COMPRESSION_BFLOAT16].bytes_gradient, 2 * floats + headers);
    EXPECT_EQ(runs[SHARDREC_COMPRESSION_INT8].bytes_gradient, floats + 8 * scales + headers);
  }
}

// Gradients that 16 bits have, and no division but by 2: every input form, and what else a backward
// gives, as without compression.
TEST(CompressionOfGradients, ThatTheTypeHasChangesNoBit) {
  for (int seed = 0; seed < seeds(6); ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed) + 110);
    Scenario scenario = random_scenario(random, 4);
    scenario.divisor = 2;
    scenario.weighted = true;
    if (seed % 2 == 0) add_sequences(scenario, random);
    if (seed % 3 == 0) add_accumulation(scenario, random);
    round_gradients(scenario, random);
    for (FeatureSpec& feature : scenario.features) feature.mean = false;
    scenario.optimizer.max_gradient = seed % 2 == 0 ? 0.5 : 0;
    Deal deal = random_deal(scenario, random, 1 + seed % 3);
    deal.weight_gradient = true;
    const Outcome plain = train(scenario, deal);
    for (const shardrec_compression type :
         {SHARDREC_COMPRESSION_FLOAT16, SHARDREC_COMPRESSION_BFLOAT16}) {
      deal.backward_compression = type;
      const Outcome run = train(scenario, deal);
      if (HasFatalFailure()) return;
      expect_same_tables(run, plain);
      expect_same_outputs(scenario, run, plain);
      EXPECT_EQ(run.weight_gradients, plain.weight_gradients);
    }
  }
}

TEST(CompressionOfGradients, MakesWholeRowsOfABoxNanInEightBits) {
  Scenario scenario;
  scenario.tables = {{3, 6}};
  scenario.features = {{0, false}};
  scenario.optimizer = {.kind = SHARDREC_OPTIMIZER_SGD, .learning_rate = 1};
  const float infinity = std::numeric_limits<float>::infinity();
  scenario.steps.push_back(
      {{{{0}}, {{1.0F}}, {1, infinity, 2, 3, 4, 5}}, {{{1}}, {{1.0F}}, {1, 2, 3, 4, 5, 6}}});
  Deal deal;
  deal.plan = {{false, {{0, 0, 3, 0, 3}, {0, 0, 3, 3, 3}}}};
  deal.share = {{2}};
  deal.backward_compression = SHARDREC_COMPRESSION_INT8;
  const Outcome run = train(scenario, deal);
  if (HasFatalFailure()) return;
  for (size_t cell = 0; cell < 18; ++cell) {
    EXPECT_EQ(std::isnan(run.tables[0][cell]), cell < 3) << cell;
    EXPECT_TRUE(cell < 3 || std::isfinite(run.tables[0][cell])) << cell;
  }
}

TEST(CompressionOfGradients, SaturatesFiniteOnesBeyondFloat16AndCountsThem) {
  Scenario scenario;
  scenario.tables = {{3, 6}};
  scenario.features = {{0, false}};
  scenario.optimizer = {.kind = SHARDREC_OPTIMIZER_SGD, .learning_rate = 1};
  scenario.divisor = 1;
  const float infinity = std::numeric_limits<float>::infinity();
  scenario.steps.push_back(
      {{{{1}}, {{1.0F}}, {1e5F, -3e38F, 65519, -infinity, std::nanf(""), 65520}}});
  Deal deal;
  deal.plan = {{false, {{0, 0, 3, 0, 6}}}};
  deal.share = {{1}};
  deal.backward_compression = SHARDREC_COMPRESSION_FLOAT16;
  const Outcome run = train(scenario, deal);
  if (HasFatalFailure()) return;
  const auto change = [&](size_t column) { return run.tables[0][6 + column]; };
  for (const size_t column : {0U, 2U, 5U}) EXPECT_NEAR(change(column), -65504, 1) << column;
  EXPECT_NEAR(change(1), 65504, 1);
  EXPECT_EQ(change(3), infinity);
  EXPECT_TRUE(std::isnan(change(4)));
  const char* backend = std::getenv("SHARDREC_TEST_BACKEND");
  const bool on_device = backend != nullptr && std::string_view(backend) == "cuda";
  EXPECT_EQ(run.saturated, on_device ? 0 : 3);
}

TEST(CompressionOptions, MustBeTheSameOnAllRanks) {
  for (const shardrec_option key :
       {SHARDREC_OPTION_FORWARD_COMPRESSION, SHARDREC_OPTION_BACKWARD_COMPRESSION}) {
    run_ranks(3, 3, [&](int rank, shardrec_comm* comm) {
      shardrec_model* model = nullptr;
      SR_OK(shardrec_model_create(nullptr, &model));
      SR_OK(shardrec_model_add_table(model, "t", 10, 4, nullptr, nullptr));
      SR_OK(shardrec_model_add_feature(model, 0, "f", SHARDREC_POOLING_SUM));
      shardrec_plan* plan = nullptr;
      SR_OK(shardrec_plan_collective(comm, nullptr, model, nullptr, &plan));
      shardrec_options* options = nullptr;
      SR_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
      SR_OK(shardrec_options_set_text(options, key, rank == 2 ? "int8" : "bfloat16"));
      shardrec_collection* tables = nullptr;
      EXPECT_EQ(shardrec_collection_create(comm, nullptr, model, plan, options, &tables),
                SHARDREC_DISAGREEMENT);
      const std::string sentence = shardrec_last_error();
      EXPECT_NE(sentence.find(key == SHARDREC_OPTION_FORWARD_COMPRESSION ? "FORWARD_COMPRESSION"
                                                                         : "BACKWARD_COMPRESSION"),
                std::string::npos)
          << sentence;
      EXPECT_NE(sentence.find("rank 2"), std::string::npos) << sentence;
      shardrec_options_destroy(&options);
      shardrec_plan_destroy(&plan);
      shardrec_model_destroy(&model);
    });
  }
}

}  // namespace
}  // namespace shardrec::test
