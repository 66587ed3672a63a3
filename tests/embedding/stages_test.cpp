// The stages of a step, one at a time, each against a plain reading of the batch: what route()
// sends and the inbox finds, and how outputs are put together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "embedding/exchange/inbox.h"
#include "embedding/forward/assembly.h"
#include "embedding/stages_world.h"

namespace shardrec::embedding {
namespace {

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
    Inbox inbox(layout, tools_.bodies(), tools_.scratch());
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
std::vector<float> output_message(const World& world, int owner, int source, StepTools& tools) {
  const Layout& layout = world.layout(owner);
  Inbox inbox(layout, tools.bodies(), tools.scratch());
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
      messages.push_back(output_message(world_, owner, source, tools_));
    }
    std::vector<comm::ConstBytes> views;
    for (const auto& message : messages) views.push_back(std::as_bytes(std::span(message)));
    const std::vector<uint8_t> direct(layout.blocks_of(source).size(), 0);
    OutputAssembly assembly(layout, tools_.scratch(), compute::cpu_memory());
    assembly.open(world_.routed(source), direct, views);
    const RankBatch& batch = world_.batch(source);
    const auto assemble = [&](int32_t output, int64_t rows, int64_t width) {
      std::vector<float> out(static_cast<size_t>(rows * width), -7);
      assembly.assemble(world_.routed(source), world_.checked(source).expansion(), output,
                        tools_.backend(),
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
