// The stages of a step, one at a time, each against a plain reading of the batch: what route()
// sends and the inbox finds, how the index plan groups it by row, and how outputs are put together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "embedding/backward/index_plan.h"
#include "embedding/backward/received_gradients.h"
#include "embedding/batch/batch.h"
#include "embedding/exchange/inbox.h"
#include "embedding/exchange/route.h"
#include "embedding/forward/assembly.h"
#include "embedding/step_tools.h"
#include "embedding/tables/layout.h"
#include "plan/plan.h"
#include "support/ranks.h"

namespace shardrec::embedding {
namespace {

using Random = std::mt19937_64;

int64_t between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

// A number that depends on its arguments only, in [-1, 1), with all bits of a float in use.
float number(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  uint64_t x = 0x9E3779B97F4A7C15U;
  for (const uint64_t part : {a, b, c, d}) x = (x ^ part) * 0xD6E8FEB86659FD93U, x ^= x >> 32;
  return static_cast<float>(static_cast<int32_t>(x >> 32)) * 0x1p-31F;
}

// An id as it is looked up: the policy of its table has been applied.
struct Id {
  int64_t row = -1;  // -1: dropped
  float weight = 1;
};
using Bag = std::vector<Id>;

// The batch of one rank, plainly and as the caller gives it.
struct RankBatch {
  std::vector<std::vector<Bag>> bags;  // by feature and sample
  std::vector<int64_t> values;
  std::vector<int32_t> lengths;
  std::vector<float> weights;
  int64_t samples = 0;
};

// A model, a plan and the batches of all ranks, by chance.
class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    ranks_ = static_cast<int>(between(random_, 1, 5));
    weighted_ = random_() % 2 == 0;
    deduplicates_ = random_() % 2 == 0;
    plan_.topology = {ranks_, static_cast<int32_t>(between(random_, 1, ranks_))};
    make_model();
    for (int rank = 0; rank < ranks_; ++rank) {
      layouts_.push_back(std::make_unique<Layout>(model_, plan_, rank));
      batches_.push_back(make_batch());
    }
    for (int rank = 0; rank < ranks_; ++rank) route(rank);
  }

  int ranks() const { return ranks_; }
  const plan::Model& model() const { return model_; }
  const Layout& layout(int rank) const { return *layouts_[static_cast<size_t>(rank)]; }
  const RankBatch& batch(int rank) const { return batches_[static_cast<size_t>(rank)]; }
  const RoutedBatch& routed(int rank) const { return *routed_[static_cast<size_t>(rank)]; }
  const CheckedBatch& checked(int rank) const { return *checked_[static_cast<size_t>(rank)]; }
  bool weighted() const { return weighted_; }
  bool sequence(int32_t feature) const {
    return model_.features[static_cast<size_t>(feature)].pooling == SHARDREC_POOLING_NONE;
  }

  std::vector<comm::ConstBytes> messages_to(int owner) const {
    std::vector<comm::ConstBytes> messages;
    for (const auto& routed : routed_) {
      messages.push_back(routed->messages()[static_cast<size_t>(owner)]);
    }
    return messages;
  }

  // Samples of all ranks before those of `rank`.
  int64_t first_sample(int rank) const {
    int64_t first = 0;
    for (int r = 0; r < rank; ++r) first += batch(r).samples;
    return first;
  }

  // The bags of a feature of `source` as a part of `owner` sees them: rows of the part, empty where
  // none of a bag's are there.
  std::vector<Bag> bags_of(int source, const Part& part, int32_t feature) const {
    std::vector<Bag> out;
    const TableLayout& table = layout(source).table(part.table);
    for (const Bag& bag : batch(source).bags[static_cast<size_t>(feature)]) {
      Bag& own = out.emplace_back();
      if (table.own_ids_only() && part.owner != source) continue;
      for (const Id& id : bag) {
        if (id.row < part.row || id.row >= part.row + part.rows) continue;
        own.push_back({id.row - part.row, id.weight});
      }
    }
    return out;
  }

 private:
  void make_model() {
    const int64_t tables = between(random_, 1, 4);
    for (int64_t t = 0; t < tables; ++t) {
      plan::Table table{.name = "t" + std::to_string(t)};
      table.rows = between(random_, 1, t == 0 ? 2000 : 40);
      table.dim = between(random_, 1, 9);
      table.out_of_range =
          random_() % 2 == 0 ? SHARDREC_OUT_OF_RANGE_DROP : SHARDREC_OUT_OF_RANGE_CLAMP;
      plan::add_table(model_, table);
    }
    const int64_t features = between(random_, tables, tables + 3);
    for (int64_t f = 0; f < features; ++f) {
      constexpr shardrec_pooling kPoolings[] = {SHARDREC_POOLING_SUM, SHARDREC_POOLING_MEAN,
                                                SHARDREC_POOLING_NONE};
      plan::add_feature(model_, {.name = "f" + std::to_string(f),
                                 .table = static_cast<int32_t>(f % tables),
                                 .pooling = kPoolings[random_() % 3]});
    }
    plan_.tables.resize(model_.tables.size());
    for (int32_t t = 0; t < static_cast<int32_t>(tables); ++t) cut(t);
    plan::check_tiling(plan_, model_);
  }

  void cut(int32_t t) {
    const plan::Table& table = model_.tables[static_cast<size_t>(t)];
    if (between(random_, 0, 4) == 0) {
      plan::add_replicated(plan_, model_, t);
      plan::set_replication(plan_, model_, t,
                            static_cast<shardrec_replication>(between(random_, 1, 3)));
      return;
    }
    for (int64_t row = 0; row < table.rows;) {
      const int64_t rows =
          between(random_, std::min(table.rows - row, table.rows / 4 + 1), table.rows - row);
      for (int64_t col = 0; col < table.dim;) {
        const int64_t cols =
            between(random_, std::min<int64_t>(2, table.dim - col), table.dim - col);
        const auto rank = static_cast<int32_t>(between(random_, 0, ranks_ - 1));
        plan::add_box(plan_, model_, t, {rank, row, rows, col, cols});
        col += cols;
      }
      row += rows;
    }
  }

  RankBatch make_batch() {
    RankBatch batch;
    // More than a chunk of the route and a block of the sums, one sample, or none.
    constexpr int64_t kSamples[] = {0, 1, 40, 1100};
    batch.samples = kSamples[random_() % 4];
    for (const plan::Feature& feature : model_.features) {
      const plan::Table& table = model_.tables[static_cast<size_t>(feature.table)];
      const int64_t rarely = between(random_, 0, 3);  // sparse lengths, where bags are few
      std::vector<Bag>& bags = batch.bags.emplace_back(static_cast<size_t>(batch.samples));
      for (Bag& bag : bags) {
        const int64_t length = between(random_, 0, rarely) == 0 ? between(random_, 0, 5) : 0;
        batch.lengths.push_back(static_cast<int32_t>(length));
        for (int64_t i = 0; i < length; ++i) add_id(table, batch, bag);
      }
    }
    return batch;
  }

  void add_id(const plan::Table& table, RankBatch& batch, Bag& bag) {
    const bool hot = random_() % 2 == 0;
    const int64_t stray = between(random_, 0, 19);
    const int64_t value =
        stray == 0 ? -1
        : stray == 1
            ? table.rows + between(random_, 0, 3)
            : between(random_, 0, hot ? std::min<int64_t>(2, table.rows - 1) : table.rows - 1);
    const bool outside = value < 0 || value >= table.rows;
    const bool dropped = outside && table.out_of_range == SHARDREC_OUT_OF_RANGE_DROP;
    batch.values.push_back(value);
    batch.weights.push_back(static_cast<float>(between(random_, -8, 8)) / 4);
    bag.push_back({.row = dropped   ? -1
                          : outside ? 0
                                    : value,
                   .weight = weighted_ ? batch.weights.back() : 1.0F});
  }

  void route(int rank) {
    RankBatch& batch = batches_[static_cast<size_t>(rank)];
    const shardrec_tensor values = test::vector_of(batch.values);
    const shardrec_tensor lengths = test::vector_of(batch.lengths);
    const shardrec_tensor weights = test::vector_of(batch.weights);
    BatchArguments arguments{.batch_size = batch.samples, .values = &values, .lengths = &lengths};
    if (weighted_) arguments.weights = &weights;
    checked_.push_back(std::make_unique<CheckedBatch>());
    routed_.push_back(std::make_unique<RoutedBatch>(layout(rank), false));
    buffers_.push_back(std::make_unique<core::Scratch>());
    routed_.back()->set_deduplicates(deduplicates_);
    Verdict verdict = checked_.back()->fill(arguments, layout(rank), tools_.context().backend);
    verdict = routed_.back()->route(*checked_.back(), verdict, tools_.context(), *buffers_.back());
    EXPECT_TRUE(verdict.good());
  }

  Random random_;
  int ranks_ = 1;
  bool weighted_ = false;
  bool deduplicates_ = false;
  plan::Model model_;
  plan::Plan plan_;
  StepTools tools_{2};
  std::vector<std::unique_ptr<Layout>> layouts_;  // by rank, as all below
  std::vector<RankBatch> batches_;
  std::vector<std::unique_ptr<CheckedBatch>> checked_;
  std::vector<std::unique_ptr<RoutedBatch>> routed_;
  std::vector<std::unique_ptr<core::Scratch>> buffers_;
};

int64_t id_at(const compute::Ids& ids, int64_t i) {
  return ids.is_64 ? static_cast<const int64_t*>(ids.data)[i]
                   : static_cast<const int32_t*>(ids.data)[i];
}

struct Count {
  int64_t ids = 0;
  int64_t bags = 0;
};
Count count(const std::vector<Bag>& bags) {
  Count out;
  for (const Bag& bag : bags) {
    out.ids += std::ssize(bag);
    out.bags += bag.empty() ? 0 : 1;
  }
  return out;
}

class Stages : public ::testing::TestWithParam<int> {
 protected:
  const World world_{static_cast<uint64_t>(GetParam()) + 90000};
  StepTools tools_{2};
};

TEST_P(Stages, RouteRemembersWhichBagWentWhere) {
  for (int source = 0; source < world_.ranks(); ++source) {
    const Layout& layout = world_.layout(source);
    const RoutedBatch& routed = world_.routed(source);
    for (int owner = 0; owner < world_.ranks(); ++owner) {
      const auto blocks = layout.blocks_of(owner);
      const auto sent = routed.blocks(owner);
      ASSERT_EQ(sent.size(), blocks.size());
      for (size_t b = 0; b < blocks.size(); ++b) {
        const Part& part = layout.parts()[static_cast<size_t>(blocks[b].part)];
        const auto bags = world_.bags_of(source, part, blocks[b].feature);
        const Count expected = count(bags);
        ASSERT_EQ(sent[b].ids, expected.ids);
        ASSERT_EQ(sent[b].bags, expected.bags);
        ASSERT_EQ(sent[b].rows, blocks[b].sequence ? expected.ids : expected.bags);
        if (expected.ids == 0) continue;
        int64_t bag = 0;
        for (size_t sample = 0; sample < bags.size(); ++sample) {
          ASSERT_EQ(sent[b].holds(bag, static_cast<int64_t>(sample)), !bags[sample].empty());
          bag += bags[sample].empty() ? 0 : 1;
        }
      }
    }
    for (size_t f = 0; f < world_.model().features.size(); ++f) {
      const auto lengths = routed.lengths(static_cast<int32_t>(f));
      const auto& bags = world_.batch(source).bags[f];
      for (size_t sample = 0; sample < bags.size(); ++sample) {
        const auto kept = std::count_if(bags[sample].begin(), bags[sample].end(),
                                        [](const Id& id) { return id.row >= 0; });
        ASSERT_EQ(lengths[sample], kept);
      }
    }
  }
}

TEST_P(Stages, TheInboxHoldsTheRowsOfItsParts) {
  for (int owner = 0; owner < world_.ranks(); ++owner) {
    const Layout& layout = world_.layout(owner);
    Inbox inbox(layout);
    inbox.open(world_.messages_to(owner));
    EXPECT_EQ(inbox.refused_rank(), -1);
    EXPECT_EQ(inbox.global_batch(), world_.first_sample(world_.ranks()));
    int64_t ids = 0;
    for (int source = 0; source < world_.ranks(); ++source) {
      const auto blocks = layout.blocks_of(owner);
      const auto received = inbox.blocks(source);
      ASSERT_EQ(received.size(), blocks.size());
      for (size_t b = 0; b < blocks.size(); ++b) {
        const Part& part = layout.parts()[static_cast<size_t>(blocks[b].part)];
        const auto bags = world_.bags_of(source, part, blocks[b].feature);
        const ReceivedBlock& block = received[b];
        const Count expected = count(bags);
        ids += expected.ids;
        ASSERT_EQ(block.ids, expected.ids);
        ASSERT_EQ(block.bags, expected.bags);
        if (expected.ids == 0) continue;
        EXPECT_EQ(block.samples, std::ssize(bags));
        EXPECT_EQ(block.first_sample, world_.first_sample(source));
        int64_t next_bag = 0;
        int64_t next_id = 0;
        for_each_bag(block, [&](int64_t bag, int64_t sample, uint32_t length) {
          EXPECT_EQ(bag, next_bag++);
          const Bag& plain = bags[static_cast<size_t>(sample)];
          ASSERT_EQ(length, plain.size());
          for (const Id& id : plain) {
            ASSERT_EQ(id_at(block.id_data, next_id), id.row);
            const float weight = block.weights == nullptr ? 1.0F : block.weights[next_id];
            ASSERT_EQ(weight, blocks[b].sequence ? 1.0F : id.weight);
            ++next_id;
          }
        });
        EXPECT_EQ(next_bag, expected.bags);
        EXPECT_EQ(next_id, expected.ids);
      }
    }
    EXPECT_EQ(inbox.ids_received(), ids);
  }
}

// One occurrence of a row, in canonical order.
struct Occurrence {
  size_t bag = 0;  // of the part, in the plan's order
  float weight = 1;
  size_t feature = 0;  // among those of the part's table
  int64_t sample = 0;  // of all ranks
};

// A gradient message of a source: all blocks packed, or all lent from `lender`.
std::vector<std::byte> gradient_message(const Layout& layout, const Inbox& inbox, int source,
                                        const float* lender) {
  const auto blocks = layout.blocks_of(layout.rank());
  const GradientHeader header{.lends = lender == nullptr ? 0U : 1U};
  std::vector<std::byte> message(sizeof header);
  std::memcpy(message.data(), &header, sizeof header);
  if (lender != nullptr) message.resize(message.size() + lent_bytes(blocks.size()));
  for (size_t b = 0; b < blocks.size(); ++b) {
    const int64_t width = layout.parts()[static_cast<size_t>(blocks[b].part)].width;
    if (lender == nullptr) {
      message.resize(message.size() + rows_bytes(inbox.blocks(source)[b].rows, width));
      continue;
    }
    const GradientRows lent{.rows = lender + 64 * b, .stride = width + 1, .by_sample = true};
    std::memcpy(message.data() + sizeof header + b * sizeof lent, &lent, sizeof lent);
  }
  return message;
}

TEST_P(Stages, TheIndexPlanGroupsOccurrencesByRowInCanonicalOrder) {
  for (int owner = 0; owner < world_.ranks(); ++owner) {
    const Layout& layout = world_.layout(owner);
    Inbox inbox(layout);
    inbox.open(world_.messages_to(owner));
    const auto blocks = layout.blocks_of(owner);
    const auto parts = layout.parts_of(owner);
    IndexPlan plan(layout, tools_.context().backend);
    const std::vector<uint8_t> wanted(parts.size(), 1);
    plan.build(inbox, wanted);

    size_t first_block = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      const Part& part = layout.parts()[static_cast<size_t>(parts[p])];
      const size_t features = layout.table(part.table).features.size();
      std::map<int64_t, std::vector<Occurrence>> expected;  // by row
      size_t bags = 0;
      for (size_t k = 0; k < features; ++k) {
        const Block& block = blocks[first_block + k];
        for (int source = 0; source < world_.ranks(); ++source) {
          int64_t sample = world_.first_sample(source);
          for (const Bag& bag : world_.bags_of(source, part, block.feature)) {
            for (const Id& id : bag) {
              expected[id.row].push_back({.bag = bags,
                                          .weight = block.sequence ? 1.0F : id.weight,
                                          .feature = k,
                                          .sample = sample});
              bags += block.sequence ? 1 : 0;
            }
            bags += !block.sequence && !bag.empty() ? 1 : 0;
            ++sample;
          }
        }
      }
      first_block += features;

      const auto rows = plan.rows(p);
      const auto run = plan.run(p);
      ASSERT_EQ(rows.size(), expected.size());
      ASSERT_EQ(run.size(), rows.size() + 1);
      ASSERT_EQ(plan.bags(p), static_cast<int64_t>(bags));
      compute::RowUpdate job;
      plan.describe(p, job);
      size_t u = 0;
      int64_t o = 0;
      for (const auto& [row, occurrences] : expected) {
        ASSERT_EQ(rows[u], row);
        ASSERT_EQ(run[u], o);
        for (size_t i = 0; i < occurrences.size(); ++i, ++o) {
          const Occurrence& occurrence = occurrences[i];
          const uint32_t bag = job.bags[o];
          ASSERT_EQ(bag, occurrence.bag);
          ASSERT_EQ(job.weights == nullptr ? 1.0F : job.weights[o], occurrence.weight);
          if (i == 0) continue;
          // A block of a sum: the same feature, the same 512 samples of all ranks'.
          const Occurrence& last = occurrences[i - 1];
          const bool same =
              last.feature == occurrence.feature &&
              last.sample / compute::kBlockSamples == occurrence.sample / compute::kBlockSamples;
          ASSERT_EQ(job.blocks[job.bags[o - 1]] == job.blocks[bag], same);
        }
        ++u;
      }
      ASSERT_EQ(run[u], o);
    }
  }
}

TEST_P(Stages, GradientsAreFoundInMessagesAndWhereTheyAreLent) {
  // Lent rows are told apart by where they would lie; nobody reads them.
  static const std::vector<float> lender(size_t{1} << 16);
  for (const bool lent : {false, true}) {
    for (int owner = 0; owner < world_.ranks(); ++owner) {
      const Layout& layout = world_.layout(owner);
      Inbox inbox(layout);
      inbox.open(world_.messages_to(owner));
      const auto blocks = layout.blocks_of(owner);
      const auto parts = layout.parts_of(owner);
      std::vector<std::vector<std::byte>> messages;
      for (int source = 0; source < world_.ranks(); ++source) {
        messages.push_back(gradient_message(layout, inbox, source, lent ? lender.data() : nullptr));
      }
      const std::vector<comm::ConstBytes> views(messages.begin(), messages.end());
      // Of one part nothing is wanted: its gradients are passed over.
      std::vector<uint8_t> wanted(parts.size(), 1);
      if (parts.size() > 1) wanted[0] = 0;
      IndexPlan plan(layout, tools_.context().backend);
      plan.build(inbox, wanted);
      ReceivedGradients gradients(layout);
      gradients.open(inbox, views);
      gradients.locate(inbox, plan, tools_.context().backend);

      std::map<std::pair<int, size_t>, const float*> packed;  // by source and block
      for (int source = 0; source < world_.ranks(); ++source) {
        size_t byte = sizeof(GradientHeader);
        for (size_t b = 0; b < blocks.size(); ++b) {
          const int64_t width = layout.parts()[static_cast<size_t>(blocks[b].part)].width;
          packed[{source, b}] = static_cast<const float*>(
              static_cast<const void*>(messages[static_cast<size_t>(source)].data() + byte));
          byte += rows_bytes(inbox.blocks(source)[b].rows, width);
        }
      }
      size_t first_block = 0;
      for (size_t p = 0; p < parts.size(); ++p) {
        const Part& part = layout.parts()[static_cast<size_t>(parts[p])];
        const size_t features = layout.table(part.table).features.size();
        size_t bag = 0;
        const auto expect = [&](int source, size_t b, int64_t row, int64_t sample) {
          const bool by_sample = lent && !blocks[b].sequence;
          const float* rows = lent ? lender.data() + 64 * b : packed[{source, b}];
          ASSERT_EQ(gradients.rows(p)[bag++],
                    rows + (by_sample ? sample : row) * (part.width + (lent ? 1 : 0)));
        };
        for (size_t b = first_block; wanted[p] != 0 && b < first_block + features; ++b) {
          for (int source = 0; source < world_.ranks(); ++source) {
            int64_t row = 0;
            int64_t sample = 0;
            for (const Bag& ids : world_.bags_of(source, part, blocks[b].feature)) {
              const int64_t rows = blocks[b].sequence ? std::ssize(ids) : ids.empty() ? 0 : 1;
              for (int64_t r = 0; r < rows; ++r) expect(source, b, row++, sample);
              ++sample;
            }
          }
        }
        ASSERT_EQ(plan.bags(p), static_cast<int64_t>(bag));
        first_block += features;
      }
    }
  }
}

TEST_P(Stages, AGradientMessageOfAnotherLengthIsRefused) {
  const Layout& layout = world_.layout(0);
  Inbox inbox(layout);
  inbox.open(world_.messages_to(0));
  std::vector<std::vector<std::byte>> messages;
  for (int source = 0; source < world_.ranks(); ++source) {
    messages.push_back(gradient_message(layout, inbox, source, nullptr));
  }
  messages.back().resize(messages.back().size() + 8);
  const std::vector<comm::ConstBytes> views(messages.begin(), messages.end());
  ReceivedGradients gradients(layout);
  EXPECT_THROW(gradients.open(inbox, views), core::Error);
}

// What an owner would send for a pooled bag, and a row of a table.
float partial_sum(const Part& part, int32_t feature, int64_t sample, int64_t column) {
  return number(static_cast<uint64_t>(part.row * 100 + part.owner), static_cast<uint64_t>(feature),
                static_cast<uint64_t>(sample), static_cast<uint64_t>(column));
}
float weight(int32_t table, int64_t row, int64_t column) {
  return number(1000, static_cast<uint64_t>(table), static_cast<uint64_t>(row),
                static_cast<uint64_t>(column));
}
// The column of the table that stands at `offset` of a part's rows.
int64_t column_at(const Part& part, int64_t offset) {
  for (const ColumnPiece& piece : part.columns) {
    if (offset >= piece.offset && offset < piece.offset + piece.cols) {
      return piece.col + offset - piece.offset;
    }
  }
  ADD_FAILURE() << "offset " << offset << " is outside the part";
  return 0;
}

// The output message of an owner to a source.
std::vector<float> output_message(const World& world, int owner, int source) {
  const Layout& layout = world.layout(owner);
  Inbox inbox(layout);
  inbox.open(world.messages_to(owner));
  std::vector<float> message;
  const auto blocks = layout.blocks_of(owner);
  for (size_t b = 0; b < blocks.size(); ++b) {
    const Part& part = layout.parts()[static_cast<size_t>(blocks[b].part)];
    if (!layout.answers(part, source)) continue;
    const ReceivedBlock& received = inbox.blocks(source)[b];
    const auto add_row = [&](auto&& value) {
      for (int64_t c = 0; c < part.width; ++c) message.push_back(value(column_at(part, c)));
    };
    const auto add_table_row = [&](int64_t row) {
      add_row([&](int64_t column) { return weight(part.table, part.row + row, column); });
    };
    if (blocks[b].sequence && received.unique != 0) {
      for (int64_t u = 0; u < received.unique; ++u) add_table_row(id_at(received.unique_ids, u));
    } else if (blocks[b].sequence) {
      for (int64_t i = 0; i < received.ids; ++i) add_table_row(id_at(received.id_data, i));
    } else {
      const auto bags = world.bags_of(source, part, blocks[b].feature);
      for (size_t s = 0; s < bags.size(); ++s) {
        if (bags[s].empty()) continue;
        add_row([&](int64_t column) {
          return partial_sum(part, blocks[b].feature, static_cast<int64_t>(s), column);
        });
      }
    }
    message.resize(align_up(message.size() * sizeof(float), 64) / sizeof(float));
  }
  return message;
}

// Columns of a pooled bag: nodes in the order of their first rows, in a node ascending rows.
float expected_sum(const World& world, int source, int32_t feature, int64_t sample,
                   int64_t column) {
  const Layout& layout = world.layout(source);
  const int32_t table = world.model().features[static_cast<size_t>(feature)].table;
  std::vector<const Part*> parts;
  for (const int32_t p : layout.table(table).parts) {
    const Part& part = layout.parts()[static_cast<size_t>(p)];
    const bool has = std::any_of(
        part.columns.begin(), part.columns.end(),
        [&](const ColumnPiece& c) { return column >= c.col && column < c.col + c.cols; });
    if (has && layout.answers(part, source)) parts.push_back(&part);
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part* a, const Part* b) { return a->row < b->row; });
  std::vector<int32_t> nodes;
  for (const Part* part : parts) {
    const int32_t node = layout.node_of(part->owner);
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
  float sum = 0;
  bool any = false;
  for (const int32_t node : nodes) {
    float node_sum = 0;
    bool of_node = false;
    for (const Part* part : parts) {
      if (layout.node_of(part->owner) != node) continue;
      if (world.bags_of(source, *part, feature)[static_cast<size_t>(sample)].empty()) continue;
      const float x = partial_sum(*part, feature, sample, column);
      node_sum = of_node ? node_sum + x : x;
      of_node = true;
    }
    if (!of_node) continue;
    sum = any ? sum + node_sum : node_sum;
    any = true;
  }
  const Bag& bag =
      world.batch(source).bags[static_cast<size_t>(feature)][static_cast<size_t>(sample)];
  const auto length =
      std::count_if(bag.begin(), bag.end(), [](const Id& id) { return id.row >= 0; });
  const bool mean =
      world.model().features[static_cast<size_t>(feature)].pooling == SHARDREC_POOLING_MEAN;
  return mean && length > 0 ? sum / static_cast<float>(length) : sum;
}

TEST_P(Stages, OutputsAreTheSumsOfPartsInTheOrderOfNodesAndRows) {
  Random random(static_cast<uint64_t>(GetParam()));
  for (int source = 0; source < world_.ranks(); ++source) {
    const Layout& layout = world_.layout(source);
    std::vector<std::vector<float>> messages;
    for (int owner = 0; owner < world_.ranks(); ++owner) {
      messages.push_back(output_message(world_, owner, source));
    }
    std::vector<comm::ConstBytes> views;
    for (const auto& message : messages) views.push_back(std::as_bytes(std::span(message)));
    const std::vector<uint8_t> direct(layout.blocks_of(source).size(), 0);
    OutputAssembly assembly(layout);
    assembly.open(world_.routed(source), direct, views);
    const RankBatch& batch = world_.batch(source);
    const auto assemble = [&](int32_t output, int64_t rows, int64_t width) {
      std::vector<float> out(static_cast<size_t>(rows * width), -7);
      assembly.assemble(world_.routed(source), world_.checked(source).expansion(), output,
                        tools_.context(),
                        {static_cast<std::byte*>(static_cast<void*>(out.data())),
                         compute::Element::kFloat32, width});
      return out;
    };

    const int64_t width = layout.output().width;
    const std::vector<float> pooled = assemble(0, batch.samples, width);
    int32_t sequences = 0;
    for (int32_t f = 0; f < static_cast<int32_t>(world_.model().features.size()); ++f) {
      const int32_t table = world_.model().features[static_cast<size_t>(f)].table;
      const int64_t dim = layout.dim_of(f);
      if (world_.sequence(f)) {
        std::vector<float> expected;
        for (const Bag& bag : batch.bags[static_cast<size_t>(f)]) {
          for (const Id& id : bag) {
            for (int64_t c = 0; c < dim; ++c) {
              expected.push_back(id.row < 0 ? 0 : weight(table, id.row, c));
            }
          }
        }
        ASSERT_EQ(assemble(++sequences, std::ssize(expected) / dim, dim), expected);
        continue;
      }
      const int64_t column = layout.output().column[static_cast<size_t>(f)];
      // Some samples: the reference looks at every part anew for each number.
      for (int i = 0; i < 25 && batch.samples > 0; ++i) {
        const int64_t sample = between(random, 0, batch.samples - 1);
        for (int64_t c = 0; c < dim; ++c) {
          const float expected = expected_sum(world_, source, f, sample, c);
          const float out = pooled[static_cast<size_t>(sample * width + column + c)];
          ASSERT_EQ(out, expected) << "feature " << f << ", sample " << sample;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Stages, ::testing::Range(0, SHARDREC_SANITIZED ? 15 : 60));

}  // namespace
}  // namespace shardrec::embedding
