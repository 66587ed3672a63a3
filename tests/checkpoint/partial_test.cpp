// A warm start: a checkpoint is loaded into tables that have other names, rows, dtypes or optimizers than
// those it was saved of. What is expected is computed cell by cell from what the old tables were read as.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "capi/checkpoint_job.h"
#include "shardrec/shardrec.hpp"

namespace shardrec_test {
namespace {

using nlohmann::json;
using shardrec::Checkpoint;
using shardrec::Collection;
using shardrec::Comm;
using PartialValues = std::vector<float>;

struct TableShape {
  std::string name;
  int64_t rows = 0;
  int64_t dim = 0;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_ADAM;
};
using Shapes = std::vector<TableShape>;

shardrec::Model model_of(const Shapes& shapes) {
  shardrec::Model model;
  for (const TableShape& shape : shapes) {
    const int32_t table = model.add_table(shape.name, shape.rows, shape.dim,
                                          shardrec::TableOptions().dtype(shape.dtype));
    model.add_feature(table, shape.name);
    model.set_optimizer(table, shardrec::OptimizerOptions().optimizer(shape.optimizer));
  }
  return model;
}

// Widths of the weights and of each state.
std::vector<int64_t> widths_of(const TableShape& shape) {
  switch (shape.optimizer) {
    case SHARDREC_OPTIMIZER_SGD:
      return {shape.dim};
    case SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD:
      return {shape.dim, 1};
    case SHARDREC_OPTIMIZER_ADAGRAD:
      return {shape.dim, shape.dim};
    default:
      return {shape.dim, shape.dim, shape.dim};
  }
}

// The weights and states of each table, as floats.
using State = std::vector<std::vector<PartialValues>>;

State read(Collection& tables, const Shapes& shapes) {
  State all;
  for (size_t t = 0; t < shapes.size(); ++t) {
    std::vector<PartialValues>& parts = all.emplace_back();
    for (const int64_t width : widths_of(shapes[t])) {
      PartialValues& values = parts.emplace_back(static_cast<size_t>(shapes[t].rows * width));
      tables.read_range(static_cast<int32_t>(t), static_cast<shardrec_table_part>(parts.size() - 1),
                        0, shapes[t].rows, {values.data(), shapes[t].rows, width});
    }
  }
  return all;
}

// Numbers of every magnitude, ties between neighbours of 16 bits among them.
float some_number(std::mt19937& random) {
  static const PartialValues kEdges = {0.0F,      -0.0F,     65504.0F,   65519.996F, 65520.0F,
                                       -65520.0F, 1e9F,      -3e38F,     0x1p-24F,   0x1p-25F,
                                       0x3p-25F,  -0x1p-30F, 0x1.002p0F, 0x1.006p0F, 0x1.01p0F,
                                       0x1.03p0F, INFINITY,  -INFINITY};
  if (random() % 4 == 0) return kEdges[random() % kEdges.size()];
  const auto mantissa = static_cast<float>(static_cast<int32_t>(random()));
  return std::ldexp(mantissa, -31 + static_cast<int>(random() % 44) - 26);
}

void write_some(Collection& tables, const Shapes& shapes, uint32_t seed) {
  std::mt19937 random(seed);
  for (size_t t = 0; t < shapes.size(); ++t) {
    int part = 0;
    for (const int64_t width : widths_of(shapes[t])) {
      PartialValues values(static_cast<size_t>(shapes[t].rows * width));
      for (float& value : values) value = some_number(random);
      tables.write_range(static_cast<int32_t>(t), static_cast<shardrec_table_part>(part++), 0,
                         shapes[t].rows, {values.data(), shapes[t].rows, width});
    }
  }
}

// x in a format of `digits` binary digits behind the first one, by the definition of rounding to nearest even.
float rounded(double x, int digits, int least_exponent, double largest, bool saturates) {
  if (!std::isfinite(x) || x == 0) return static_cast<float>(x);
  const double unit = std::ldexp(1.0, std::max(std::ilogb(x), least_exponent) - digits);
  const double nearest = std::nearbyint(x / unit) * unit;
  if (std::abs(nearest) <= largest) return static_cast<float>(nearest);
  return static_cast<float>(std::copysign(saturates ? largest : INFINITY, x));
}

float converted(float x, shardrec_dtype dtype) {
  switch (dtype) {
    case SHARDREC_FLOAT16:
      return rounded(x, 10, -14, 65504, true);
    case SHARDREC_BFLOAT16:
      return rounded(x, 7, -126, 0x1.FEp127, false);
    default:
      return x;
  }
}

// The same number, zeros by their sign.
bool same(float a, float b) { return a == b && std::signbit(a) == std::signbit(b); }

int64_t differing(const PartialValues& got, const PartialValues& expected) {
  EXPECT_EQ(got.size(), expected.size());
  int64_t count = 0;
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    if (same(got[i], expected[i])) continue;
    if (++count < 4) ADD_FAILURE() << "at " << i << ": " << got[i] << ", not " << expected[i];
  }
  return count;
}

shardrec::Plan plan_of(const shardrec::Model& model, int ranks, shardrec_sharding sharding) {
  return make_plan(model, ranks, sharding);
}

struct WorldOfKind {
  int ranks = 1;
  shardrec_sharding sharding = SHARDREC_SHARDING_ROW_WISE;
};

// Saves tables with numbers as collection "tables", at update 7; returns what is in them.
State save(const Directory& directory, const WorldOfKind& world, const Shapes& shapes,
           uint32_t seed = 1) {
  State saved;
  run(world.ranks, [&](Comm& comm, int rank) {
    const shardrec::Model model = model_of(shapes);
    Collection tables(comm, model, plan_of(model, world.ranks, world.sharding));
    if (rank == 0) write_some(tables, shapes, seed);
    if (rank != 0) {
      for (size_t t = 0; t < shapes.size(); ++t) {
        for (size_t part = 0; part < widths_of(shapes[t]).size(); ++part) {
          tables.write_range(static_cast<int32_t>(t), static_cast<shardrec_table_part>(part), 0, 0,
                             nullptr);
        }
      }
    }
    tables.set_step(7);
    State state = read(tables, shapes);
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("tables", tables);
    checkpoint.commit(70);
    if (rank == 0) saved = std::move(state);
  });
  return saved;
}

// Tables of their own in a checkpoint that is open.
class Warm {
 public:
  Warm(Comm& comm, const Directory& directory, const WorldOfKind& world, const Shapes& shapes)
      : shapes_(shapes),
        model_(model_of(shapes)),
        tables(comm, model_, plan_of(model_, world.ranks, world.sharding)),
        checkpoint(comm, directory.path()) {
    checkpoint.add("tables", tables);
    checkpoint.open();
  }
  State state() { return read(tables, shapes_); }
  json load(const json& rules) { return json::parse(checkpoint.load_partial(rules.dump())); }
  shardrec_status refusal(const std::string& rules, std::string* sentence) {
    return status_of([&] { checkpoint.load_partial(rules); }, sentence);
  }

 private:
  Shapes shapes_;
  shardrec::Model model_;

 public:
  Collection tables;
  Checkpoint checkpoint;
};

const char* name_of(shardrec_dtype dtype) {
  return dtype == SHARDREC_FLOAT32 ? "float32" : dtype == SHARDREC_FLOAT16 ? "float16" : "bfloat16";
}

constexpr shardrec_dtype kDtypes[] = {SHARDREC_FLOAT32, SHARDREC_FLOAT16, SHARDREC_BFLOAT16};
constexpr shardrec_sharding kKinds[] = {
    SHARDREC_SHARDING_TABLE_WISE,        SHARDREC_SHARDING_ROW_WISE,
    SHARDREC_SHARDING_COLUMN_WISE,       SHARDREC_SHARDING_GRID,
    SHARDREC_SHARDING_DATA_PARALLEL,     SHARDREC_SHARDING_TABLE_ROW_WISE,
    SHARDREC_SHARDING_TABLE_COLUMN_WISE, SHARDREC_SHARDING_MIXED};
constexpr shardrec_optimizer kOptimizersOfParts[] = {
    SHARDREC_OPTIMIZER_ADAM, SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD, SHARDREC_OPTIMIZER_SGD};

class AnyChange : public ::testing::TestWithParam<std::pair<int, int>> {};

// Nine tables, one for each pair of dtypes; rows, states and sharding by chance.
TEST_P(AnyChange, LoadsTheCellsThatItSays) {
  std::mt19937 random(static_cast<uint32_t>(GetParam().first * 10 + GetParam().second));
  for (int round = 0; round < 5; ++round) {
    Shapes old;
    Shapes now;
    json rules = {{"version", 1},
                  {"rows", "any"},
                  {"dtype", "convert"},
                  {"extra", "ignore"},
                  {"missing", "keep"}};
    json tables = json::array();
    std::vector<std::string> states;
    for (int pair = 0; pair < 9; ++pair) {
      const int64_t dim = 1 + static_cast<int64_t>(random() % 9);
      const auto optimizer = kOptimizersOfParts[random() % 3];
      const auto rows = [&] { return 1 + static_cast<int64_t>(random() % 40); };
      const std::string number = std::to_string(pair);
      old.push_back({"old" + number, rows(), dim, kDtypes[pair / 3], optimizer});
      now.push_back({"new" + number, random() % 3 == 0 ? old.back().rows : rows(), dim,
                     kDtypes[pair % 3], optimizer});
      static const std::vector<std::string> kStates = {"load", "reset", "keep"};
      states.push_back(kStates[random() % 3]);
      if (states.back() != "load") now.back().optimizer = kOptimizersOfParts[random() % 3];
      tables.push_back(
          {{"name", now.back().name}, {"from", old.back().name}, {"state", states.back()}});
    }
    old.push_back({"gone", 5, 3, SHARDREC_FLOAT32, SHARDREC_OPTIMIZER_SGD});
    now.push_back({"added", 6, 4, SHARDREC_BFLOAT16, SHARDREC_OPTIMIZER_ADAM});
    rules["collections"] = {{{"name", "tables"}, {"tables", tables}}};
    const WorldOfKind from{GetParam().first, kKinds[random() % std::size(kKinds)]};
    const WorldOfKind to{GetParam().second, kKinds[random() % std::size(kKinds)]};
    const Directory directory;
    const State saved = save(directory, from, old, random());
    run(to.ranks, [&](Comm& comm, int) {
      Warm warm(comm, directory, to, now);
      // States that are reset have been others.
      for (size_t t = 0; t < now.size(); ++t) {
        const auto widths = widths_of(now[t]);
        for (size_t part = 1; part < widths.size(); ++part) {
          PartialValues some(static_cast<size_t>(now[t].rows * widths[part]), 0.25F);
          warm.tables.write_range(static_cast<int32_t>(t), static_cast<shardrec_table_part>(part),
                                  0, now[t].rows, {some.data(), now[t].rows, widths[part]});
        }
      }
      State expected = warm.state();
      const json report = warm.load(rules);
      const State got = warm.state();
      EXPECT_EQ(warm.tables.step(), 7);
      ASSERT_EQ(report.at("tables").size(), 9U);
      for (size_t t = 0; t < now.size(); ++t) {
        SCOPED_TRACE(now[t].name + ", round " + std::to_string(round));
        const bool loaded = t < 9;
        const int64_t rows = loaded ? std::min(old[t].rows, now[t].rows) : 0;
        int64_t saturated = 0;
        for (int64_t i = 0; i < rows * now[t].dim; ++i) {
          const float x = saved[t][0][static_cast<size_t>(i)];
          expected[t][0][static_cast<size_t>(i)] = converted(x, now[t].dtype);
          saturated += now[t].dtype == SHARDREC_FLOAT16 && std::isfinite(x) && std::abs(x) >= 65520;
        }
        const auto widths = widths_of(now[t]);
        for (size_t part = 1; loaded && part < widths.size(); ++part) {
          PartialValues& cells = expected[t][part];
          if (states[t] == "reset") std::fill(cells.begin(), cells.end(), 0.0F);
          if (states[t] != "load") continue;
          std::copy_n(saved[t][part].begin(), rows * widths[part], cells.begin());
        }
        for (size_t part = 0; part < widths.size(); ++part) {
          EXPECT_EQ(differing(got[t][part], expected[t][part]), 0) << "part " << part;
        }
        if (!loaded) continue;
        const json& line = report.at("tables")[t];
        EXPECT_EQ(line.at("name"), now[t].name);
        EXPECT_EQ(line.at("from"), old[t].name);
        EXPECT_EQ(line.at("rows"), rows);
        EXPECT_EQ(line.at("new_rows"), now[t].rows - rows);
        EXPECT_EQ(line.at("dropped_rows"), old[t].rows - rows);
        EXPECT_EQ(line.at("dtype"), name_of(now[t].dtype));
        EXPECT_EQ(line.at("from_dtype"), name_of(old[t].dtype));
        EXPECT_EQ(line.at("saturated"), saturated);
        const std::string& state = states[t];
        EXPECT_EQ(line.at("state"), widths.size() == 1 ? "none"
                                    : state == "load"  ? "loaded"
                                    : state == "reset" ? "reset"
                                                       : "kept");
      }
      EXPECT_EQ(report.at("missing"),
                (json{{{"kind", "table"}, {"collection", "tables"}, {"name", "added"}}}));
      EXPECT_EQ(report.at("extra"),
                (json{{{"kind", "table"}, {"collection", "tables"}, {"name", "gone"}}}));
      EXPECT_EQ(report.at("step"), 70);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, AnyChange,
                         ::testing::Values(std::pair(1, 1), std::pair(1, 3), std::pair(4, 1),
                                           std::pair(2, 4), std::pair(3, 2)));

const Shapes kOld = {{"user", 9, 4}, {"item", 7, 3, SHARDREC_BFLOAT16}};

TEST(LoadPartial, OfADocumentThatSaysNothingIsALoad) {
  const Directory directory;
  const State saved = save(directory, {2, SHARDREC_SHARDING_ROW_WISE}, kOld);
  run(3, [&](Comm& comm, int) {
    Warm warm(comm, directory, {3, SHARDREC_SHARDING_COLUMN_WISE}, kOld);
    const json report = warm.load({{"version", 1}});
    const State got = warm.state();
    for (size_t t = 0; t < saved.size(); ++t) {
      for (size_t part = 0; part < saved[t].size(); ++part) {
        EXPECT_EQ(differing(got[t][part], saved[t][part]), 0);
      }
    }
    EXPECT_EQ(warm.tables.step(), 7);
    EXPECT_EQ(report.at("collections"),
              (json{{{"name", "tables"}, {"from", "tables"}, {"step", 7}, {"step_loaded", true}}}));
    for (const char* list : {"missing", "left_out", "extra", "layers", "parameters"}) {
      EXPECT_EQ(report.at(list), json::array()) << list;
    }
  });
}

// What the document does not allow is refused on all ranks before anything has changed, and says what would.
TEST(LoadPartial, IsStrictWhereTheDocumentSaysNothing) {
  const Directory directory;
  save(directory, {2, SHARDREC_SHARDING_ROW_WISE}, kOld);
  struct Case {
    Shapes shapes;
    json rules;
    shardrec_status status;
    const char* part;
  };
  const TableShape user = kOld[0];
  const TableShape item = kOld[1];
  const auto with = [](TableShape shape, auto change) {
    change(shape);
    return shape;
  };
  const std::vector<Case> cases = {
      {{user}, json::object(), SHARDREC_NOT_FOUND, "table \"item\"; \"extra\": \"ignore\""},
      {{user, item, {"new", 3, 3}}, json::object(), SHARDREC_NOT_FOUND, "no table \"new\""},
      {{with(user, [](auto& t) { t.rows = 10; }), item},
       json::object(),
       SHARDREC_INVALID_ARGUMENT,
       "\"rows\": \"more\""},
      {{with(user, [](auto& t) { t.rows = 8; }), item},
       {{"rows", "more"}},
       SHARDREC_INVALID_ARGUMENT,
       "\"rows\": \"fewer\""},
      {{with(user, [](auto& t) { t.dim = 5; }), item},
       {{"rows", "any"}},
       SHARDREC_INVALID_ARGUMENT,
       "4 columns"},
      {{user, with(item, [](auto& t) { t.dtype = SHARDREC_FLOAT16; })},
       {{"rows", "any"}},
       SHARDREC_INVALID_ARGUMENT,
       "\"dtype\": \"convert\""},
      {{with(user, [](auto& t) { t.optimizer = SHARDREC_OPTIMIZER_ADAGRAD; }), item},
       {{"dtype", "convert"}},
       SHARDREC_INVALID_ARGUMENT,
       "\"state\": \"reset\""},
      // What a rule names by another name has to be there.
      {{user, item},
       {{"missing", "keep"},
        {"collections", {{{"name", "tables"}, {"tables", {{{"name", "user"}, {"from", "u"}}}}}}}},
       SHARDREC_NOT_FOUND,
       "no table \"u\""},
      {{user, item},
       {{"missing", "keep"}, {"collections", {{{"name", "tables"}, {"from", "gone"}}}}},
       SHARDREC_NOT_FOUND,
       "no collection \"gone\""},
      {{user, item},
       {{"collections", {{{"name", "tables"}, {"tables", {{{"name", "nobody"}}}}}}}},
       SHARDREC_INVALID_ARGUMENT,
       "table \"nobody\""},
      {{user, item},
       {{"collections", {{{"name", "others"}}}}},
       SHARDREC_INVALID_ARGUMENT,
       "\"others\""},
      {{user, item}, {{"layers", {{{"name", "top"}}}}}, SHARDREC_INVALID_ARGUMENT, "\"top\""},
      {{user, item}, {{"parameters", {{{"name", "p"}}}}}, SHARDREC_INVALID_ARGUMENT, "\"p\""},
  };
  for (const Case& given : cases) {
    SCOPED_TRACE(given.rules.dump() + " " + given.part);
    json rules = given.rules;
    rules["version"] = 1;
    run(2, [&](Comm& comm, int) {
      Warm warm(comm, directory, {2, SHARDREC_SHARDING_ROW_WISE}, given.shapes);
      const State before = warm.state();
      std::string sentence;
      EXPECT_EQ(warm.refusal(rules.dump(), &sentence), given.status) << sentence;
      EXPECT_NE(sentence.find(given.part), std::string::npos) << sentence;
      EXPECT_EQ(warm.state(), before);
      EXPECT_EQ(warm.tables.step(), 0);
      comm.barrier();
    });
  }
}

TEST(LoadPartial, OfABrokenDocumentIsRefusedWithThePlaceInIt) {
  const Directory directory;
  save(directory, {1}, kOld);
  const std::vector<std::pair<std::string, const char*>> documents = {
      {"", "rules of a load"},
      {"{", "rules of a load"},
      {"[]", "rules of a load"},
      {"{}", "version"},
      {R"({"version": 2})", "later release"},
      {R"({"version": "1"})", "version"},
      {R"({"version": 1, "row": "more"})", "row"},
      {R"({"version": 1, "rows": "larger"})", "same, more, fewer, any"},
      {R"({"version": 1, "rows": 3})", "rows"},
      {R"({"version": 1, "dtype": "float16"})", "same, convert"},
      {R"({"version": 1, "state": "zero"})", "load, base, reset, keep"},
      {R"({"version": 1, "step": "reset"})", "load, keep"},
      {R"({"version": 1, "missing": "ignore"})", "error, keep"},
      {R"({"version": 1, "extra": "keep"})", "error, ignore"},
      {R"({"version": 1, "load": "none"})", "all, listed"},
      {R"({"version": 1, "version": 1})", "version"},
      {R"({"version": 1, "collections": {}})", "collections"},
      {R"({"version": 1, "collections": [{}]})", "collections[0]"},
      {R"({"version": 1, "collections": [{"name": "tables"}, {"name": "tables"}]})", "named twice"},
      {R"({"version": 1, "collections": [{"name": "tables", "tables": [{"name": "user", "step": "keep"}]}]})",
       "collections[0].tables[0]"},
      {R"({"version": 1, "collections": [{"name": "tables", "load": "none", "tables": [{"name": "user"}]}]})",
       "collections[0].tables"},
      {R"({"version": 1, "layers": [{"name": "a", "rows": "more"}]})", "layers[0]"},
      {"{\"version\": 1, \"collections\": [{\"name\": \"\xff\"}]}", "UTF-8"},
  };
  run(2, [&](Comm& comm, int) {
    Warm warm(comm, directory, {2, SHARDREC_SHARDING_ROW_WISE}, kOld);
    const State before = warm.state();
    for (const auto& [document, part] : documents) {
      std::string sentence;
      EXPECT_EQ(warm.refusal(document, &sentence), SHARDREC_INVALID_ARGUMENT) << document;
      EXPECT_NE(sentence.find(part), std::string::npos) << document << ": " << sentence;
    }
    EXPECT_EQ(warm.state(), before);
  });
}

TEST(LoadPartial, OfRanksThatDoNotSayTheSameIsRefusedOnAll) {
  const Directory directory;
  save(directory, {1}, kOld);
  run(3, [&](Comm& comm, int rank) {
    Warm warm(comm, directory, {3, SHARDREC_SHARDING_ROW_WISE}, kOld);
    const State before = warm.state();
    std::string sentence;
    const std::string rules = R"({"version": 1})";
    EXPECT_EQ(warm.refusal(rank == 1 ? rules + " " : rules, &sentence), SHARDREC_DISAGREEMENT);
    EXPECT_NE(sentence.find("rank 1"), std::string::npos) << sentence;
    EXPECT_EQ(warm.refusal(rank == 2 ? "nothing" : rules, &sentence), SHARDREC_INVALID_ARGUMENT);
    EXPECT_NE(sentence.find("rank 2"), std::string::npos) << sentence;
    char* text = nullptr;
    EXPECT_EQ(shardrec_checkpoint_load_partial(warm.checkpoint.get(),
                                               rank == 0 ? nullptr : rules.c_str(), nullptr, &text),
              SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(shardrec_checkpoint_load_partial(warm.checkpoint.get(), rules.c_str(), nullptr,
                                               rank == 0 ? nullptr : &text),
              SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(text, nullptr);
    EXPECT_EQ(warm.state(), before);
    warm.load({{"version", 1}});
    EXPECT_EQ(warm.tables.step(), 7);
  });
}

// A list of tables; the others stay as they are, with their settings.
TEST(LoadPartial, OfListedTablesLeavesTheOthersAlone) {
  const Directory directory;
  const State saved = save(directory, {2, SHARDREC_SHARDING_ROW_WISE}, kOld);
  run(2, [&](Comm& comm, int) {
    Warm warm(comm, directory, {2, SHARDREC_SHARDING_GRID}, kOld);
    warm.tables.set_learning_rate(0, 0.5);
    warm.tables.set_frozen(0, true);
    warm.tables.set_frozen(1, true);
    warm.tables.set_step(3);
    const State before = warm.state();
    const json report =
        warm.load({{"version", 1},
                   {"step", "keep"},
                   {"collections",
                    {{{"name", "tables"}, {"load", "listed"}, {"tables", {{{"name", "item"}}}}}}}});
    const State got = warm.state();
    EXPECT_EQ(got[0], before[0]);
    EXPECT_EQ(differing(got[1][0], saved[1][0]), 0);
    EXPECT_EQ(warm.tables.step(), 3);
    EXPECT_EQ(warm.tables.learning_rate(0), 0.5);
    EXPECT_TRUE(warm.tables.frozen(0));
    EXPECT_FALSE(warm.tables.frozen(1));  // as it was saved
    EXPECT_EQ(report.at("left_out"),
              (json{{{"kind", "table"}, {"collection", "tables"}, {"name", "user"}}}));
    EXPECT_EQ(report.at("collections")[0].at("step"), 3);
    EXPECT_EQ(report.at("collections")[0].at("step_loaded"), false);
    // With states that are not loaded, settings are not.
    warm.tables.set_frozen(1, true);
    warm.load({{"version", 1}, {"state", "reset"}});
    EXPECT_TRUE(warm.tables.frozen(1));
    EXPECT_TRUE(warm.tables.frozen(0));
  });
}

TEST(LoadPartial, FillsSeveralTablesFromOne) {
  const Directory directory;
  const State saved = save(directory, {2, SHARDREC_SHARDING_ROW_WISE}, {kOld[0]});
  const Shapes now = {{"user", 9, 4}, {"half", 12, 4, SHARDREC_FLOAT16}, {"few", 2, 4}};
  run(3, [&](Comm& comm, int) {
    Warm warm(comm, directory, {3, SHARDREC_SHARDING_ROW_WISE}, now);
    const json table = {{"from", "user"}, {"rows", "any"}, {"dtype", "convert"}};
    json half = table;
    half["name"] = "half";
    json few = table;
    few["name"] = "few";
    warm.load({{"version", 1}, {"collections", {{{"name", "tables"}, {"tables", {half, few}}}}}});
    const State got = warm.state();
    EXPECT_EQ(differing(got[0][0], saved[0][0]), 0);
    for (size_t i = 0; i < 9 * 4; ++i) {
      EXPECT_TRUE(same(got[1][0][i], converted(saved[0][0][i], SHARDREC_FLOAT16))) << i;
    }
    EXPECT_TRUE(std::equal(got[2][0].begin(), got[2][0].end(), saved[0][0].begin(), same));
    EXPECT_TRUE(std::equal(saved[0][1].begin(), saved[0][1].end(), got[1][1].begin()));
  });
}

// More than one chunk of rows, converted by the ranks that hold them.
TEST(LoadPartial, OfTablesOfManyChunks) {
  const Directory directory;
  const Shapes old = {{"large", 50021, 32, SHARDREC_FLOAT32, SHARDREC_OPTIMIZER_SGD}};
  const Shapes now = {{"large", 61000, 32, SHARDREC_BFLOAT16, SHARDREC_OPTIMIZER_SGD}};
  const State saved = save(directory, {2, SHARDREC_SHARDING_ROW_WISE}, old);
  for (const shardrec_sharding kind : {SHARDREC_SHARDING_COLUMN_WISE, SHARDREC_SHARDING_GRID}) {
    run(3, [&](Comm& comm, int rank) {
      Warm warm(comm, directory, {3, kind}, now);
      State expected = warm.state();
      warm.load({{"version", 1}, {"rows", "more"}, {"dtype", "convert"}});
      const State got = warm.state();
      if (rank != 0) return;
      for (size_t i = 0; i < saved[0][0].size(); ++i) {
        expected[0][0][i] = converted(saved[0][0][i], SHARDREC_BFLOAT16);
      }
      EXPECT_EQ(differing(got[0][0], expected[0][0]), 0);
    });
  }
}

// Statistics of column shards load into the same cuts only; without them any cut will do.
TEST(LoadPartial, WithoutStatesTakesShardStatisticsIntoOtherCuts) {
  const auto model_with = [] {
    shardrec::Model model;
    model.add_feature(model.add_table("t", 12, 12), "f");
    model.set_optimizer(shardrec::OptimizerOptions()
                            .optimizer(SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD)
                            .row_statistics(SHARDREC_ROW_STATISTICS_SHARD));
    return model;
  };
  const Directory directory;
  run(3, [&](Comm& comm, int) {
    const shardrec::Model model = model_with();
    Collection tables(comm, model, plan_of(model, 3, SHARDREC_SHARDING_COLUMN_WISE));
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("tables", tables);
    checkpoint.commit(1);
  });
  run(2, [&](Comm& comm, int) {
    const shardrec::Model model = model_with();
    Collection tables(comm, model, plan_of(model, 2, SHARDREC_SHARDING_COLUMN_WISE));
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("tables", tables);
    checkpoint.open();
    EXPECT_EQ(status_of([&] { checkpoint.load_partial(R"({"version": 1})"); }),
              SHARDREC_UNSUPPORTED);
    checkpoint.load_partial(R"({"version": 1, "state": "reset"})");
  });
}

// Layers and parameters are loaded whole under a name, or stay.
TEST(LoadPartial, OfLayersAndParameters) {
  const Directory directory;
  std::vector<float> trained;
  run(2, [&](Comm& comm, int rank) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(model, 2, SHARDREC_SHARDING_ROW_WISE));
    for (int64_t i = 0; i < 4; ++i) job.step(i);
    Checkpoint checkpoint(comm, directory.path());
    add_all(checkpoint, job);
    checkpoint.commit(4);
    auto state = job.state();
    if (rank == 0) trained = std::move(state);
  });
  run(2, [&](Comm& comm, int) {
    const shardrec::Model model = make_model();
    Job job(comm, nullptr, model, make_plan(model, 2, SHARDREC_SHARDING_COLUMN_WISE));
    const std::vector<float> fresh = job.dense_state();
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("tables", job.tables);
    checkpoint.add("stack", job.layers);
    checkpoint.add("host", job.own_ddp());
    checkpoint.open();
    const auto load = [&](const char* rules) {
      return json::parse(checkpoint.load_partial(rules));
    };
    EXPECT_EQ(status_of([&] { load(R"({"version": 1, "extra": "ignore"})"); }), SHARDREC_NOT_FOUND);
    json report = load(R"({"version": 1, "extra": "ignore", "missing": "keep",
                           "parameters": [{"name": "host", "load": "none"}]})");
    EXPECT_EQ(job.dense_state(), fresh);
    EXPECT_EQ(report.at("missing"), (json{{{"kind", "layers"}, {"name", "stack"}}}));
    EXPECT_EQ(report.at("left_out"), (json{{{"kind", "parameters"}, {"name", "host"}}}));
    EXPECT_EQ(report.at("extra"), (json{{{"kind", "layers"}, {"name", "layers"}}}));
    report = load(R"({"version": 1, "load": "listed", "parameters": [{"name": "host"}],
                      "layers": [{"name": "stack", "from": "layers"}]})");
    EXPECT_EQ(report.at("layers"), (json{{{"name", "stack"}, {"from", "layers"}}}));
    EXPECT_EQ(report.at("parameters"), (json{{{"name", "host"}, {"from", "host"}}}));
    EXPECT_EQ(report.at("left_out"), (json{{{"kind", "collection"}, {"name", "tables"}}}));
    EXPECT_EQ(job.state(), trained);
  });
}

// A collection of which nothing is loaded goes on with its batch; others end theirs, as in a load.
TEST(LoadPartial, LeavesACollectionOfWhichNothingIsLoadedInItsStep) {
  const Directory directory;
  save(directory, {2, SHARDREC_SHARDING_ROW_WISE}, kOld);
  run(2, [&](Comm& comm, int) {
    Warm warm(comm, directory, {2, SHARDREC_SHARDING_ROW_WISE}, kOld);
    shardrec::Lookup lookup(warm.tables);
    const std::vector<int64_t> ids = {1, 2};
    const std::vector<int32_t> lengths = {1, 1};
    PartialValues out(7);
    const auto forward = [&] {
      lookup.begin(1, ids, lengths);
      lookup.forward(0, {out.data(), 1, 7});
      lookup.set_gradient(0, {out.data(), 1, 7});
    };
    forward();
    const json report = warm.load({{"version", 1}, {"load", "listed"}, {"extra", "error"}});
    EXPECT_EQ(report.at("collections"), json::array());
    lookup.backward();
    EXPECT_EQ(warm.tables.step(), 1);
    forward();
    warm.load({{"version", 1}});
    EXPECT_EQ(status_of([&] { lookup.backward(); }), SHARDREC_INVALID_STATE);
  });
}

// Behind a load that has filled tables in part, a load of some of them makes nothing whole.
TEST(LoadPartial, OfAPartDoesNotMakeWholeWhatALoadLeftInPart) {
  const Directory directory;
  save(directory, {2, SHARDREC_SHARDING_ROW_WISE}, kOld);
  run(2, [&](Comm& comm, int rank) {
    const std::string step = directory.path("run/step_000000000070");
    Warm warm(comm, directory, {2, SHARDREC_SHARDING_ROW_WISE}, kOld);
    comm.barrier();
    if (rank == 0) damage(step);
    comm.barrier();
    std::string sentence;
    const std::string all = R"({"version": 1})";
    EXPECT_EQ(warm.refusal(all, &sentence), SHARDREC_CORRUPT_DATA) << sentence;
    EXPECT_EQ(status_of([&] { warm.state(); }), SHARDREC_INVALID_STATE);
    comm.barrier();
    if (rank == 0) damage(step);  // the byte is as it was
    comm.barrier();
    for (
        const char* part :
        {R"({"version": 1, "state": "keep"})",
         R"({"version": 1, "collections": [{"name": "tables", "load": "listed", "tables": [{"name": "user"}]}]})"}) {
      EXPECT_EQ(warm.refusal(part, &sentence), SHARDREC_INVALID_STATE);
      EXPECT_NE(sentence.find("filled in part"), std::string::npos) << sentence;
    }
    warm.load({{"version", 1}, {"state", "reset"}});
    warm.state();
  });
}

TEST(LoadPartial, OnAMeshWantsReplicasThatAreOneModel) {
  const Directory directory;
  const State saved = save(directory, {2, SHARDREC_SHARDING_ROW_WISE}, {kOld[0]});
  const Shapes now = {{"user", 9, 4, SHARDREC_FLOAT16}, {"new", 5, 3}};
  run(4, [&](Comm& comm, int) {
    shardrec::Mesh mesh(comm, 2);
    const shardrec::Model model = model_of(now);
    Collection tables(comm, mesh, model, plan_of(model, 2, SHARDREC_SHARDING_ROW_WISE));
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("tables", tables);
    checkpoint.open();
    tables.set_step(1);  // as if the replicas had taken a step
    const char* rules = R"({"version": 1, "missing": "keep", "dtype": "convert"})";
    std::string sentence;
    EXPECT_EQ(status_of([&] { checkpoint.load_partial(rules); }, &sentence),
              SHARDREC_INVALID_STATE);
    EXPECT_NE(sentence.find("sync_replicas"), std::string::npos) << sentence;
    tables.sync_replicas();
    checkpoint.load_partial(rules);
    const State got = read(tables, now);
    for (size_t i = 0; i < saved[0][0].size(); ++i) {
      EXPECT_TRUE(same(got[0][0][i], converted(saved[0][0][i], SHARDREC_FLOAT16))) << i;
    }
    checkpoint.commit(71);
  });
}

TEST(LoadPartial, IsCancelledBeforeAnythingHasChanged) {
  const Directory directory;
  save(directory, {1}, kOld);
  run(2, [&](Comm& comm, int rank) {
    Warm warm(comm, directory, {2, SHARDREC_SHARDING_ROW_WISE}, kOld);
    const State before = warm.state();
    shardrec::Control control;
    if (rank == 1) control.cancel();
    EXPECT_EQ(status_of([&] { warm.checkpoint.load_partial(R"({"version": 1})", &control); }),
              SHARDREC_CANCELLED);
    EXPECT_EQ(warm.state(), before);
  });
}

}  // namespace
}  // namespace shardrec_test
