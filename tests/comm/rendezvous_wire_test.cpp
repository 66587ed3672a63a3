// The formats of the rendezvous, without sockets: frames, messages, handshake, tokens, layouts.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>

#include "comm/rendezvous/net/awake_clock.h"
#include "comm/rendezvous/protocol/handshake.h"
#include "comm/rendezvous/protocol/layout.h"
#include "comm/rendezvous/protocol/messages.h"
#include "rendezvous.h"

namespace shardrec::comm::rendezvous {
namespace {

// Frames that come in pieces of so many bytes.
std::vector<std::pair<FrameKind, Bytes>> cut(const Bytes& stream, size_t piece) {
  FrameDecoder decoder;
  std::vector<std::pair<FrameKind, Bytes>> frames;
  for (size_t at = 0; at < stream.size(); at += piece) {
    decoder.append(ConstBytes(stream).subspan(at, std::min(piece, stream.size() - at)));
    while (const auto frame = decoder.next()) {
      frames.emplace_back(frame->kind, Bytes(frame->payload.begin(), frame->payload.end()));
    }
  }
  return frames;
}

TEST(RendezvousWire, FramesAreTheSameHoweverTheyArrive) {
  const Bytes largest(kMostValueBytes, std::byte{7});
  Bytes stream;
  for (const Bytes& frame :
       {framed(Beat{}), framed(Set{.id = 1, .key = "key", .value = largest}),
        framed(Lost{.rank = 3, .how = "how"}),
        framed(Announce{.group_state = ConstBytes(largest).first(9)}), framed(Goodbye{})}) {
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  const auto whole = cut(stream, stream.size());
  ASSERT_EQ(whole.size(), 5U);
  EXPECT_EQ(read<Lost>(whole[2].second).how, "how");
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{4096}}) {
    EXPECT_EQ(cut(stream, piece), whole);
  }
}

TEST(RendezvousWire, ABadHeaderEndsTheStream) {
  const Bytes good = framed(Get{.id = 1, .key = "k"});
  for (const size_t at : {size_t{0}, size_t{2}, size_t{3}, size_t{6}, size_t{7}}) {
    Bytes bad = good;
    bad[at] = std::byte{0xff};
    EXPECT_THROW(cut(bad, bad.size()), core::Error) << at;
  }
  // The longest that is accepted, and a byte more.
  Bytes longest;
  append_frame(longest, FrameKind::kBeat, Bytes(kMostPayloadBytes));
  EXPECT_EQ(cut(longest, longest.size()).size(), 1U);
  Bytes longer;
  append_frame(longer, FrameKind::kBeat, Bytes(kMostPayloadBytes + 1));
  EXPECT_THROW(cut(longer, 8), core::Error) << "before the payload has come";
}

template <class Message>
void expect_exact(const Message& message) {
  const Bytes frame = framed(message);
  const ConstBytes payload = ConstBytes(frame).subspan(8);
  const Message again = read<Message>(payload);
  EXPECT_EQ(framed(again), frame);
}

// A message whose length is fixed, or known from its texts.
template <class Message>
void expect_closed(const Message& message) {
  expect_exact(message);
  Bytes frame = framed(message);
  const ConstBytes payload = ConstBytes(frame).subspan(8);
  for (size_t length = 0; length < payload.size(); ++length) {
    EXPECT_THROW(read<Message>(payload.first(length)), core::Error) << length;
  }
  frame.push_back(std::byte{0});
  EXPECT_THROW(read<Message>(ConstBytes(frame).subspan(8)), core::Error);
}

TEST(RendezvousWire, MessagesAreReadAsTheyWereWrittenAndNoOthers) {
  HostId host;
  host.fill(std::byte{9});
  expect_closed(
      Join{.rank = 3, .size = 4, .host = host, .process = uint64_t{1} << 40, .ranks_on_host = 2});
  expect_closed(Get{.id = 7, .key = "key"});
  expect_closed(Forget{.id = 7});
  expect_closed(Accepted{.silence = milliseconds(4000)});
  expect_closed(Waiting{.joined = 3, .turned_away = 9, .missing = {1, 5, 4095}});
  expect_closed(Formed{.ranks_per_node = 8, .ranks_in_process = 2});
  expect_closed(Refused{.status = SHARDREC_MISMATCH, .rank = -1, .complete = true, .text = "why"});
  expect_closed(Lost{.rank = 1, .how = "how, \xc3\xbc"});
  expect_closed(Left{.rank = 1});
  expect_exact(Set{.id = 1, .key = "k", .value = bytes_of("value")});
  expect_exact(Announce{.group_state = bytes_of("news")});
  expect_exact(Reply{.id = 1, .status = SHARDREC_OUT_OF_MEMORY, .value = bytes_of("")});
  expect_exact(GroupState{.from = 2, .group_state = bytes_of("news")});
}

TEST(RendezvousWire, NumbersOutOfRangeAreRefused) {
  const auto refuses = [](auto message) {
    return error_of([&] { read<decltype(message)>(ConstBytes(framed(message)).subspan(8)); })
        .has_value();
  };
  EXPECT_TRUE(refuses(Join{.rank = -1, .size = 1}));
  EXPECT_TRUE(refuses(Join{.rank = 0, .size = 0}));
  EXPECT_TRUE(refuses(Join{.rank = 0, .size = kMostRanks + 1}));
  EXPECT_TRUE(refuses(Left{.rank = kMostRanks + 1}));
  EXPECT_TRUE(refuses(Waiting{.missing = std::vector<int>(9)}));
  EXPECT_TRUE(refuses(Refused{.status = static_cast<shardrec_status>(12345)}));
  EXPECT_TRUE(refuses(Get{.id = 1, .key = std::string(256, 'k')}));
  EXPECT_TRUE(refuses(Get{.id = 1, .key = std::string("a\0b", 3)}));
  EXPECT_TRUE(refuses(Announce{.group_state = Bytes(kMostGroupStateBytes + 1)}));
}

TEST(RendezvousHandshake, EveryBitOfTheAnswerAndOfTheVerdictCounts) {
  const Key key("a-secret-of-the-tests", "job");
  const Nonce nonce = random_bytes<kNonceBytes>();
  const Challenge challenge = make_challenge("job", nonce);
  const Answer answer = answer_challenge(key, "job", challenge, 5, random_bytes<kNonceBytes>(), "");
  EXPECT_EQ(check_answer(key, nonce, answer), 5);
  EXPECT_FALSE(check_answer(Key("a-secret-of-the-tests", "jot"), nonce, answer));
  EXPECT_FALSE(check_answer(Key("b-secret-of-the-tests", "job"), nonce, answer));
  EXPECT_FALSE(check_answer(key, random_bytes<kNonceBytes>(), answer));
  const Verdict verdict = make_verdict(key, nonce, answer, Code::kWelcome);
  check_verdict(key, challenge, answer, verdict, "");
  for (size_t bit = 0; bit < 8 * kAnswerBytes; ++bit) {
    Answer bad = answer;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_FALSE(check_answer(key, nonce, bad)) << bit;
  }
  for (size_t bit = 0; bit < 8 * kVerdictBytes; ++bit) {
    Verdict bad = verdict;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_THROW(check_verdict(key, challenge, answer, bad, ""), core::Error) << bit;
  }
  // A refusal holds nothing that the key made.
  const Verdict refusal = make_verdict(key, nonce, answer, Code::kWrongSecret);
  EXPECT_TRUE(std::all_of(refusal.end() - kMacBytes, refusal.end(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(RendezvousHandshake, MacsDependOnKeyAndMessageOnly) {
  const Key key("a-secret-of-the-tests", "job");
  EXPECT_EQ(sign(key, bytes_of("m")), sign(Key("a-secret-of-the-tests", "job"), bytes_of("m")));
  EXPECT_NE(sign(key, bytes_of("m")), sign(key, bytes_of("n")));
}

TEST(RendezvousToken, TextAndBack) {
  for (const char* host : {"127.0.0.1", "node-3.example.org", "::1", "fe80::1%eth0"}) {
    const Token token{.host = host, .port = 4711, .job = "j.1", .secret = "a-secret-of-the-tests"};
    const Token again = parse_token(token.text());
    EXPECT_EQ(again.host, token.host);
    EXPECT_EQ(again.port, token.port);
    EXPECT_EQ(again.job, token.job);
    EXPECT_EQ(again.secret, token.secret);
  }
  const Token longest{.host = std::string(255, 'h'),
                      .port = 65535,
                      .job = std::string(kMostJobBytes, 'j'),
                      .secret = std::string(kMostSecretBytes, 's')};
  EXPECT_LE(longest.text().size(), kMostTokenBytes);
  parse_token(longest.text());
}

TEST(RendezvousToken, BadOnesAreRefusedInSentencesThatShowNoSecret) {
  const std::string secret = "0123456789abcdef";
  const std::vector<std::pair<std::string, shardrec_status>> bad = {
      {"", SHARDREC_INVALID_ARGUMENT},
      {"shardrec", SHARDREC_INVALID_ARGUMENT},
      {"shardrec1:", SHARDREC_INVALID_ARGUMENT},
      {"shardrec2:h:1:j:" + secret, SHARDREC_UNSUPPORTED},
      {"shardrecx:h:1:j:" + secret, SHARDREC_INVALID_ARGUMENT},
      {"shardrec1::1:j:" + secret, SHARDREC_INVALID_ARGUMENT},
      {"shardrec1:h:0:j:" + secret, SHARDREC_INVALID_ARGUMENT},
      {"shardrec1:h:65536:j:" + secret, SHARDREC_INVALID_ARGUMENT},
      {"shardrec1:h: 1:j:" + secret, SHARDREC_INVALID_ARGUMENT},
      {"shardrec1:h:1::" + secret, SHARDREC_INVALID_ARGUMENT},
      {"shardrec1:h:1:j:short", SHARDREC_INVALID_ARGUMENT},
      {"shardrec1:h:1:j:" + secret + ":more", SHARDREC_INVALID_ARGUMENT},
      {"shardrec1:h:1:j:" + secret + "\n", SHARDREC_INVALID_ARGUMENT},
      {"shardrec1:h:1:j", SHARDREC_INVALID_ARGUMENT},
      {"shardrec1:[::1:1:j:" + secret, SHARDREC_INVALID_ARGUMENT},
      {"shardrec1:a b:1:j:" + secret, SHARDREC_INVALID_ARGUMENT},
      {"shardrec1:h:1:j:" + std::string(600, 's'), SHARDREC_INVALID_ARGUMENT},
  };
  for (const auto& [text, status] : bad) {
    const auto error = error_of([&] { parse_token(text); });
    ASSERT_TRUE(error) << text;
    EXPECT_EQ(error->status(), status) << text;
    EXPECT_EQ(error->sentence().find(secret), std::string::npos) << error->sentence();
  }
}

TEST(RendezvousToken, RandomNamesDiffer) { EXPECT_NE(random_name(), random_name()); }

std::vector<Join> on_hosts(const std::vector<int>& hosts,
                           const std::vector<uint64_t>& processes = {}) {
  std::vector<Join> ranks;
  for (size_t i = 0; i < hosts.size(); ++i) {
    Join join{.rank = static_cast<int>(i), .size = static_cast<int>(hosts.size())};
    join.host.fill(static_cast<std::byte>(hosts[i]));
    join.process = i < processes.size() ? processes[i] : i;
    ranks.push_back(join);
  }
  return ranks;
}

TEST(RendezvousLayout, NeighboursOnAMachineAreANode) {
  EXPECT_EQ(ranks_per_node(on_hosts({1})), 1);
  EXPECT_EQ(ranks_per_node(on_hosts({1, 1, 1, 1})), 4);
  EXPECT_EQ(ranks_per_node(on_hosts({1, 1, 2, 2})), 2);
  EXPECT_EQ(ranks_per_node(on_hosts({1, 1, 2})), 2) << "the last node may have fewer";
  EXPECT_EQ(ranks_per_node(on_hosts({1, 2, 2})), 1);
  EXPECT_EQ(ranks_per_node(on_hosts({1, 2, 1, 2})), 1) << "not neighbours";
  EXPECT_EQ(ranks_per_node(on_hosts({1, 1, 2, 2, 1, 1})), 1);
  EXPECT_EQ(ranks_per_node(on_hosts({1, 1, 2, 2, 2})), 1);
}

TEST(RendezvousLayout, RanksAreCountedPerProcess) {
  EXPECT_EQ(ranks_in_process(on_hosts({1, 1, 1, 2}, {7, 7, 8, 7})), (std::vector<int>{2, 2, 1, 1}));
}

TEST(RendezvousLayout, ThisProcessIsItself) {
  EXPECT_EQ(this_host(), this_host());
  EXPECT_NE(this_host(), HostId{});
  EXPECT_EQ(this_process() & 0xffffffff, static_cast<uint64_t>(getpid()));
}

TEST(RendezvousClock, OwnAbsenceIsNobodysSilence) {
  const auto start = Clock::now();
  AwakeClock clock(start, milliseconds(100));
  clock.tick(start + milliseconds(50));
  EXPECT_EQ(clock.now(), milliseconds(50));
  clock.tick(start + std::chrono::seconds(60));
  EXPECT_EQ(clock.now(), milliseconds(150));
  clock.tick(start);
  EXPECT_EQ(clock.now(), milliseconds(150)) << "it does not go back";
}

}  // namespace
}  // namespace shardrec::comm::rendezvous
