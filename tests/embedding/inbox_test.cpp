// Input messages that do not hold what they say: the inbox names the rank and what is wrong, and of
// several faults the first.
#include "embedding/exchange/inbox.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "embedding/batch/batch.h"
#include "embedding/exchange/route.h"
#include "embedding/step_tools.h"
#include "support/plan_boxes.h"
#include "support/ranks.h"

namespace shardrec::embedding {
namespace {

// Three ranks with the same batch of two features, whose rows are all rank 2's: what it sends to itself is not
// checked again.
class CorruptInput : public ::testing::Test {
 protected:
  CorruptInput() {
    plan::add_table(model_, {.name = "t", .rows = 100, .dim = 4});
    plan::add_feature(model_, {.name = "f", .table = 0});
    plan::add_feature(model_, {.name = "g", .table = 0});
    plan::add_box(plan_, model_, 0, {2, {0, 100, 0, 4}});
    const Layout source(model_, plan_, 0);
    // Dense lengths of f, sparse ones of g.
    std::vector<int64_t> values = {1, 2, 3, 4, 5, 6, 7};
    std::vector<int64_t> lengths = {1, 1, 0, 1, 1, 1, 0, 0, 2, 0, 0, 0};
    const shardrec_tensor ids = test::vector_of(values);
    const shardrec_tensor bags = test::vector_of(lengths);
    CheckedBatch batch(compute::cpu_memory());
    const auto buffer = tools_.bodies().make_buffer();
    RoutedBatch routed(source, false, tools_.scratch(), compute::cpu_memory());
    const BatchArguments arguments{.batch_size = 6, .values = &ids, .lengths = &bags};
    EXPECT_TRUE(routed.route(batch, arguments, backend(), *buffer).good());
    const comm::ConstBytes message = routed.messages()[2];
    messages_.assign(3, {message.begin(), message.end()});
  }

  compute::Backend& backend() { return tools_.backend(); }
  // Of source 0's message, as all below.
  BlockRecord record(size_t block) {
    BlockRecord out;
    std::memcpy(&out, messages_[0].data() + input_head_bytes(block), sizeof out);
    return out;
  }
  void set_record(size_t block, const BlockRecord& record) {
    std::memcpy(messages_[0].data() + input_head_bytes(block), &record, sizeof record);
  }
  void set_length(size_t word, uint32_t value, size_t source = 0) {
    std::memcpy(messages_[source].data() + input_head_bytes(2) + word * sizeof value, &value,
                sizeof value);
  }
  std::string sentence() {
    const Layout owner(model_, plan_, 2);
    Inbox inbox(owner, tools_.bodies(), tools_.scratch());
    try {
      inbox.open(std::vector<comm::ConstBytes>{messages_[0], messages_[1], messages_[2]});
    } catch (const core::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_CORRUPT_DATA);
      return error.what();
    }
    return "";
  }
  static std::string of_rank(int rank, const std::string& what) {
    return "rank " + std::to_string(rank) + " sent an input message whose " + what;
  }

  plan::Model model_;
  plan::Plan plan_{{3, 3}, std::vector<plan::TablePlan>(1)};
  StepTools tools_{2};
  std::vector<std::vector<std::byte>> messages_;  // to rank 2, by source
};

// The body of a message: 6 dense lengths, 5 ids and 4 bytes of padding, one sparse length, 2 ids.
constexpr size_t kSparse = 6 + 6;

TEST_F(CorruptInput, IsWholeToBeginWith) {
  EXPECT_EQ(sentence(), "");
  EXPECT_EQ(record(0).sparse, 0U);
  EXPECT_EQ(record(1).sparse, 1U);
  EXPECT_EQ(messages_[0].size(), input_head_bytes(2) + (kSparse + 2 + 2) * 4);
}

TEST_F(CorruptInput, MessagesThatAreCutOffAreTold) {
  const std::vector<std::byte> whole = messages_[0];
  const auto at = [&](size_t bytes) {
    messages_[0].assign(whole.begin(), whole.begin() + static_cast<int64_t>(bytes));
    return sentence();
  };
  EXPECT_EQ(at(sizeof(InputHeader) - 1), of_rank(0, "header is cut off"));
  EXPECT_EQ(at(input_head_bytes(2) - 1), of_rank(0, "records are cut off"));
  EXPECT_EQ(at(input_head_bytes(2)), of_rank(0, "blocks are cut off"));
  EXPECT_EQ(at(whole.size() - 1), of_rank(0, "blocks are cut off"));
  messages_[0] = whole;
  messages_[0].resize(whole.size() + 8);
  EXPECT_EQ(sentence(), of_rank(0, "length is not what its records say"));
}

TEST_F(CorruptInput, LengthsThatAreNotThoseOfTheRecordsAreTold) {
  set_length(2, 1);
  EXPECT_EQ(sentence(), of_rank(0, "lengths do not add up"));
  set_length(2, 0);
  set_length(kSparse, 6);  // a sample behind the last
  EXPECT_EQ(sentence(), of_rank(0, "bags are out of order"));
}

TEST_F(CorruptInput, RecordsOfOtherBlocksAreTold) {
  const BlockRecord first = record(0);
  BlockRecord second = record(1);
  EXPECT_EQ(first.block, 0U);
  EXPECT_EQ(second.block, 1U);
  for (const uint32_t number : {0U, 2U, ~0U}) {  // a second one, one that there is not
    second.block = number;
    set_record(1, second);
    EXPECT_EQ(sentence(), of_rank(0, "records are absurd")) << number;
  }
  second.block = 1;
  set_record(0, second);  // not ascending
  set_record(1, first);
  EXPECT_NE(sentence(), "");
  InputHeader header;
  std::memcpy(&header, messages_[0].data(), sizeof header);
  header.records = 3;
  std::memcpy(messages_[0].data(), &header, sizeof header);
  EXPECT_EQ(sentence(), of_rank(0, "records are absurd"));
}

TEST_F(CorruptInput, TheFirstFaultIsTold) {
  // Rank 0's first block, before rank 0's second record and rank 1's lengths.
  set_length(2, 1);
  set_length(2, 1, 1);
  BlockRecord absurd = record(1);
  absurd.bags = 3;
  set_record(1, absurd);
  EXPECT_EQ(sentence(), of_rank(0, "lengths do not add up"));
  set_length(2, 0);
  EXPECT_EQ(sentence(), of_rank(0, "records are absurd"));
  absurd.bags = 1;
  set_record(1, absurd);
  EXPECT_EQ(sentence(), of_rank(1, "lengths do not add up"));
}

}  // namespace
}  // namespace shardrec::embedding
