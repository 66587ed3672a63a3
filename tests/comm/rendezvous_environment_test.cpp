// Ranks that meet as their environment says: by an address that all know, a token, or a file.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <thread>

#include "comm/rendezvous/client/token_file.h"
#include "rendezvous.h"
#include "support/asleep.h"
#include "support/eventually.h"

namespace shardrec::comm::rendezvous {
namespace {

class Environment {
 public:
  Environment(std::initializer_list<std::pair<const std::string, std::string>> set) : set_(set) {}
  std::function<const char*(const char*)> reader() {
    return [this](const char* name) -> const char* {
      const auto found = set_.find(name);
      return found == set_.end() ? nullptr : found->second.c_str();
    };
  }
  Environment with(const std::string& name, const std::string& value) const {
    Environment other = *this;
    other.set_[name] = value;
    return other;
  }

 private:
  std::map<std::string, std::string> set_;
};

Environment complete(int rank, int size, const std::string& port) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"LOCAL_WORLD_SIZE", std::to_string(size)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"SHARDREC_PORT", port},
          {"SHARDREC_SECRET", "a-secret-of-the-tests"}};
}

std::string free_port() { return std::to_string(Server({}).token().port); }

TEST(RendezvousEnvironment, RanksMeetAsTheirEnvironmentSaysAgainAndAgain) {
  const std::string port = free_port();
  for (int group = 0; group < 2; ++group) {
    std::vector<std::optional<core::Error>> errors(3);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        Environment environment = complete(rank, 3, port);
        errors[static_cast<size_t>(rank)] = error_of([&] {
          const Meeting meeting = from_environment({.seconds = 20}, environment.reader());
          EXPECT_EQ(meeting.layout.rank, rank);
          EXPECT_EQ(meeting.layout.ranks_per_node, 3);
          EXPECT_EQ(meeting.server != nullptr, rank == 0);
        });
      });
    }
    for (auto& thread : threads) thread.join();
    for (const auto& error : errors) EXPECT_FALSE(error) << error->sentence();
  }
}

TEST(RendezvousEnvironment, ATokenInTheEnvironmentIsEnough) {
  Server server({});
  Environment environment = {
      {"RANK", "0"}, {"WORLD_SIZE", "1"}, {"SHARDREC_TOKEN", server.token().text()}};
  EXPECT_EQ(from_environment({.seconds = 20}, environment.reader()).layout.size, 1);
}

TEST(RendezvousEnvironment, EachVariableMissingOrMalformedHasItsSentence) {
  const Environment good = complete(0, 2, "4711");
  const std::vector<std::array<const char*, 3>> bad = {{
      {"RANK", "", "RANK is not set"},
      {"RANK", "two", "RANK is \"two\"; an integer from 0 to 1 is accepted"},
      {"RANK", "2", "0 to 1"},
      {"RANK", "1.0", "RANK"},
      {"RANK", " 1", "RANK"},
      {"WORLD_SIZE", "", "WORLD_SIZE is not set; it must hold the number of ranks"},
      {"WORLD_SIZE", "0", "1 to 4096"},
      {"WORLD_SIZE", "99999999999", "1 to 4096"},
      {"LOCAL_WORLD_SIZE", "3", "LOCAL_WORLD_SIZE"},
      {"LOCAL_RANK", "2", "LOCAL_RANK"},
      {"MASTER_ADDR", "", "MASTER_ADDR is not set"},
      {"MASTER_ADDR", "a b", "MASTER_ADDR is no address"},
      {"SHARDREC_PORT", "", "SHARDREC_PORT is not set"},
      {"SHARDREC_PORT", "0", "1 to 65535"},
      {"SHARDREC_PORT", "65536", "SHARDREC_PORT is no port"},
      {"SHARDREC_SECRET", "", "SHARDREC_SECRET is not set"},
      {"SHARDREC_SECRET", "short", "16 to 128"},
      {"SHARDREC_JOB", "a:b", "SHARDREC_JOB"},
      {"SHARDREC_TOKEN", "shardrec1:x", "the token"},
      {"SHARDREC_ALLOW_PLAIN_TCP", "yes", "SHARDREC_ALLOW_PLAIN_TCP"},
      {"SHARDREC_BIND", "0.0.0.0", "clear text"},
  }};
  for (const auto& [name, value, text] : bad) {
    Environment environment = good.with(name, value);
    const auto error = error_of([&] { from_environment({.seconds = 20}, environment.reader()); });
    ASSERT_TRUE(error) << name << "=" << value;
    EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT) << error->sentence();
    EXPECT_SAYS(*error, text);
  }
}

TEST(RendezvousEnvironment, AMistakeShowsOnEveryRankAlsoWhereNothingIsReadFromIt) {
  Server server({});
  const Environment with_token = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"SHARDREC_TOKEN", server.token().text()}};
  const std::vector<std::array<const char*, 2>> bad = {{
      {"SHARDREC_ALLOW_PLAIN_TCP", "yes"},
      {"SHARDREC_ALLOW_PLAIN_TCP", "2"},
      {"SHARDREC_BIND", "a b"},
      {"SHARDREC_JOB", "a:b"},
      {"SHARDREC_PORT", "4711x"},
      {"SHARDREC_SECRET", "short"},
  }};
  for (const Environment& good : {with_token, complete(1, 2, "4711")}) {
    for (const auto& [name, value] : bad) {
      Environment environment = good.with(name, value);
      const auto error = error_of([&] { from_environment({.seconds = 20}, environment.reader()); });
      ASSERT_TRUE(error) << name << "=" << value;
      EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT) << error->sentence();
      EXPECT_SAYS(*error, name);
    }
  }
}

// The deadline is far: who waited for it would say TIMEOUT.
TEST(RendezvousEnvironment, ARankZeroThatNobodyFindsIsLostLongBeforeTheDeadline) {
  Environment environment = complete(1, 2, free_port());
  const auto error = error_of([&] {
    from_environment({.seconds = 300, .seconds_until_rank_zero = 0.2}, environment.reader());
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED) << error->sentence();
  EXPECT_EQ(error->parts().rank, 0);
  EXPECT_SAYS(*error, "nothing has listened at 127.0.0.1:");
  EXPECT_SAYS(*error, "SHARDREC_OPTION_RANK_ZERO_SECONDS");
}

// A folder for one test.
class ByFile : public testing::Test {
 protected:
  ByFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "shardrec_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    folder_ = pattern;
    path_ = (folder_ / "meeting").string();
  }
  ~ByFile() override { std::filesystem::remove_all(folder_); }

  Environment environment(int rank, int size) const {
    return {{"RANK", std::to_string(rank)},
            {"WORLD_SIZE", std::to_string(size)},
            {"SHARDREC_TOKEN_FILE", path_}};
  }
  // Of ranks that come one by one, the last one first.
  std::vector<std::optional<core::Error>> meet(int size, double seconds) const {
    std::vector<std::optional<core::Error>> errors(static_cast<size_t>(size));
    std::vector<std::atomic<pid_t>> waiters(static_cast<size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = size; rank-- > 0;) {
      std::atomic<pid_t>& waiter = waiters[static_cast<size_t>(rank)];
      threads.emplace_back([&, rank] {
        waiter = gettid();
        Environment mine = environment(rank, size);
        errors[static_cast<size_t>(rank)] = error_of([&] {
          const Meeting meeting = from_environment({.seconds = seconds}, mine.reader());
          EXPECT_EQ(meeting.layout.rank, rank);
          EXPECT_EQ(meeting.layout.size, size);
        });
      });
      // Rank 0 finds all others.
      EXPECT_TRUE(rank == 0 || test::eventually([&] { return test::is_asleep(waiter); }));
    }
    for (auto& thread : threads) thread.join();
    return errors;
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(ByFile, RanksMeetAndLeaveNothingAgainAndAgain) {
  for (int group = 0; group < 3; ++group) {
    for (const auto& error : meet(3, 20)) EXPECT_FALSE(error) << error->sentence();
    EXPECT_EQ(files(), 0U);
  }
}

TEST_F(ByFile, WhatAGroupThatEndedHasLeftIsNoHindrance) {
  std::ofstream(path_) << Server({}).token().text() << "\n";  // nobody listens there any more
  for (const auto& error : meet(2, 20)) EXPECT_FALSE(error) << error->sentence();
  EXPECT_EQ(files(), 0U);
  Server other({.job = "other"});
  const TokenFile file(path_, other.token());
  Environment mine = environment(1, 2).with("SHARDREC_JOB", "this");
  const auto error = error_of([&] { from_environment({.seconds = 0.3}, mine.reader()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_TIMEOUT);
  EXPECT_SAYS(*error, "of the job \"other\", this one is \"this\"");
}

TEST_F(ByFile, ARankZeroThatHasLeftItsFileBehindIsLostLongBeforeTheDeadline) {
  const Token token = Server({}).token();  // nobody listens there any more
  const TokenFile file(path_, token);
  Environment mine = environment(1, 2);
  const auto error = error_of(
      [&] { from_environment({.seconds = 300, .seconds_until_rank_zero = 0.2}, mine.reader()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED) << error->sentence();
  EXPECT_EQ(error->parts().rank, 0);
  EXPECT_SAYS(*error, "rank 0 is gone");
}

TEST_F(ByFile, ARankZeroThatDoesNotComeIsATimeoutThatNamesTheFile) {
  Environment mine = environment(1, 2);
  const auto error = error_of([&] { from_environment({.seconds = 0.3}, mine.reader()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_TIMEOUT);
  EXPECT_EQ(error->parts().rank, 0);
  EXPECT_SAYS(*error, path_);
  EXPECT_SAYS(*error, "there is no such file");
}

TEST_F(ByFile, TheFileIsItsUsersOnlyAndIsTakenAwayWhoeverFails) {
  Server server({});
  {
    const TokenFile file(path_, server.token());
    struct stat about{};
    ASSERT_EQ(::stat(path_.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777U, 0600U);
    const auto token = read_token_file(path_);
    ASSERT_TRUE(token);
    EXPECT_EQ(token->text(), server.token().text());
  }
  EXPECT_EQ(files(), 0U);
  {
    const TokenFile file(path_, server.token());
    std::ofstream(path_) << "another's";
  }
  EXPECT_EQ(files(), 1U) << "it was not its own any more";
  std::filesystem::remove(path_);
  Environment mine = environment(0, 2);
  const auto error = error_of([&] { from_environment({.seconds = 0.3}, mine.reader()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_TIMEOUT);
  EXPECT_EQ(files(), 0U);
}

TEST_F(ByFile, WhatIsNoTokenOrCannotBeReadIsSaidAtOnce) {
  Environment mine = environment(1, 2);
  std::ofstream(path_) << std::string(5000, 'x');
  auto error = error_of([&] { from_environment({.seconds = 20}, mine.reader()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT);
  EXPECT_SAYS(*error, path_);
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  error = error_of([&] { from_environment({.seconds = 20}, mine.reader()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT) << error->sentence();
  Environment nowhere = environment(0, 2).with("SHARDREC_TOKEN_FILE", path_ + "/no/folder");
  error = error_of([&] { from_environment({.seconds = 20}, nowhere.reader()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_IO_ERROR) << error->sentence();
}

}  // namespace
}  // namespace shardrec::comm::rendezvous
