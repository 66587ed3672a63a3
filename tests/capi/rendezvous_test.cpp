// shardrec_rendezvous: options, token, and what keeps the server.
#include "comm/rendezvous/client/rendezvous.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "capi_test.h"
#include "objects/rendezvous_object.h"

namespace shardrec::test {
namespace {

using Rendezvous = Owned<shardrec_rendezvous, shardrec_rendezvous_destroy>;

constexpr const char* kSecret = "a-secret-of-the-tests";

std::string token_of(shardrec_rendezvous* rendezvous) {
  char* text = nullptr;
  EXPECT_OK(shardrec_rendezvous_token(rendezvous, &text));
  return take(text);
}

TEST(Rendezvous, TheTokenSaysWhereAndHoldsASecretOfItsOwn) {
  Rendezvous first;
  Rendezvous second;
  ASSERT_OK(shardrec_rendezvous_create(nullptr, first.out()));
  ASSERT_OK(shardrec_rendezvous_create(nullptr, second.out()));
  const auto a = comm::rendezvous::parse_token(token_of(first));
  const auto b = comm::rendezvous::parse_token(token_of(second));
  EXPECT_EQ(a.host, "127.0.0.1");
  EXPECT_NE(a.port, b.port);
  EXPECT_NE(a.secret, b.secret);
  EXPECT_NE(a.job, b.job);
  EXPECT_GE(a.secret.size(), 32U) << "128 bits in hexadecimal digits";
}

TEST(Rendezvous, OptionsAreInTheToken) {
  Options options;
  Rendezvous rendezvous;
  ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_RENDEZVOUS, options.out()));
  EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_ADDRESS, "0.0.0.0"));
  EXPECT_EQ(shardrec_rendezvous_create(options, rendezvous.out()), SHARDREC_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(shardrec_last_error(), "SHARDREC_OPTION_SECRET")) << shardrec_last_error();
  EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_SECRET, kSecret));
  EXPECT_EQ(shardrec_rendezvous_create(options, rendezvous.out()), SHARDREC_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(shardrec_last_error(), "SHARDREC_OPTION_ALLOW_PLAIN_TCP"))
      << shardrec_last_error();
  EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_ALLOW_PLAIN_TCP, 1));
  EXPECT_EQ(shardrec_rendezvous_create(options, rendezvous.out()), SHARDREC_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(shardrec_last_error(), "SHARDREC_OPTION_ADVERTISED_ADDRESS"))
      << shardrec_last_error();
  EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_ADVERTISED_ADDRESS, "localhost"));
  EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_JOB, "job-7"));
  ASSERT_OK(shardrec_rendezvous_create(options, rendezvous.out()));
  const auto token = comm::rendezvous::parse_token(token_of(rendezvous));
  EXPECT_EQ(token.host, "localhost");
  EXPECT_EQ(token.job, "job-7");
  EXPECT_EQ(token.secret, kSecret);
  // Its port is taken.
  Rendezvous second;
  EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_PORT, token.port));
  EXPECT_EQ(shardrec_rendezvous_create(options, second.out()), SHARDREC_INVALID_STATE);
  EXPECT_EQ(second.get(), nullptr);
}

TEST(Rendezvous, ARefusedSecretIsNotShown) {
  Options options;
  ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_RENDEZVOUS, options.out()));
  EXPECT_EQ(shardrec_options_set_text(options, SHARDREC_OPTION_SECRET, "hush hush hush hush"),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_FALSE(contains(shardrec_last_error(), "hush")) << shardrec_last_error();
}

TEST(Rendezvous, MalformedCallsAreRefused) {
  Options of_plans;
  Local other;
  Rendezvous rendezvous;
  ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, of_plans.out()));
  ASSERT_OK(shardrec_local_create(1, 1, nullptr, other.out()));
  ASSERT_OK(shardrec_rendezvous_create(nullptr, rendezvous.out()));
  shardrec_rendezvous* out = nullptr;
  char* text = nullptr;
  EXPECT_EQ(shardrec_rendezvous_create(nullptr, nullptr), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_rendezvous_create(of_plans, &out), SHARDREC_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(shardrec_last_error(), "RENDEZVOUS")) << shardrec_last_error();
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(shardrec_rendezvous_token(rendezvous, nullptr), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_rendezvous_token(nullptr, &text), SHARDREC_INVALID_HANDLE);
  shardrec_rendezvous* closed = rendezvous.get();
  shardrec_rendezvous_destroy(rendezvous.out());
  EXPECT_EQ(rendezvous.get(), nullptr);
  EXPECT_EQ(shardrec_rendezvous_token(closed, &text), SHARDREC_CLOSED);
  EXPECT_EQ(text, nullptr);
}

TEST(Rendezvous, ItsServerIsKeptByWhoUsesItsToken) {
  Rendezvous rendezvous;
  ASSERT_OK(shardrec_rendezvous_create(nullptr, rendezvous.out()));
  const auto token = comm::rendezvous::parse_token(token_of(rendezvous));
  auto server = capi::server_of(token);
  ASSERT_NE(server, nullptr);
  auto unknown = token;
  unknown.job = "another";
  EXPECT_EQ(capi::server_of(unknown), nullptr);
  shardrec_rendezvous_destroy(rendezvous.out());
  EXPECT_EQ(capi::server_of(token), nullptr);
  const auto meeting = comm::rendezvous::join(token, 0, 1, {.seconds = 20});
  EXPECT_EQ(meeting.layout.size, 1);
}

}  // namespace
}  // namespace shardrec::test
