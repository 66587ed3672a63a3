// Messages of tables replicated by rows or bits: the order of the sums, and bytes that no rank has
// sent.
#include "embedding/backward/replicated.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "embedding/step_tools.h"
#include "support/plan_boxes.h"

namespace shardrec::test {
namespace {

using embedding::Layout;
using embedding::ReplicatedGradients;

constexpr int64_t kReplicatedDim = 3;

Layout layout_of(const std::vector<int64_t>& rows, shardrec_replication way, int rank, int ranks) {
  plan::Model model;
  plan::Plan plan{{ranks, ranks}, std::vector<plan::TablePlan>(rows.size())};
  for (size_t t = 0; t < rows.size(); ++t) {
    const auto table = static_cast<int32_t>(t);
    const std::string name = "t" + std::to_string(t);
    plan::add_table(model, {.name = name, .rows = rows[t], .dim = kReplicatedDim});
    plan::add_feature(model, {.name = name, .table = table});
  }
  for (size_t t = 0; t < rows.size(); ++t) {
    const auto table = static_cast<int32_t>(t);
    plan::replicate(plan, model, table, way);
  }
  return {model, plan, rank};
}

// One rank's touched rows of a table, and their gradients.
struct Own {
  std::vector<int64_t> rows;
  std::vector<float> gradients;
};

// A rank and the messages that it sends.
class Rank {
 public:
  Rank(const std::vector<int64_t>& rows, shardrec_replication way, int rank, int ranks)
      : layout_(layout_of(rows, way, rank, ranks)) {}

  ReplicatedGradients& gradients() { return gradients_; }

  void pack(const std::vector<Own>& own) {
    std::vector<embedding::RowGradients> views;
    for (const Own& of_table : own) views.push_back({of_table.rows, of_table.gradients.data()});
    gradients_.pack(views, *rows_);
  }
  void add_up(std::span<const comm::ConstBytes> messages) { gradients_.add_up(messages, *sums_); }
  comm::ConstBytes message_to(int rank) const {
    return gradients_.messages()[static_cast<size_t>(rank)];
  }

 private:
  embedding::StepTools tools_{2};
  Layout layout_;
  ReplicatedGradients gradients_{layout_, tools_.bodies()};
  std::unique_ptr<comm::MessageBuffer> rows_ = tools_.bodies().make_buffer();
  std::unique_ptr<comm::MessageBuffer> sums_ = tools_.bodies().make_buffer();
};

std::vector<comm::ConstBytes> messages_to(const std::vector<std::unique_ptr<Rank>>& ranks, int to) {
  std::vector<comm::ConstBytes> messages;
  for (const auto& rank : ranks) messages.push_back(rank->message_to(to));
  return messages;
}

using Sum = std::optional<float>;

// The sum of ranks [first, first + count), a pairwise tree in which a missing rank is left out.
Sum pairwise(const std::vector<Sum>& of_ranks, size_t first, size_t count) {
  if (first >= of_ranks.size()) return {};
  if (count == 1) return of_ranks[first];
  const Sum left = pairwise(of_ranks, first, count / 2);
  const Sum right = pairwise(of_ranks, first + count / 2, count / 2);
  if (!left) return right;
  return right ? *left + *right : *left;
}

class Sums : public ::testing::TestWithParam<shardrec_replication> {};

TEST_P(Sums, AreAPairwiseTreeOverTheRanksThatTouchedTheRow) {
  const std::vector<int64_t> rows = {1, 500, 64, 129};
  std::mt19937_64 random(5);
  std::normal_distribution<float> normal;
  for (const int ranks : {2, 3, 5, 8}) {
    std::vector<std::vector<Own>> own(static_cast<size_t>(ranks), std::vector<Own>(rows.size()));
    std::vector<std::unique_ptr<Rank>> all;
    for (int rank = 0; rank < ranks; ++rank) {
      for (size_t t = 0; t < rows.size(); ++t) {
        Own& mine = own[static_cast<size_t>(rank)][t];
        const uint64_t one_in = 1 + random() % 4;
        for (int64_t row = 0; row < rows[t]; ++row) {
          if (random() % one_in != 0) continue;
          mine.rows.push_back(row);
          for (int64_t c = 0; c < kReplicatedDim; ++c) mine.gradients.push_back(normal(random));
        }
      }
      all.push_back(std::make_unique<Rank>(rows, GetParam(), rank, ranks));
      all.back()->pack(own[static_cast<size_t>(rank)]);
    }
    // Two steps with the same numbers: nothing of the first is left in the second.
    for (int step = 0; step < 2; ++step) {
      for (int rank = 0; rank < ranks; ++rank) {
        all[static_cast<size_t>(rank)]->pack(own[static_cast<size_t>(rank)]);
      }
      std::vector<std::vector<comm::ConstBytes>> sent;
      for (int rank = 0; rank < ranks; ++rank) sent.push_back(messages_to(all, rank));
      for (int rank = 0; rank < ranks; ++rank) {
        all[static_cast<size_t>(rank)]->add_up(sent[static_cast<size_t>(rank)]);
      }
      for (int rank = 0; rank < ranks; ++rank) {
        ReplicatedGradients& taker = all[static_cast<size_t>(rank)]->gradients();
        taker.take(messages_to(all, rank));
        for (size_t t = 0; t < rows.size(); ++t) {
          std::map<int64_t, std::vector<std::vector<Sum>>> expected;  // by row, column, rank
          for (size_t r = 0; r < own.size(); ++r) {
            for (size_t i = 0; i < own[r][t].rows.size(); ++i) {
              auto& columns = expected[own[r][t].rows[i]];
              columns.resize(kReplicatedDim, std::vector<Sum>(own.size()));
              for (size_t c = 0; c < kReplicatedDim; ++c) {
                columns[c][r] = own[r][t].gradients[i * kReplicatedDim + c];
              }
            }
          }
          const auto touched = taker.rows(t);
          ASSERT_EQ(touched.size(), expected.size());
          compute::RowUpdate job;
          taker.describe(t, job);
          size_t i = 0;
          for (const auto& [row, columns] : expected) {
            ASSERT_EQ(touched[i], row);
            for (size_t c = 0; c < kReplicatedDim; ++c) {
              EXPECT_EQ(job.gradients[i][c], *pairwise(columns[c], 0, 8))
                  << "ranks " << ranks << " table " << t << " row " << row;
            }
            ++i;
          }
        }
      }
    }
  }
}

// A change of the message of rank 1 to rank 0, of 100 rows in all: slots of 64 and 36.
struct Damage {
  const char* name;
  shardrec_replication way;
  std::function<void(std::vector<std::byte>&)> apply;
};

template <class T>
void put(std::vector<std::byte>& message, size_t at, T value) {
  std::memcpy(message.data() + at, &value, sizeof value);
}

// Rank 1 touches rows 3, 7 and 9 of rank 0's slot: a count, a list (or a word), gradients.
const Own kTouched{.rows = {3, 7, 9}, .gradients = std::vector<float>(3 * kReplicatedDim, 1)};

const Damage kDamages[] = {
    {"no_count", SHARDREC_REPLICATION_ROWS, [](auto& m) { m.resize(4); }},
    {"no_list", SHARDREC_REPLICATION_ROWS, [](auto& m) { m.resize(8); }},
    {"no_bits", SHARDREC_REPLICATION_DENSE, [](auto& m) { m.resize(8); }},
    {"cut_off", SHARDREC_REPLICATION_ROWS, [](auto& m) { m.resize(m.size() - 8); }},
    {"cut_off_bits", SHARDREC_REPLICATION_DENSE, [](auto& m) { m.resize(m.size() - 8); }},
    {"too_long", SHARDREC_REPLICATION_ROWS, [](auto& m) { m.resize(m.size() + 8); }},
    {"too_long_bits", SHARDREC_REPLICATION_DENSE, [](auto& m) { m.resize(m.size() + 8); }},
    {"negative_count", SHARDREC_REPLICATION_ROWS, [](auto& m) { put(m, 0, int64_t{-1}); }},
    {"huge_count", SHARDREC_REPLICATION_ROWS, [](auto& m) { put(m, 0, INT64_MAX / 2); }},
    {"count_over_the_slot", SHARDREC_REPLICATION_DENSE, [](auto& m) { put(m, 0, int64_t{65}); }},
    {"fewer_than_bits", SHARDREC_REPLICATION_DENSE, [](auto& m) { put(m, 0, int64_t{2}); }},
    {"more_than_bits", SHARDREC_REPLICATION_DENSE, [](auto& m) { put(m, 0, int64_t{4}); }},
    {"a_bit_missing", SHARDREC_REPLICATION_DENSE, [](auto& m) { put(m, 8, uint64_t{0x88}); }},
    {"a_bit_more", SHARDREC_REPLICATION_DENSE, [](auto& m) { put(m, 8, uint64_t{0x289}); }},
    {"falling", SHARDREC_REPLICATION_ROWS, [](auto& m) { put(m, 8, uint32_t{8}); }},
    {"twice", SHARDREC_REPLICATION_ROWS, [](auto& m) { put(m, 8, uint32_t{7}); }},
    {"outside", SHARDREC_REPLICATION_ROWS, [](auto& m) { put(m, 16, uint32_t{64}); }},
};

class Tampered : public ::testing::TestWithParam<Damage> {};

// Runs what reads the messages of both ranks.
void expect_corrupt(const std::function<void()>& read) {
  try {
    read();
    ADD_FAILURE() << "was read";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_CORRUPT_DATA) << error.what();
    EXPECT_EQ(error.parts().rank, 1);
  }
}

// A copy at the alignment that messages have.
comm::ConstBytes aligned(const std::vector<std::byte>& message, compute::Buffer& memory) {
  std::byte* to = memory.resize(message.size());
  std::copy(message.begin(), message.end(), to);
  return {to, message.size()};
}

TEST_P(Tampered, MessagesAreCorruptDataOfTheirRank) {
  const Damage& damage = GetParam();
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.push_back(std::make_unique<Rank>(std::vector<int64_t>{100}, damage.way, rank, 2));
    ranks.back()->pack({kTouched});
  }
  auto messages = messages_to(ranks, 0);
  std::vector<std::byte> copy(messages[1].begin(), messages[1].end());
  damage.apply(copy);
  compute::Buffer memory{compute::cpu_memory()};
  auto bad = messages;
  bad[1] = aligned(copy, memory);
  expect_corrupt([&] { ranks[0]->add_up(bad); });
  ranks[0]->add_up(messages);  // the whole ones are read

  // The sums of rank 1's own slot, [64, 100), touched as rank 0's were.
  const Own shifted{.rows = {67, 71, 73}, .gradients = kTouched.gradients};
  for (const auto& rank : ranks) rank->pack({shifted});
  const auto first = messages_to(ranks, 0);
  const auto second = messages_to(ranks, 1);
  ranks[0]->add_up(first);
  ranks[1]->add_up(second);
  auto sums = messages_to(ranks, 0);
  copy.assign(sums[1].begin(), sums[1].end());
  damage.apply(copy);
  bad = sums;
  bad[1] = aligned(copy, memory);
  expect_corrupt([&] { ranks[0]->gradients().take(bad); });
  ranks[0]->gradients().take(sums);
  EXPECT_EQ(std::vector<int64_t>(ranks[0]->gradients().rows(0).begin(),
                                 ranks[0]->gradients().rows(0).end()),
            shifted.rows);
}

INSTANTIATE_TEST_SUITE_P(Messages, Tampered, ::testing::ValuesIn(kDamages),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Tampered, BitsBeyondTheSlotAreCorruptData) {
  // The slot of rank 1 has 36 rows; one of the bits moves to place 36.
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.push_back(
        std::make_unique<Rank>(std::vector<int64_t>{100}, SHARDREC_REPLICATION_DENSE, rank, 2));
    ranks.back()->pack({{.rows = {64}, .gradients = {1, 2, 3}}});
  }
  auto messages = messages_to(ranks, 1);
  std::vector<std::byte> copy(messages[1].begin(), messages[1].end());
  compute::Buffer memory{compute::cpu_memory()};
  put(copy, 8, uint64_t{1} << 35);
  messages[1] = aligned(copy, memory);
  ranks[1]->add_up(messages);
  put(copy, 8, uint64_t{1} << 36);
  messages[1] = aligned(copy, memory);
  expect_corrupt([&] { ranks[1]->add_up(messages); });
}

TEST_P(Sums, AreNotExchangedByASingleRank) {
  EXPECT_FALSE(Rank({100}, GetParam(), 0, 1).gradients().needed());
  EXPECT_TRUE(Rank({100}, GetParam(), 0, 2).gradients().needed());
}

TEST_P(Sums, OfSlotsThatAreTooLargeAreUnsupportedWithTheTable) {
  constexpr int64_t kMost = int64_t{2} << 32;
  EXPECT_TRUE(Rank({5, kMost}, GetParam(), 1, 2).gradients().needed());
  EXPECT_FALSE(Rank({5, kMost + 1}, GetParam(), 0, 1).gradients().needed());
  try {
    const Rank rank({5, kMost + 1}, GetParam(), 1, 2);
    ADD_FAILURE() << "was accepted";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_UNSUPPORTED);
    EXPECT_EQ(error.parts().table, "t1");
    EXPECT_NE(error.sentence().find("8589934593 rows"), std::string::npos) << error.sentence();
  }
}

INSTANTIATE_TEST_SUITE_P(Replications, Sums,
                         ::testing::Values(SHARDREC_REPLICATION_ROWS, SHARDREC_REPLICATION_DENSE));

}  // namespace
}  // namespace shardrec::test
