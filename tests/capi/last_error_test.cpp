// The guard at every entry, and this thread's last error: status, sentence, parts; also when memory
// is short.
#include "last_error.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "capi_test.h"
#include "guard.h"

namespace shardrec::capi {
namespace {

using test::take;

TEST(Guard, TurnsWhateverIsThrownIntoAStatus) {
  EXPECT_EQ(guard([] {}), SHARDREC_OK);
  EXPECT_EQ(guard([] { core::fail(SHARDREC_IO_ERROR, "the file is gone"); }), SHARDREC_IO_ERROR);
  EXPECT_STREQ(shardrec_last_error(), "the file is gone");
  EXPECT_EQ(guard([] { throw std::bad_alloc(); }), SHARDREC_OUT_OF_MEMORY);
  EXPECT_STREQ(shardrec_last_error(), "the host has no memory left for what this call needs");
  EXPECT_EQ(guard([] { throw std::out_of_range("index 3 of 2"); }), SHARDREC_INTERNAL);
  EXPECT_STREQ(shardrec_last_error(), "a defect of the library: index 3 of 2");
  EXPECT_EQ(guard([] { throw 7; }), SHARDREC_INTERNAL);
  EXPECT_EQ(shardrec_last_error_status(), SHARDREC_INTERNAL);
}

TEST(LastError, HasAllPartsThatWereKnown) {
  EXPECT_EQ(guard([] {
              core::fail(SHARDREC_INVALID_BATCH, "an id is out of range",
                         {.rank = 3,
                          .position = int64_t{1} << 40,
                          .value = -1,
                          .limit = 10,
                          .sequence = 99,
                          .table = "t\xc3\xa4",
                          .feature = "f",
                          .operation = "forward",
                          .path = "/tmp/x"});
            }),
            SHARDREC_INVALID_BATCH);
  const std::vector<std::pair<shardrec_error_part, int64_t>> numbers = {
      {SHARDREC_ERROR_RANK, 3},
      {SHARDREC_ERROR_POSITION, int64_t{1} << 40},
      {SHARDREC_ERROR_VALUE, -1},
      {SHARDREC_ERROR_LIMIT, 10},
      {SHARDREC_ERROR_SEQUENCE, 99}};
  for (const auto& [part, expected] : numbers) {
    int64_t number = 0;
    EXPECT_EQ(shardrec_last_error_i64(part, &number), SHARDREC_OK);
    EXPECT_EQ(number, expected);
    char* text = nullptr;
    EXPECT_EQ(shardrec_last_error_text(part, &text), SHARDREC_NOT_FOUND);
    EXPECT_EQ(text, nullptr);
  }
  const std::vector<std::pair<shardrec_error_part, std::string>> texts = {
      {SHARDREC_ERROR_TABLE, "t\xc3\xa4"},
      {SHARDREC_ERROR_FEATURE, "f"},
      {SHARDREC_ERROR_OPERATION, "forward"},
      {SHARDREC_ERROR_PATH, "/tmp/x"}};
  for (const auto& [part, expected] : texts) {
    char* text = nullptr;
    EXPECT_EQ(shardrec_last_error_text(part, &text), SHARDREC_OK);
    EXPECT_EQ(take(text), expected);
    int64_t number = 5;
    EXPECT_EQ(shardrec_last_error_i64(part, &number), SHARDREC_NOT_FOUND);
    EXPECT_EQ(number, 5);
  }
}

TEST(LastError, ReadingItDoesNotChangeIt) {
  guard([] { core::fail(SHARDREC_TIMEOUT, "rank 2 is late", {.rank = 2}); });
  int64_t number = 0;
  char* text = nullptr;
  EXPECT_EQ(shardrec_last_error_i64(SHARDREC_ERROR_POSITION, &number), SHARDREC_NOT_FOUND);
  EXPECT_EQ(shardrec_last_error_text(SHARDREC_ERROR_TABLE, &text), SHARDREC_NOT_FOUND);
  EXPECT_EQ(shardrec_last_error_i64(SHARDREC_ERROR_RANK, nullptr), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_last_error_text(SHARDREC_ERROR_TABLE, nullptr), SHARDREC_INVALID_ARGUMENT);
  EXPECT_STREQ(shardrec_last_error(), "rank 2 is late");
  EXPECT_EQ(shardrec_last_error_status(), SHARDREC_TIMEOUT);
}

TEST(LastError, PartsOfAnEarlierErrorAreGone) {
  guard([] { core::fail(SHARDREC_TIMEOUT, "first", {.rank = 2, .table = "t"}); });
  guard([] { core::fail(SHARDREC_TIMEOUT, "second"); });
  int64_t number = 0;
  char* text = nullptr;
  EXPECT_EQ(shardrec_last_error_i64(SHARDREC_ERROR_RANK, &number), SHARDREC_NOT_FOUND);
  EXPECT_EQ(shardrec_last_error_text(SHARDREC_ERROR_TABLE, &text), SHARDREC_NOT_FOUND);
}

TEST(LastError, SuccessLeavesItAlone) {
  guard([] { core::fail(SHARDREC_NOT_FOUND, "no such table", {.value = 8}); });
  int64_t live = 0;
  EXPECT_EQ(shardrec_live_objects(&live), SHARDREC_OK);
  int64_t value = 0;
  EXPECT_EQ(shardrec_last_error_i64(SHARDREC_ERROR_VALUE, &value), SHARDREC_OK);
  EXPECT_EQ(value, 8);
  EXPECT_STREQ(shardrec_last_error(), "no such table");
}

TEST(LastError, EachThreadHasItsOwn) {
  guard([] { core::fail(SHARDREC_NOT_FOUND, "mine", {.rank = 0}); });
  std::vector<std::thread> threads;
  for (int64_t t = 1; t <= 4; ++t) {
    threads.emplace_back([t] {
      EXPECT_STREQ(shardrec_last_error(), "");
      EXPECT_EQ(shardrec_last_error_status(), SHARDREC_OK);
      for (int round = 0; round < 200; ++round) {
        guard([&] { core::fail(SHARDREC_IO_ERROR, core::sentence("thread ", t), {.rank = t}); });
        int64_t rank = 0;
        EXPECT_EQ(shardrec_last_error_i64(SHARDREC_ERROR_RANK, &rank), SHARDREC_OK);
        EXPECT_EQ(rank, t);
        EXPECT_EQ(shardrec_last_error(), core::sentence("thread ", t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_STREQ(shardrec_last_error(), "mine");
}

TEST(Status, EveryOneHasItsName) {
  const std::vector<std::pair<shardrec_status, const char*>> names = {
      {SHARDREC_OK, "SHARDREC_OK"},
      {SHARDREC_INVALID_ARGUMENT, "SHARDREC_INVALID_ARGUMENT"},
      {SHARDREC_INVALID_HANDLE, "SHARDREC_INVALID_HANDLE"},
      {SHARDREC_CLOSED, "SHARDREC_CLOSED"},
      {SHARDREC_BUSY, "SHARDREC_BUSY"},
      {SHARDREC_INVALID_STATE, "SHARDREC_INVALID_STATE"},
      {SHARDREC_INVALID_BATCH, "SHARDREC_INVALID_BATCH"},
      {SHARDREC_NOT_FOUND, "SHARDREC_NOT_FOUND"},
      {SHARDREC_UNSUPPORTED, "SHARDREC_UNSUPPORTED"},
      {SHARDREC_OUT_OF_MEMORY, "SHARDREC_OUT_OF_MEMORY"},
      {SHARDREC_IO_ERROR, "SHARDREC_IO_ERROR"},
      {SHARDREC_CORRUPT_DATA, "SHARDREC_CORRUPT_DATA"},
      {SHARDREC_DEVICE_ERROR, "SHARDREC_DEVICE_ERROR"},
      {SHARDREC_PEER_FAILED, "SHARDREC_PEER_FAILED"},
      {SHARDREC_TIMEOUT, "SHARDREC_TIMEOUT"},
      {SHARDREC_DISAGREEMENT, "SHARDREC_DISAGREEMENT"},
      {SHARDREC_MISMATCH, "SHARDREC_MISMATCH"},
      {SHARDREC_ABORTED, "SHARDREC_ABORTED"},
      {SHARDREC_CANCELLED, "SHARDREC_CANCELLED"},
      {SHARDREC_INTERNAL, "SHARDREC_INTERNAL"},
  };
  for (const auto& [status, name] : names) EXPECT_STREQ(shardrec_status_name(status), name);
  EXPECT_STREQ(shardrec_status_name(static_cast<shardrec_status>(10)), "unknown status");
  EXPECT_STREQ(shardrec_status_name(SHARDREC_STATUS_FORCE_32), "unknown status");
}

}  // namespace
}  // namespace shardrec::capi
