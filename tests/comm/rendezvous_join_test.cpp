// Who joins, and what all ranks are told where somebody should not have, or does not.
#include "rendezvous.h"

namespace shardrec::comm::rendezvous {
namespace {

constexpr const char* kSecret = "a-secret-of-the-tests";

TEST(Rendezvous, EveryRankGetsTheLayout) {
  for (const int size : {1, 4, 16}) {
    Server server({});
    const auto meetings = meet(parse_token(server.token().text()), size);
    ASSERT_EQ(static_cast<int>(meetings.size()), size);
    for (int rank = 0; rank < size; ++rank) {
      const remote::RankLayout& layout = meetings[static_cast<size_t>(rank)].layout;
      EXPECT_EQ(layout.rank, rank);
      EXPECT_EQ(layout.size, size);
      EXPECT_EQ(layout.ranks_per_node, size) << "one machine";
      EXPECT_EQ(layout.ranks_in_process, size) << "threads of one process";
    }
  }
}

TEST(Rendezvous, TheServerMayStartLaterThanItsRanks) {
  const Token token = Server({.job = "late", .secret = kSecret}).token();
  std::optional<Server> server;
  std::thread late([&] {
    // Late on purpose, and nothing shows that a rank has been refused by then.
    std::this_thread::sleep_for(milliseconds(400));
    server.emplace(ServerOptions{.port = token.port, .job = "late", .secret = kSecret});
  });
  EXPECT_EQ(meet(token, 3).size(), 3U);
  late.join();
}

TEST(Rendezvous, WhereNoServerComesTheDeadlineSaysWhere) {
  const Token token = Server({}).token();
  const auto start = Clock::now();
  const Outcome outcome = try_join(token, 1, 2, {.seconds = 0.3});
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->status(), SHARDREC_TIMEOUT);
  EXPECT_SAYS(*outcome.error, token.address());
  EXPECT_SAYS(*outcome.error, "Connection refused");
  EXPECT_LT(seconds_since(start), 5);
}

TEST(Rendezvous, AnotherSecretIsRefusedAndTheGroupForms) {
  Server server({});
  Token wrong = server.token();
  wrong.secret = kSecret;
  const Outcome outcome = try_join(wrong, 1, 2, {.seconds = 20});
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->status(), SHARDREC_INVALID_ARGUMENT);
  EXPECT_SAYS(*outcome.error, "refused this rank's secret");
  EXPECT_EQ(outcome.error->sentence().find(wrong.secret), std::string::npos);
  EXPECT_EQ(meet(server.token(), 2).size(), 2U);
}

TEST(Rendezvous, TheTokenOfAnotherJobIsNamed) {
  Server server({.job = "red", .secret = kSecret});
  Token other = server.token();
  other.job = "blue";
  const Outcome outcome = try_join(other, 0, 1, {.seconds = 20});
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->status(), SHARDREC_INVALID_ARGUMENT);
  EXPECT_SAYS(*outcome.error, "of another job than \"blue\"");
}

TEST(Rendezvous, ARankThatIsNoneIsRefusedBeforeAnythingIsSent) {
  const Token nowhere = {.host = "127.0.0.1", .port = 1, .job = "j", .secret = kSecret};
  for (const auto& [rank, size] : std::vector<std::pair<int, int>>{
           {-1, 2}, {2, 2}, {0, 0}, {0, -1}, {0, kMostRanks + 1}, {7, 3}}) {
    const Outcome outcome = try_join(nowhere, rank, size, {.seconds = 20});
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->status(), SHARDREC_INVALID_ARGUMENT) << outcome.error->sentence();
  }
}

void expect_all(const std::vector<Outcome>& outcomes, shardrec_status status, int rank,
                const char* text) {
  for (const Outcome& outcome : outcomes) {
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->status(), status) << outcome.error->sentence();
    if (rank >= 0) {
      EXPECT_EQ(outcome.error->parts().rank, rank) << outcome.error->sentence();
    }
    EXPECT_EQ(outcome.error->parts().operation, "join");
    EXPECT_SAYS(*outcome.error, text);
  }
}

TEST(Rendezvous, SizesThatDifferAreAMismatchOnAllRanks) {
  Server server({});
  const auto outcomes = join_all(server.token(), {{0, 3}, {1, 3}, {2, 4}});
  expect_all(outcomes, SHARDREC_MISMATCH, -1, "all ranks must bring the same size");
  // Also for who comes later.
  expect_all(join_all(server.token(), {{2, 3}}), SHARDREC_MISMATCH, -1, "the same size");
}

TEST(Rendezvous, ARankThatJoinsTwiceIsNamedToAll) {
  Server server({});
  const auto outcomes = join_all(server.token(), {{0, 3}, {1, 3}, {1, 3}});
  expect_all(outcomes, SHARDREC_INVALID_STATE, 1, "rank 1 joined twice, from the processes ");
}

TEST(Rendezvous, RanksThatDoNotComeAreNamedAtTheDeadline) {
  Server server({});
  const auto start = Clock::now();
  const auto outcomes = join_all(
      server.token(), {{0, 5, {.seconds = 0.8}}, {2, 5, {.seconds = 30}}, {3, 5, {.seconds = 30}}});
  expect_all(outcomes, SHARDREC_TIMEOUT, -1, "ranks 1, 4 of 5 have not come");
  EXPECT_SAYS(*outcomes[0].error, "rank 0 waited ");
  EXPECT_SAYS(*outcomes[1].error, "rank 0 waits no longer");
  EXPECT_LT(seconds_since(start), 10) << "one rank that gives up ends the wait of all";
}

TEST(Rendezvous, ACompleteGroupTakesNobody) {
  Server server({});
  const auto meetings = meet(server.token(), 2);
  const Outcome outcome = try_join(server.token(), 1, 2, {.seconds = 20});
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->status(), SHARDREC_INVALID_STATE);
  EXPECT_SAYS(*outcome.error, "has had its 2 ranks");
}

TEST(Rendezvous, TheNextGroupAtTheSameAddressIsWaitedForWhereAsked) {
  const ServerOptions options = {.job = "j", .secret = kSecret};
  auto first = std::make_unique<Server>(options);
  const Token token = first->token();
  auto meetings = meet(token, 2);
  std::thread next([&] {
    // Late on purpose, and nothing shows that a rank has been told to wait by then.
    std::this_thread::sleep_for(milliseconds(300));
    meetings.clear();
    first.reset();
    first =
        std::make_unique<Server>(ServerOptions{.port = token.port, .job = "j", .secret = kSecret});
  });
  const JoinOptions patient = {.seconds = 20, .seconds_for_next_group = 20};
  for (const Outcome& outcome : join_all(token, {{0, 2, patient}, {1, 2, patient}})) {
    EXPECT_FALSE(outcome.error) << outcome.error->sentence();
  }
  next.join();
}

TEST(Rendezvous, RanksPerNodeAreWhatTheLauncherSaid) {
  const auto with = [](int ranks_on_host) {
    return JoinOptions{.seconds = 20, .ranks_on_host = ranks_on_host};
  };
  {
    Server server({});
    // The last node has fewer; a rank that was told nothing takes part.
    const auto outcomes = join_all(
        server.token(),
        {{0, 5, with(2)}, {1, 5, with(2)}, {2, 5, with(0)}, {3, 5, with(2)}, {4, 5, with(1)}});
    for (const Outcome& outcome : outcomes) {
      ASSERT_FALSE(outcome.error) << outcome.error->sentence();
      EXPECT_EQ(outcome.meeting->layout.ranks_per_node, 2);
    }
  }
  Server server({});
  const auto outcomes = join_all(
      server.token(), {{0, 4, with(2)}, {1, 4, with(2)}, {2, 4, with(4)}, {3, 4, with(2)}});
  expect_all(outcomes, SHARDREC_MISMATCH, 2, "rank 2 has LOCAL_WORLD_SIZE 4, rank 0 has 2");
}

TEST(Rendezvous, AnyAddressButLoopbackNeedsASecretAndTheWordThatClearTextIsAllowed) {
  const auto refusal = [](const ServerOptions& options) {
    const auto error = error_of([&] { Server server(options); });
    EXPECT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT);
    return *error;
  };
  EXPECT_SAYS(refusal({.address = "0.0.0.0"}), "no secret is set");
  EXPECT_SAYS(refusal({.address = "0.0.0.0", .secret = kSecret}), "clear text");
  EXPECT_SAYS(refusal({.address = "0.0.0.0", .secret = kSecret, .allow_plain_tcp = true}),
              "ADVERTISED");
  EXPECT_SAYS(refusal({.address = "203.0.113.7", .secret = kSecret, .allow_plain_tcp = true}),
              "cannot listen at 203.0.113.7");
  EXPECT_SAYS(refusal({.secret = "short"}), "16 to 128");
  EXPECT_SAYS(refusal({.address = "no such host"}), "is no address");
  Server server({.address = "0.0.0.0",
                 .advertised = "localhost",
                 .secret = kSecret,
                 .allow_plain_tcp = true});
  EXPECT_EQ(server.token().host, "localhost");
  EXPECT_EQ(meet(server.token(), 2).size(), 2U);
}

TEST(Rendezvous, APortThatIsTakenIsSaid) {
  Server server({});
  const auto error = error_of([&] { Server second({.port = server.token().port}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_INVALID_STATE);
  EXPECT_SAYS(*error, "somebody else does");
}

TEST(Rendezvous, IPv6TokensWork) {
  std::optional<Server> server;
  if (error_of([&] { server.emplace(ServerOptions{.address = "::1"}); })) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  const std::string text = server->token().text();
  EXPECT_EQ(text.rfind("shardrec1:[::1]:", 0), 0U) << text;
  EXPECT_EQ(meet(parse_token(text), 2).size(), 2U);
}

}  // namespace
}  // namespace shardrec::comm::rendezvous
