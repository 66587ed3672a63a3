// Room for copies of rows: parts that are whole and nobody else's, blocks that are had before they are
// needed, nothing left over.
#include "embedding/tables/copy_room.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace shardrec::embedding {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class Rooms : public ::testing::Test {
 protected:
  int64_t booked() const { return booked_->load(); }
  void take(CopyRoom::Share& share, size_t bytes, size_t unit) {
    while (bytes != 0) bytes -= room_.take(share, bytes, unit).bytes;
  }

  compute::BookedBytes booked_ = std::make_shared<std::atomic<int64_t>>(0);
  CopyRoom room_{booked_};
};

TEST_F(Rooms, PartsAreWholeUnitsAndDoNotOverlap) {
  std::mt19937 random(5);
  std::vector<CopyRoom::Share> shares(5);
  struct Written {
    std::byte* data;
    size_t bytes;
    int value;
  };
  std::vector<Written> written;
  for (int i = 0; i < 600; ++i) {
    const size_t which = random() % shares.size();
    const size_t unit = size_t{4} << (3 * which);  // 4 to 16,384 bytes
    const size_t wanted = unit * (1 + random() % (i % 50 == 0 ? 300 : 20));
    for (size_t left = wanted; left != 0;) {
      const CopyRoom::Part part = room_.take(shares[which], left, unit);
      ASSERT_GT(part.bytes, 0U);
      ASSERT_LE(part.bytes, left);
      ASSERT_EQ(part.bytes % unit, 0U);
      std::memset(part.data, i % 251, part.bytes);
      written.push_back({part.data, part.bytes, i % 251});
      left -= part.bytes;
    }
    if (i % 7 == 0) room_.make_ready();
  }
  for (const Written& part : written) {
    for (size_t at = 0; at < part.bytes; ++at) {
      ASSERT_EQ(static_cast<int>(part.data[at]), part.value);
    }
  }
  for (CopyRoom::Share& share : shares) room_.give_back(share);
  room_.close();
  EXPECT_EQ(booked(), 0);
}

TEST_F(Rooms, TwiceWhatWasTakenIsReadyAndIsTakenFirst) {
  CopyRoom::Share share;
  take(share, 3 * kMiB, kMiB);  // a block begins smaller, so that this is more than one
  room_.make_ready();
  const int64_t ready = booked();
  EXPECT_GE(ready, static_cast<int64_t>(6 * kMiB));
  EXPECT_LE(ready, static_cast<int64_t>(16 * kMiB));
  take(share, 4 * kMiB, kMiB);
  EXPECT_EQ(booked(), ready);
  room_.give_back(share);
  EXPECT_GT(booked(), 0);  // for the next steps
  room_.close();
  EXPECT_EQ(booked(), 0);
  room_.make_ready();
  EXPECT_EQ(booked(), 0);
}

TEST_F(Rooms, LittleIsHadForLittle) {
  std::vector<CopyRoom::Share> shares(100);
  for (CopyRoom::Share& share : shares) take(share, 256, 64);
  EXPECT_LE(booked(), static_cast<int64_t>(4 * kMiB));
  room_.make_ready();
  EXPECT_LE(booked(), static_cast<int64_t>(8 * kMiB));
}

}  // namespace
}  // namespace shardrec::embedding
