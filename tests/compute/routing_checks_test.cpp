// Ids outside their table's rows: which one is told, when, and where none is.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "compute/backend_tools.h"

namespace shardrec::compute {
namespace {

// Two features of one table of 10 rows with an id each of a bag each.
struct TwoFeatures {
  explicit TwoFeatures(bool whole) {
    for (size_t f = 0; f < 2; ++f) {
      routed[f] = {.ids = {values, true},
                   .first = static_cast<int64_t>(f) * 2,
                   .count = 2,
                   .lengths = lengths,
                   .bags = 2,
                   .rows = 10,
                   .blocks = std::span(block).subspan(f, 1),
                   .intervals = whole ? nullptr : &intervals,
                   .targets = std::span(targets).subspan(f, 1)};
      sections[f] = {.dense_lengths = dense[f],
                     .ids = ids[f],
                     .chunk_rows = chunks[f],
                     .chunk_ids = chunks[f] + 2};
    }
  }
  // Positions of the first wrong ids as counted; then, where there are none, as written.
  std::vector<int64_t> count(Backend& backend) {
    BlockCount counts[2];
    backend.routing().count_ids(routed, checked, counts);
    return {checked[0].wrong.position, checked[1].wrong.position};
  }
  std::vector<int64_t> write(Backend& backend) {
    backend.routing().write_ids(routed, WrittenBlocks(sections), checked);
    return {checked[0].wrong.position, checked[1].wrong.position};
  }

  int64_t values[4] = {1, 2, 3, 4};
  uint32_t lengths[2] = {1, 1};
  uint32_t block[2] = {0, 1};
  int64_t cuts[2] = {0, 10};
  int32_t first_target[2] = {0, 1};
  BlockTarget targets[2] = {{0, 0}, {1, 0}};
  RowIntervals intervals{.cuts = cuts, .first_target = first_target};
  RoutedIds routed[2];
  CheckedIds checked[2];
  uint32_t dense[2][2] = {};
  int32_t ids[2][2] = {};
  uint32_t chunks[2][4] = {};
  BlockSections sections[2];
};

TEST(RoutingOfBadIds, TheFirstWrongOneOfEachFeatureIsTold) {
  BackendTools tools;
  for (const int64_t wrong : {int64_t{-1}, int64_t{10}, INT64_MIN, int64_t{1} << 32}) {
    for (const bool whole : {false, true}) {
      for (int64_t position = 0; position < 4; ++position) {
        TwoFeatures batch(whole);
        for (int64_t p = position; p < 4; ++p) batch.values[p] = wrong;
        std::vector<int64_t> found = batch.count(*tools.backend);
        // What is narrowed is checked while it is written.
        if (whole && found == std::vector<int64_t>{-1, -1}) found = batch.write(*tools.backend);
        const std::vector<int64_t> expected = {position < 2 ? position : -1,
                                               std::max<int64_t>(position, 2)};
        EXPECT_EQ(found, expected) << wrong << " at " << position;
        EXPECT_EQ(batch.checked[1].wrong.value, wrong);
      }
    }
  }
}

TEST(RoutingOfBadIds, WhatCountingLeavesToWritingIsFoundWithAnyOtherWrongId) {
  BackendTools tools;
  TwoFeatures batch(true);
  batch.routed[1].intervals = &batch.intervals;  // checked at once
  batch.values[1] = 12;
  batch.values[3] = 13;
  EXPECT_EQ(batch.count(*tools.backend), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(batch.checked[0].wrong.value, 12);
}

TEST(RoutingOfBadIds, ThereIsNoneWherePoliciesTakeThem) {
  BackendTools tools;
  for (const bool drops : {false, true}) {
    TwoFeatures batch(false);
    uint32_t kept[2] = {9, 9};
    for (RoutedIds& routed : batch.routed) routed.policy = SHARDREC_OUT_OF_RANGE_CLAMP;
    if (drops) {
      batch.routed[0].policy = SHARDREC_OUT_OF_RANGE_DROP;
      batch.routed[0].kept_lengths = kept;
    }
    batch.values[1] = -5;
    EXPECT_EQ(batch.count(*tools.backend), (std::vector<int64_t>{-1, -1}));
    EXPECT_EQ(batch.checked[0].out_of_range, 1);
    EXPECT_EQ(batch.checked[1].out_of_range, 0);
    EXPECT_EQ(kept[1], drops ? 0U : 9U);
  }
}

// Pieces of 2^15 ids: one that starts behind the first has the wrong id.
TEST(RoutingOfBadIds, AWrongIdOfALaterPieceIsFound) {
  BackendTools tools;
  std::vector<int64_t> values((size_t{1} << 15) * 3, 4);
  values[70000] = 5;
  const auto lengths = static_cast<uint32_t>(values.size());
  const uint32_t block = 0;
  const RoutedIds routed{.ids = {values.data(), true},
                         .count = std::ssize(values),
                         .lengths = &lengths,
                         .bags = 1,
                         .rows = 5,
                         .blocks = {&block, 1}};
  CheckedIds checked;
  BlockCount count;
  tools.backend->routing().count_ids({&routed, 1}, {&checked, 1}, {&count, 1});
  EXPECT_EQ(count.ids, std::ssize(values));
  uint32_t length = 0;
  std::vector<int32_t> ids(values.size());
  uint32_t chunks[4] = {};
  const BlockSections sections{
      .dense_lengths = &length, .ids = ids.data(), .chunk_rows = chunks, .chunk_ids = chunks + 2};
  tools.backend->routing().write_ids({&routed, 1}, WrittenBlocks({&sections, 1}), {&checked, 1});
  EXPECT_EQ(checked.wrong.position, 70000);
  EXPECT_EQ(checked.wrong.value, 5);
}

}  // namespace
}  // namespace shardrec::compute
