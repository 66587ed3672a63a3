// The library writes nothing to stdout or stderr, whatever goes wrong: it has a log (log.h).
#include <gtest/gtest.h>

#include <string>

#include "capi_test.h"

namespace shardrec::test {
namespace {

// Warnings, errors of calls, of peers and of deadlines, a bad handle and a cache that cannot be read.
void make_trouble() {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_WARN_SECONDS, 0.02));
    EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 0.1));
    EXPECT_EQ(shardrec_comm_all_reduce(comm, nullptr, SHARDREC_REDUCTION_SUM),
              SHARDREC_INVALID_ARGUMENT);
    if (rank == 0) {
      EXPECT_EQ(shardrec_comm_barrier(comm), SHARDREC_TIMEOUT);
    } else {
      while (shardrec_comm_status(comm) == SHARDREC_OK) std::this_thread::yield();
    }
  });
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    if (rank == 0) {
      EXPECT_OK(shardrec_comm_abort(comm, "enough"));
    }
    EXPECT_EQ(shardrec_comm_barrier(comm), SHARDREC_ABORTED);
  });
  shardrec_model* model = nullptr;
  EXPECT_EQ(shardrec_model_from_json("{", &model), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_comm_barrier(nullptr), SHARDREC_INVALID_HANDLE);
  char* text = nullptr;
  EXPECT_EQ(shardrec_checkpoint_list_json("/nonexistent", &text), SHARDREC_NOT_FOUND);
}

TEST(Quiet, TroubleIsLoggedAndNothingIsWrittenToStdoutOrStderr) {
  shardrec_log_level level = SHARDREC_LOG_OFF;
  char* message = nullptr;
  do {  // those of other tests
    shardrec_text_free(message);
    EXPECT_OK(shardrec_log_next(0, &level, nullptr, &message));
  } while (message != nullptr);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  make_trouble();
  const std::string errors = ::testing::internal::GetCapturedStderr();
  const std::string output = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(errors, "");
  EXPECT_EQ(output, "");
  EXPECT_OK(shardrec_log_next(0, &level, nullptr, &message));
  EXPECT_NE(message, nullptr) << "nothing was logged: there was no trouble";
  shardrec_text_free(message);
}

}  // namespace
}  // namespace shardrec::test
