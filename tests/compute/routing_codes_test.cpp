// Blocks of ids whose different ones travel once, and what a rank checks of the blocks it receives.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "compute/backend_tools.h"
#include "compute/id_sections.h"

namespace shardrec::compute {
namespace {

struct Ids64 {
  int64_t ids = 0;
  int64_t unique = 0;
  bool is_64 = false;
  bool coded = false;
};

// Blocks of one message, with lengths and weights around the ids.
TEST(DeduplicatedIds, BlocksMoveUpAndExpandToWhatTheyWere) {
  const std::vector<Ids64> shapes = {{8, 1, false, false},        {100, 1, false, true},
                                     {1000, 256, false, true},    {1000, 257, false, true},
                                     {1000, 1000, false, false},  {0, 0, true, false},
                                     {1000, 256, true, true},     {100000, 60000, true, true},
                                     {150000, 70000, true, true}, {150000, 149000, true, false}};
  std::vector<PlainBlock> blocks;
  std::vector<std::byte> message;
  std::vector<std::vector<int64_t>> values;
  const auto append = [&](const void* data, size_t bytes) {
    const auto* begin = static_cast<const std::byte*>(data);
    message.insert(message.end(), begin, begin + bytes);
    message.resize((message.size() + 7) / 8 * 8);
  };
  for (const Ids64& shape : shapes) {
    std::vector<int64_t>& ids = values.emplace_back();
    for (int64_t i = 0; i < shape.ids; ++i) ids.push_back(i * 7919 % shape.unique * 3);
    const auto tag = static_cast<int64_t>(blocks.size());
    append(&tag, sizeof tag);
    const std::vector<int32_t> narrow(ids.begin(), ids.end());
    shape.is_64 ? append(ids.data(), ids.size() * 8) : append(narrow.data(), narrow.size() * 4);
    const std::vector<float> weights(ids.size(), static_cast<float>(tag));
    append(weights.data(), weights.size() * sizeof(float));
    blocks.push_back({.lengths_bytes = 8,
                      .ids = shape.ids,
                      .is_64 = shape.is_64,
                      .weights_bytes = (ids.size() * sizeof(float) + 7) / 8 * 8});
  }
  std::vector<std::byte> again = message;
  std::vector<int64_t> unique(shapes.size(), -1);
  std::vector<int64_t> unique_again(shapes.size(), -1);
  const DeduplicatedBlocks messages[2] = {{message.data(), blocks, unique},
                                          {again.data(), blocks, unique_again}};
  BackendTools tools;
  tools.backend->routing().deduplicate_ids(messages);
  EXPECT_EQ(unique, unique_again);

  const std::byte* at = message.data();
  for (size_t b = 0; b < blocks.size(); ++b) {
    const Ids64& shape = shapes[b];
    EXPECT_EQ(unique[b], shape.coded ? shape.unique : 0);
    int64_t tag = -1;
    std::memcpy(&tag, at, sizeof tag);
    EXPECT_EQ(tag, static_cast<int64_t>(b));
    at += 8;
    std::vector<int64_t> ids(values[b].size());
    std::vector<int32_t> narrow(values[b].size());
    void* out = shape.is_64 ? static_cast<void*>(ids.data()) : narrow.data();
    const auto different = static_cast<uint64_t>(unique[b]);
    if (unique[b] == 0) {
      if (!ids.empty()) std::memcpy(out, at, ids.size() * (shape.is_64 ? 8 : 4));
    } else {
      const CodedIds coded{.codes = at + code_offset(different, shape.is_64),
                           .count = shape.ids,
                           .unique_ids = {at, shape.is_64},
                           .unique = unique[b],
                           .out = out};
      WrongInteger wrong{.position = 1};
      tools.backend->routing().expand_ids({&coded, 1}, {&wrong, 1});
      EXPECT_EQ(wrong.position, -1);
    }
    if (!shape.is_64) ids.assign(narrow.begin(), narrow.end());
    EXPECT_EQ(ids, values[b]);
    at += id_section_bytes(static_cast<uint64_t>(shape.ids), different, shape.is_64);
    for (size_t i = 0; i < values[b].size(); ++i) {
      float weight = -1;
      std::memcpy(&weight, at + i * sizeof weight, sizeof weight);
      ASSERT_EQ(weight, static_cast<float>(b));
    }
    at += blocks[b].weights_bytes;
  }
}

template <class Code>
void expect_wrong_code(int64_t unique) {
  const std::vector<int64_t> ids(static_cast<size_t>(unique), 3);
  std::vector<Code> codes(20, static_cast<Code>(unique - 1));
  codes[17] = static_cast<Code>(unique);
  std::vector<int64_t> out(codes.size());
  const auto bytes = std::as_bytes(std::span(codes));
  CodedIds coded[2] = {{.codes = bytes.data(),
                        .count = 17,
                        .unique_ids = {ids.data(), true},
                        .unique = unique,
                        .out = out.data()}};
  coded[1] = coded[0];
  coded[1].count = 20;
  WrongInteger wrong[2] = {{.position = 5}, {}};
  BackendTools tools;
  tools.backend->routing().expand_ids(coded, wrong);
  EXPECT_EQ(wrong[0].position, -1);
  EXPECT_EQ(wrong[1].position, 17);
  EXPECT_EQ(wrong[1].value, unique);
}

TEST(ReceivedIds, TheFirstCodeBeyondTheDictionaryIsTold) {
  expect_wrong_code<uint8_t>(255);
  expect_wrong_code<uint16_t>(65535);
  expect_wrong_code<uint32_t>(65537);
}

TEST(ReceivedIds, LengthsThatAreNotWhatTheBlockSaysAreTold) {
  const uint32_t dense[4] = {2, 0, 0, 3};
  const SparseLength good[2] = {{1, 2}, {3, 3}};
  const SparseLength twice[2] = {{3, 2}, {3, 3}};
  const SparseLength falling[2] = {{3, 2}, {1, 3}};
  const SparseLength none[2] = {{1, 5}, {3, 0}};
  const SparseLength beyond[2] = {{1, 2}, {4, 3}};
  // Adds up modulo 2^32 only.
  const uint32_t huge[3] = {UINT32_MAX, 3, 3};
  const auto in = [](const SparseLength* lengths) {
    return Bags{.ids = 5, .bags = 2, .samples = 4, .sparse_lengths = lengths};
  };
  const std::vector<Bags> blocks = {
      {.ids = 5, .bags = 2, .samples = 4, .dense_lengths = dense},
      in(good),
      {},
      in(twice),
      in(falling),
      in(none),
      in(beyond),
      {.ids = 6, .bags = 2, .samples = 4, .dense_lengths = dense},
      {.ids = 5, .bags = 3, .samples = 4, .dense_lengths = dense},
      {.ids = 4, .bags = 2, .samples = 4, .sparse_lengths = good},
      {.ids = 5, .bags = 3, .samples = 3, .dense_lengths = huge},
  };
  using enum BagDefect;
  const std::vector<BagDefect> expected = {kNone,  kNone, kNone, kOrder, kOrder, kOrder,
                                           kOrder, kSum,  kSum,  kSum,   kSum};
  std::vector<BagDefect> defects(blocks.size(), kOrder);
  BackendTools tools;
  tools.backend->routing().check_bags(blocks, defects);
  EXPECT_EQ(defects, expected);
}

}  // namespace
}  // namespace shardrec::compute
