// The suite between processes: conformance_rank ENGINE [options of GoogleTest] is one rank of a
// job, and each of its processes runs all tests, with the ranks of the job that a test asks for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "comm/engines/engine.h"
#include "conformance/engine.h"

namespace shardrec::comm {
namespace {

// All ranks of the job: it outlives what happens to the groups of the tests.
std::shared_ptr<Communicator> everyone;

Results run_as_one_of(int ranks, const Body& body) {
  const int rank = everyone->rank();
  const auto group = everyone->split(rank < ranks ? 0 : 1, 0);
  if (rank >= ranks) {
    group->leave();
    return {};
  }
  auto error = error_of([&] {
    body(*group);
    group->leave();
  });
  return {{rank, std::move(error)}};
}

Engine kProcesses{.name = "processes",
                  .run = [](int ranks, int /*ranks_per_node*/,
                            const Body& body) { return run_as_one_of(ranks, body); },
                  .ranks_share_a_process = false};

INSTANTIATE_TEST_SUITE_P(Processes, CollectiveConformance, testing::Values(&kProcesses));
INSTANTIATE_TEST_SUITE_P(Processes, ExchangeConformance, testing::Values(&kProcesses));
INSTANTIATE_TEST_SUITE_P(Processes, DdpConformance, testing::Values(&kProcesses));
INSTANTIATE_TEST_SUITE_P(Processes, FsdpConformance, testing::Values(&kProcesses));
INSTANTIATE_TEST_SUITE_P(Processes, FailureConformance, testing::Values(&kProcesses));
INSTANTIATE_TEST_SUITE_P(Processes, HugeConformance, testing::Values(&kProcesses));

// Of the ranks but one nothing is printed but what went wrong.
class Complaints : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", everyone->rank(),
                 result.file_name() == nullptr ? "" : result.file_name(), result.line_number(),
                 result.message());
  }
};

// One rank tells of the tests, in a file of the engine's name where files are wanted.
void choose_teller(const std::string& engine) {
  if (everyone->rank() == 0) {
    const char* output = std::getenv("GTEST_OUTPUT");
    const std::string folder = output == nullptr ? "" : output;
    if (!folder.empty() && folder.back() == '/') {
      GTEST_FLAG_SET(output, folder + "conformance_" + engine + ".xml");
    }
    return;
  }
  GTEST_FLAG_SET(output, "");
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new Complaints);
}

int run_tests(const std::string& engine) {
  everyone = connect_from_environment({.engine = engine, .seconds = 60});
  everyone->set_deadlines({.step = 60, .setup = 60, .warn = 30});
  std::erase_if(kProcesses.worlds, [](int ranks) { return ranks > everyone->size(); });
  choose_teller(engine);
  const int status = RUN_ALL_TESTS();
  Collectives(everyone->open_channel(Purpose::kControl), everyone->rank(), everyone->size())
      .barrier({.name = "end", .kind = 1});
  everyone->leave();
  everyone.reset();
  return status;
}

}  // namespace
}  // namespace shardrec::comm

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: conformance_rank ENGINE\n");
    return 2;
  }
  try {
    return shardrec::comm::run_tests(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "conformance_rank: %s\n", error.what());
    return 1;
  }
}
