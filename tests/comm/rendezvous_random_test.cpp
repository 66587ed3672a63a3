// A system that gives no random numbers any more: a status, and nobody waits for what cannot come.
#include "rank_process.h"

namespace shardrec::comm::rendezvous {
namespace {

TEST(RendezvousRandom, NoRandomNumbersAreAStatusAndEndAGroupThatHasNotFormed) {
  Process server("no-random", "0", "1");
  const Token token = parse_token(server.line());
  std::optional<core::Error> first;
  // Three ranks: this one, the server's own, and one more.
  std::thread waiting([&] { first = try_join(token, 0, 3, {.seconds = 300}).error; });
  EXPECT_EQ(server.line(), "ok") << "/dev/urandom stands in for getrandom()";
  const std::string status = std::to_string(SHARDREC_IO_ERROR) + " the system gives no random";
  EXPECT_TRUE(server.line().starts_with(status));  // random_name()
  EXPECT_TRUE(server.line().starts_with(status));  // another server
  EXPECT_TRUE(server.line().starts_with(status));  // the rank that asks to be let in
  // One that has random numbers itself, of a server that has none.
  const auto second =
      try_join(token, 2, 3, {.seconds = 300, .belief = {.has_started = true}}).error;
  waiting.join();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->status(), SHARDREC_PEER_FAILED) << first->sentence();
  EXPECT_SAYS(*first, "the system gives no random numbers");
  EXPECT_EQ(first->parts().rank, 0);
  EXPECT_EQ(second->status(), SHARDREC_PEER_FAILED) << second->sentence();
  EXPECT_EQ(server.finish(), 0) << "it was not aborted";
}

}  // namespace
}  // namespace shardrec::comm::rendezvous
