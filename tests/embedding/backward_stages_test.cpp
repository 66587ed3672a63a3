// The owner's stages of backward, one at a time, each against a plain reading of the batch: how the
// index plan groups it by row, and where the gradients of its bags are found.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "comm/bodies/carrier.h"
#include "core/error.h"
#include "embedding/backward/index_plan.h"
#include "embedding/backward/received_gradients.h"
#include "embedding/exchange/inbox.h"
#include "embedding/exchange/wire.h"
#include "embedding/stages_world.h"

namespace shardrec::embedding {
namespace {

class BackwardStages : public Stages {};

struct Occurrence {
  size_t bag = 0;  // of the part, in the plan's order
  float weight = 1;
  size_t feature = 0;  // among those of the part's table
  int64_t sample = 0;  // of all ranks
};

// A gradient message of a source: all blocks packed, or all lent.
std::vector<std::byte> gradient_message(const Layout& layout, const Inbox& inbox, int source,
                                        bool lent) {
  const auto blocks = layout.blocks_of(layout.rank());
  const GradientHeader header{.lends = lent ? Lends::kToProcess : Lends::kNothing};
  std::vector<std::byte> message(sizeof header);
  std::memcpy(message.data(), &header, sizeof header);
  for (size_t b = 0; b < blocks.size() && !lent; ++b) {
    const int64_t width = layout.parts()[static_cast<size_t>(blocks[b].part)].width;
    message.resize(message.size() + rows_bytes(inbox.blocks(source)[b].rows, width));
  }
  return message;
}

// The blocks with rows of a source's message as they lie when all are lent from `lender`, each at a place by its number.
std::vector<GradientRows> lent_from(const float* lender, const Layout& layout, const Inbox& inbox,
                                    int source) {
  std::vector<GradientRows> rows;
  const auto blocks = layout.blocks_of(layout.rank());
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (inbox.blocks(source)[b].rows == 0) continue;
    const int64_t width = layout.parts()[static_cast<size_t>(blocks[b].part)].width;
    rows.push_back({.rows = lender + 64 * b, .stride = width + 1, .by_sample = true});
  }
  return rows;
}

TEST_P(BackwardStages, TheIndexPlanGroupsOccurrencesByRowInCanonicalOrder) {
  for (int owner = 0; owner < world_.ranks(); ++owner) {
    const Layout& layout = world_.layout(owner);
    Inbox inbox(layout, tools_.bodies(), tools_.scratch());
    inbox.open(world_.messages_to(owner));
    const auto blocks = layout.blocks_of(owner);
    const auto parts = layout.parts_of(owner);
    IndexPlan plan(layout, tools_.backend());
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

TEST_P(BackwardStages, GradientsAreFoundInMessagesAndWhereTheyAreLent) {
  // Lent rows are told apart by where they would lie; nobody reads them.
  static const std::vector<float> lender(size_t{1} << 16);
  for (const bool lent : {false, true}) {
    for (int owner = 0; owner < world_.ranks(); ++owner) {
      const Layout& layout = world_.layout(owner);
      Inbox inbox(layout, tools_.bodies(), tools_.scratch());
      inbox.open(world_.messages_to(owner));
      const auto blocks = layout.blocks_of(owner);
      const auto parts = layout.parts_of(owner);
      std::vector<std::vector<std::byte>> messages;
      for (int source = 0; source < world_.ranks(); ++source) {
        messages.push_back(gradient_message(layout, inbox, source, lent));
      }
      const std::vector<comm::ConstBytes> views(messages.begin(), messages.end());
      // Of one part nothing is wanted: its gradients are passed over.
      std::vector<uint8_t> wanted(parts.size(), 1);
      if (parts.size() > 1) wanted[0] = 0;
      IndexPlan plan(layout, tools_.backend());
      plan.build(inbox, wanted);
      ReceivedGradients gradients(layout, compute::cpu_memory());
      const auto bodies = tools_.bodies().make_received();
      std::vector<std::vector<GradientRows>> from_lender;
      for (int source = 0; source < world_.ranks(); ++source) {
        from_lender.push_back(lent_from(lender.data(), layout, inbox, source));
      }
      std::vector<std::span<const GradientRows>> lent_rows(views.size());
      if (lent) lent_rows.assign(from_lender.begin(), from_lender.end());
      gradients.open(inbox, views, bodies->open(views, gradients.heads()), lent_rows);
      gradients.list(inbox, plan);
      std::vector<compute::TouchedRows> shards(parts.size());  // without touched rows
      for (size_t p = 0; p < parts.size(); ++p) shards[p].located = gradients.located(p);
      tools_.backend().rows().open_rows(shards);

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

TEST_P(BackwardStages, AGradientMessageOfAnotherLengthIsRefused) {
  const Layout& layout = world_.layout(0);
  Inbox inbox(layout, tools_.bodies(), tools_.scratch());
  inbox.open(world_.messages_to(0));
  std::vector<std::vector<std::byte>> messages;
  for (int source = 0; source < world_.ranks(); ++source) {
    messages.push_back(gradient_message(layout, inbox, source, false));
  }
  messages.back().resize(messages.back().size() + 8);
  const std::vector<comm::ConstBytes> views(messages.begin(), messages.end());
  ReceivedGradients gradients(layout, compute::cpu_memory());
  const auto bodies = tools_.bodies().make_received();
  const auto opened = bodies->open(views, gradients.heads());
  std::vector<std::span<const GradientRows>> lent(views.size());
  EXPECT_THROW(gradients.open(inbox, views, opened, lent), core::Error);
  // So is one that lends what is for another owner.
  messages.back().resize(messages.back().size() - 8);
  const std::vector<comm::ConstBytes> whole(messages.begin(), messages.end());
  const auto good = bodies->open(whole, gradients.heads());
  gradients.open(inbox, whole, good, lent);
  const std::vector<GradientRows> others(layout.blocks_of(0).size() + 1);
  lent.back() = others;
  EXPECT_THROW(gradients.open(inbox, whole, good, lent), core::Error);
}

// What an owner would send for a pooled bag, and a row of a table.

INSTANTIATE_TEST_SUITE_P(Seeds, BackwardStages, ::testing::Range(0, SHARDREC_SANITIZED ? 15 : 60));

}  // namespace
}  // namespace shardrec::embedding
