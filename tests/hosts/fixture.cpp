#include "fixture.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

namespace shardrec::hosts {
namespace {

using cli::test::read_file;
using cli::test::run;
using cli::test::Scratch;

std::unique_ptr<Scratch> folder;

// What checkpoints below a folder hold, by name: not what names the run that made them.
std::map<std::string, std::string> contents(const std::string& of) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(of)) {
    if (entry.path().extension() != ".safetensors") continue;
    files[entry.path().lexically_relative(of)] = read_file(entry.path());
  }
  return files;
}

}  // namespace

bool is_built(const std::string& engine) {
  static std::map<std::string, bool> known;
  const auto [built, is_new] = known.try_emplace(engine, false);
  if (is_new) {
    const Finished tried =
        run({"replay", SHARDREC_GOLDEN "/sharded.json", "--case", "s02", "--engine", engine});
    built->second = tried.out.find("which is not installed") == std::string::npos;
  }
  return built->second;
}

void Hosts::SetUpTestSuite() {
  folder = std::make_unique<Scratch>();
  for (const char* rows : {"300", "1500"}) {
    const Finished made = run({"generate", "--rows", rows, "--output", folder->path(rows)});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
}

void Hosts::TearDownTestSuite() { folder.reset(); }

void Hosts::SetUp() {
  if (!refused().empty()) GTEST_SKIP() << refused();
  if (!is_built("gloo")) GTEST_SKIP() << "the plug-in of the engine gloo was not built";
}

void Hosts::make_hosts(int count) {
  for (int number = 1; number <= count; ++number) {
    hosts_.push_back(std::make_unique<Host>(number));
    all_.push_back(hosts_.back().get());
  }
}

void Hosts::make_hosts_on_a_bridge(int count) {
  make_hosts(count);
  bridge_ = std::make_unique<Bridge>(all_);
}

Arguments Hosts::train(const std::string& engine, int ranks, const std::string& sharding,
                       const std::string& checkpoint) const {
  Arguments arguments{"train",
                      "--format",
                      "criteo",
                      "--data",
                      folder->path(short_ ? "300" : "1500"),
                      "--batch",
                      short_ ? "64" : "128",
                      "--dim",
                      short_ ? "4" : "16",
                      "--threads",
                      "1",
                      "--ranks",
                      std::to_string(ranks),
                      "--ranks-per-node",
                      std::to_string(kRanksPerHost),
                      "--json",
                      "--engine",
                      engine,
                      "--sharding",
                      sharding};
  if (!checkpoint.empty()) arguments.insert(arguments.end(), {"--save", checkpoint});
  return arguments;
}

Finished Hosts::expect_bits_of_threads(const std::string& engine, int ranks,
                                       const std::string& sharding) {
  SCOPED_TRACE(sharding);
  const Scratch scratch;
  const Finished here = run(train("local", ranks, sharding, scratch.path("here")));
  EXPECT_EQ(here.exit_code, 0) << here.err;
  Finished there;
  const Arguments arguments = train(engine, ranks, sharding, scratch.path("there"));
  if (engine == "mpi") {
    there = mpirun(all_, ranks, arguments);
    EXPECT_EQ(there.exit_code, 0) << there.err;
  } else {
    const auto finished = Job(all_, ranks, arguments).wait();
    for (const Finished& rank : finished) EXPECT_EQ(rank.exit_code, 0) << rank.err;
    there = finished[0];
  }
  if (HasFailure()) return there;
  for (const char* number : {"first_losses", "test_auc", "test_ne"}) {
    EXPECT_EQ(there.json().at(number), here.json().at(number)) << number;
  }
  const auto expected = contents(scratch.path("here"));
  EXPECT_GE(expected.size(), 4U);
  EXPECT_TRUE(contents(scratch.path("there")) == expected) << "the checkpoints differ";
  return there;
}

std::vector<Finished> Hosts::expect_end_in_time(Job& job) {
  const auto cut = Clock::now();
  auto finished = job.wait(30);
  // The loss is told within 5 s; a busy machine may take a little more to end the processes.
  EXPECT_LT(Clock::now() - cut, std::chrono::seconds(SHARDREC_SANITIZED != 0 ? 15 : 7));
  for (const Finished& rank : finished) {
    EXPECT_EQ(rank.exit_code, 1);
    EXPECT_NE(rank.err.find("SHARDREC_PEER_FAILED"), std::string::npos) << rank.err;
  }
  return finished;
}

}  // namespace shardrec::hosts
