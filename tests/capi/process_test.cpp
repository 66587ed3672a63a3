// Being a good guest of the process: fork, exit, and threads that end.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "capi_test.h"
#include "core/log.h"
#include "shardrec/native.h"
#include "support/asleep.h"
#include "support/eventually.h"

namespace shardrec::test {
namespace {

// Runs body in a child made by fork; returns its exit code, or -1 when it did not end by itself
// within 20 s.
int exit_code_of_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int state = 0;
  if (eventually([&] { return waitpid(child, &state, WNOHANG) == child; }, 20)) {
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return -1;
}

TEST(Fork, EveryCallOfTheChildIsInvalidState) {
  Options options;
  Model model;
  Topology topology;
  Plan plan;
  Control control;
  Local group;
  Comm comm;
  ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, options.out()));
  ASSERT_OK(shardrec_model_create(nullptr, model.out()));
  ASSERT_OK(shardrec_model_add_table(model, "t", 10, 4, nullptr, nullptr));
  ASSERT_OK(shardrec_topology_create(1, 1, nullptr, topology.out()));
  ASSERT_OK(shardrec_plan_create(model, topology, nullptr, plan.out()));
  ASSERT_OK(shardrec_control_create(nullptr, control.out()));
  ASSERT_OK(shardrec_local_create(2, 2, nullptr, group.out()));
  ASSERT_OK(shardrec_comm_create_local(group, 0, nullptr, comm.out()));
  int32_t number = 0;
  int64_t wide = 0;
  double real = 0;
  char* text = nullptr;
  shardrec_model_size size{};
  size.struct_size = sizeof size;
  shardrec_options* new_options = nullptr;
  shardrec_model* new_model = nullptr;
  shardrec_comm* new_comm = nullptr;
  shardrec_plan* new_plan = nullptr;
  const std::vector<std::function<shardrec_status()>> calls = {
      [&] { return shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, 1); },
      [&] { return shardrec_options_get_i64(options, SHARDREC_OPTION_SHARDING, &wide); },
      [&] { return shardrec_options_create(SHARDREC_OPTIONS_PLAN, &new_options); },
      [&] { return shardrec_model_add_table(model, "u", 10, 4, nullptr, nullptr); },
      [&] { return shardrec_model_info(model, &size); },
      [&] { return shardrec_model_to_json(model, &text); },
      [&] { return shardrec_model_create(nullptr, &new_model); },
      [&] { return shardrec_plan_check(plan); },
      [&] { return shardrec_plan_create(model, topology, nullptr, &new_plan); },
      [&] { return shardrec_control_cancel(control); },
      [&] { return shardrec_control_progress(control, &wide, &wide); },
      [&] { return shardrec_comm_create_local(group, 1, nullptr, &new_comm); },
      [&] { return shardrec_comm_rank(comm, &number); },
      [&] { return shardrec_comm_barrier(comm); },
      [&] { return shardrec_comm_close(comm); },
      [&] { return shardrec_comm_abort(comm, nullptr); },
      [&] { return shardrec_comm_status(comm); },
      [&] { return shardrec_comm_get_f64(comm, SHARDREC_COMM_STEP_SECONDS, &real); },
      [&] { return shardrec_plan_collective(comm, nullptr, model, nullptr, &new_plan); },
      [&] { return shardrec_log_next(0, nullptr, nullptr, &text); },
      [&] { return shardrec_log_set_sink(nullptr, nullptr); },
  };
  const int code = exit_code_of_child([&] {
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i]() != SHARDREC_INVALID_STATE) return static_cast<int>(i) + 1;
      if (!contains(shardrec_last_error(), "fork")) return 100 + static_cast<int>(i);
    }
    shardrec_comm* copy = comm;
    shardrec_comm_destroy(&copy);  // in the child: only the copy is nulled
    return copy == nullptr ? 0 : 99;
  });
  EXPECT_EQ(code, 0) << "the number of the call that went wrong (from 1)";
  // The parent goes on as before.
  EXPECT_OK(shardrec_comm_status(comm));
  EXPECT_OK(shardrec_plan_check(plan));
}

TEST(Fork, TheParentMayForkWhileItsThreadsAreInsideCalls) {
  Local group;
  ASSERT_OK(shardrec_local_create(2, 2, nullptr, group.out()));
  Comm first;
  Comm second;
  ASSERT_OK(shardrec_comm_create_local(group, 0, nullptr, first.out()));
  ASSERT_OK(shardrec_comm_create_local(group, 1, nullptr, second.out()));
  std::atomic<pid_t> waiter{0};
  std::thread waiting([&] {
    waiter = gettid();
    EXPECT_OK(shardrec_comm_barrier(first));
  });
  EXPECT_TRUE(eventually([&] { return is_asleep(waiter); }));
  EXPECT_EQ(exit_code_of_child(
                [&] { return shardrec_comm_barrier(second) == SHARDREC_INVALID_STATE ? 0 : 1; }),
            0);
  EXPECT_OK(shardrec_comm_barrier(second));
  waiting.join();
}

// Each runs in a process of its own, which must end by itself with the code given.
class Exit : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// What the other thread is doing.
std::atomic<pid_t> waiter{0};
std::atomic<int> calls{0};

void exit_while_waiter_sleeps() {
  std::exit(eventually([] { return is_asleep(waiter); }) ? 7 : 3);
}

void exit_while_another_thread_waits_in_a_barrier() {
  shardrec_local* group = nullptr;
  shardrec_comm* comm = nullptr;
  if (shardrec_local_create(2, 2, nullptr, &group) != SHARDREC_OK) std::exit(1);
  if (shardrec_comm_create_local(group, 0, nullptr, &comm) != SHARDREC_OK) std::exit(2);
  std::thread([comm] {
    waiter = gettid();
    shardrec_comm_barrier(comm);
  }).detach();
  exit_while_waiter_sleeps();
}

void exit_while_another_thread_waits_for_a_message() {
  std::thread([] {
    waiter = gettid();
    char* text = nullptr;
    shardrec_log_next(600000, nullptr, nullptr, &text);
  }).detach();
  exit_while_waiter_sleeps();
}

void exit_while_another_thread_makes_calls() {
  std::thread([] {
    for (;;) {
      shardrec_model* model = nullptr;
      shardrec_model_create(nullptr, &model);
      shardrec_model_add_table(model, "t", 10, 4, nullptr, nullptr);
      shardrec_model_add_table(model, "t", 10, 4, nullptr, nullptr);  // refused
      shardrec_model_destroy(&model);
      core::log(SHARDREC_LOG_ERROR, 0, "message");
      ++calls;
    }
  }).detach();
  std::exit(eventually([] { return calls > 100; }) ? 7 : 3);
}

TEST_F(Exit, EndsCleanlyWhileAnotherThreadWaitsInABarrier) {
  EXPECT_EXIT(exit_while_another_thread_waits_in_a_barrier(), ::testing::ExitedWithCode(7), "");
}

TEST_F(Exit, EndsCleanlyWhileAnotherThreadWaitsForAMessage) {
  EXPECT_EXIT(exit_while_another_thread_waits_for_a_message(), ::testing::ExitedWithCode(7), "");
}

TEST_F(Exit, EndsCleanlyWhileAnotherThreadMakesCalls) {
  EXPECT_EXIT(exit_while_another_thread_makes_calls(), ::testing::ExitedWithCode(7), "");
}

// A thread-local object of the host that calls the library when its thread ends, after the
// library's own thread-local objects are gone.
struct CallsAtTheEnd {
  ~CallsAtTheEnd() {
    if (!armed) return;
    *status = shardrec_model_info(nullptr, nullptr);
    *sentence_is_there = shardrec_last_error()[0] != '\0';
  }
  bool armed = false;
  shardrec_status* status = nullptr;
  bool* sentence_is_there = nullptr;
};
thread_local CallsAtTheEnd calls_at_the_end;

TEST(Threads, MayCallWhileTheyEnd) {
  shardrec_status status = SHARDREC_OK;
  bool sentence_is_there = false;
  std::thread([&] {
    CallsAtTheEnd& last =
        calls_at_the_end;  // before the first failing call: it goes after its error
    last.status = &status;
    last.sentence_is_there = &sentence_is_there;
    last.armed = true;
    EXPECT_EQ(shardrec_model_info(nullptr, nullptr), SHARDREC_INVALID_HANDLE);
  }).join();
  EXPECT_EQ(status, SHARDREC_INVALID_HANDLE);
  EXPECT_TRUE(sentence_is_there);
}

}  // namespace
}  // namespace shardrec::test
