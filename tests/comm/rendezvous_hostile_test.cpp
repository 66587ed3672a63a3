// What unauthenticated connections, and ranks gone wrong, can do to a group: nothing but cost it a little time.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "comm/rendezvous/protocol/handshake.h"
#include "comm/rendezvous/protocol/messages.h"
#include "rendezvous.h"
#include "support/bytes_in_use.h"
#include "support/eventually.h"

namespace shardrec::comm::rendezvous {
namespace {

Address address_of(const Token& token) {
  std::string why;
  return look_up(token.host, token.port, why).front();
}

// A connection in the test's hands.
class RawConnection {
 public:
  explicit RawConnection(const Token& token) : socket_(Socket::connect(address_of(token))) {
    wait(POLLOUT, 10);
  }
  explicit RawConnection(Socket socket) : socket_(std::move(socket)) {}

  void send(ConstBytes bytes) {
    while (!bytes.empty()) {
      const Io io = socket_.write(bytes);
      if (io.outcome == Io::Outcome::kEnded) return;
      bytes = bytes.subspan(io.bytes);
      if (!bytes.empty()) wait(POLLOUT, 10);
    }
  }
  void send(const std::string& text) { send(std::as_bytes(std::span(text))); }
  template <size_t kCount>
  std::array<std::byte, kCount> receive() {
    std::array<std::byte, kCount> bytes{};
    for (size_t got = 0; got < kCount;) {
      const Io io = socket_.read(std::span(bytes).subspan(got));
      if (io.outcome == Io::Outcome::kEnded) break;
      got += io.bytes;
      if (io.bytes == 0 && !wait(POLLIN, 10)) break;
    }
    return bytes;
  }
  // The other end closes it within so many seconds.
  bool is_closed_within(double seconds) {
    std::array<std::byte, 4096> bytes{};
    const auto deadline = in(seconds);
    while (Clock::now() < deadline) {
      if (socket_.read(bytes).outcome == Io::Outcome::kEnded) return true;
      wait(POLLIN, 0.05);
    }
    return false;
  }
  const Socket& socket() const { return socket_; }

 private:
  bool wait(short events, double seconds) const {
    pollfd waited{.fd = socket_.descriptor(), .events = events, .revents = 0};
    return poll(&waited, 1, static_cast<int>(seconds * 1000)) > 0;
  }
  Socket socket_;
};

// The handshake of a rank, by hand; keeps what was sent.
struct ByHand {
  ByHand(const Token& token, int rank) : connection(token) {
    const Key key(token.secret, token.job);
    const auto challenge = connection.receive<kChallengeBytes>();
    answer = answer_challenge(key, token.job, challenge, rank, random_bytes<kNonceBytes>(), "here");
    connection.send(answer);
    const auto verdict = connection.receive<kVerdictBytes>();
    check_verdict(key, challenge, answer, verdict, "here");
    for (const ConstBytes bytes :
         {ConstBytes(challenge), ConstBytes(answer), ConstBytes(verdict)}) {
      for (const std::byte each : bytes) travelled.push_back(static_cast<char>(each));
    }
  }
  RawConnection connection;
  Answer answer;
  std::string travelled{};  // the whole handshake
};

TEST(RendezvousHostile, RecordedBytesProveNothing) {
  Server server({});
  std::optional<ByHand> rank(std::in_place, server.token(), 1);
  const Bytes join = framed(Join{.rank = 1, .size = 2});
  rank->connection.send(join);
  ASSERT_TRUE(test::eventually([&] { return server.loop().joined() == 1; }));
  for (int i = 0; i < 3; ++i) {
    RawConnection replay(server.token());
    const auto challenge = replay.receive<kChallengeBytes>();
    replay.send(rank->answer);
    replay.send(join);
    const auto verdict = replay.receive<kVerdictBytes>();
    EXPECT_THROW(check_verdict(Key(server.token().secret, server.token().job), challenge,
                               rank->answer, verdict, "here"),
                 core::Error);
    EXPECT_TRUE(replay.is_closed_within(5));
  }
  EXPECT_EQ(server.loop().joined(), 1) << "a replayed joining would have ended the group";
  // The group forms with the rank that did join.
  const Outcome other = try_join(server.token(), 0, 2, {.seconds = 20});
  EXPECT_FALSE(other.error) << other.error->sentence();
  EXPECT_GE(server.loop().turned_away(), 3U);
}

TEST(RendezvousHostile, TheSecretDoesNotTravel) {
  Server server({});
  const ByHand rank(server.token(), 1);
  EXPECT_GE(rank.travelled.size(), kChallengeBytes + kVerdictBytes);
  EXPECT_GE(server.token().secret.size(), 16U);
  // Not even a part of it that would be worth a guess.
  for (size_t at = 0; at + 4 <= server.token().secret.size(); ++at) {
    EXPECT_EQ(rank.travelled.find(server.token().secret.substr(at, 4)), std::string::npos) << at;
  }
}

TEST(RendezvousHostile, ARankCannotSpeakForAnother) {
  Server server({});
  ByHand rank(server.token(), 1);
  rank.connection.send(framed(Join{.rank = 0, .size = 2}));
  EXPECT_TRUE(rank.connection.is_closed_within(5));
  EXPECT_EQ(meet(server.token(), 2).size(), 2U);
}

TEST(RendezvousHostile, NoiseDoesNotDisturbAGroupThatFormsOrLives) {
  Server server({});
  std::mt19937 random(20261122);
  const auto make_noise = [&](int connections) {
    for (int i = 0; i < connections; ++i) {
      RawConnection connection(server.token());
      std::string noise = i % 3 == 0 ? "GET / HTTP/1.1\r\nHost: x\r\n\r\n" : "";
      if (i % 3 == 1) noise.assign(8, '\xff');
      while (i % 3 == 2 && noise.size() < random() % 3000) noise += static_cast<char>(random());
      connection.send(noise);
    }
  };
  make_noise(200);
  auto meetings = meet(server.token(), 2);
  ASSERT_EQ(meetings.size(), 2U);
  Ear ear;
  meetings[1].client->listen(ear.listener());
  make_noise(200);
  meetings[0].client->announce(std::as_bytes(std::span("hello", 5)));
  EXPECT_EQ(ear.group_states(1).size(), 1U);
  EXPECT_TRUE(ear.losses(1, 0.2).empty());
}

TEST(RendezvousHostile, WhoSpeaksSlowlyIsSentAwayAndKeepsNobodyOut) {
  Server server({.handshake_time = milliseconds(300)});
  std::vector<RawConnection> slow;
  for (int i = 0; i < 300; ++i) slow.emplace_back(server.token());
  const auto start = Clock::now();
  std::thread drip([&] {
    for (int i = 0; i < 20; ++i) {
      for (RawConnection& one : slow)
        static_cast<void>(one.socket().write(std::array{std::byte{'s'}}));
      // Slow on purpose: never silent for long, and not done when the time is up.
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  EXPECT_EQ(meet(server.token(), 3).size(), 3U);
  EXPECT_LE(server.loop().unauthenticated(), kMostUnauthenticated);
  drip.join();
  for (RawConnection& one : slow) EXPECT_TRUE(one.is_closed_within(5));
  EXPECT_LT(seconds_since(start), 10);
}

TEST(RendezvousHostile, GiantLengthsEndTheConnectionThatClaimsThem) {
  Server server({});
  // Without the secret, they are not even looked at.
  RawConnection connection(server.token());
  connection.send(std::string(4096, '\xff'));
  EXPECT_TRUE(connection.is_closed_within(5));
  // From a rank gone wrong: it is lost, the others go on.
  ByHand wrong(server.token(), 2);
  wrong.connection.send(framed(Join{.rank = 2, .size = 3}));
  auto outcomes = join_all(server.token(), {{0, 3}, {1, 3}});
  Ear ear;
  ASSERT_FALSE(outcomes[0].error || outcomes[1].error);
  outcomes[0].meeting->client->listen(ear.listener());
  Bytes giant;
  Writer writer(giant);
  writer.u8(kWireVersion);
  writer.u8(static_cast<uint8_t>(FrameKind::kSet));
  writer.u16(0);
  writer.u32(0xffffffff);
  wrong.connection.send(giant);
  const auto losses = ear.losses(1);
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses[0].rank, 2);
  EXPECT_NE(losses[0].how.find("claims 4294967295 bytes"), std::string::npos) << losses[0].how;
  outcomes[1].meeting->client->set("k", {}, in(20));
  outcomes[1].meeting->client->announce(std::as_bytes(std::span("hello", 5)));
  EXPECT_EQ(ear.group_states(1).size(), 1U);
}

TEST(RendezvousHostile, ARankThatNeverReadsIsLostAndBounded) {
  Server server(
      {.silence_seconds = 5});  // not so short that a busy machine makes the server silent
  ByHand stopped_receiving(server.token(), 1);
  stopped_receiving.connection.send(framed(Join{.rank = 1, .size = 2}));
  auto outcome = try_join(server.token(), 0, 2, {.seconds = 20});
  ASSERT_FALSE(outcome.error);
  Ear ear;
  outcome.meeting->client->listen(ear.listener());
  outcome.meeting->client->set("k", Bytes(kMostValueBytes), in(20));
  // It asks for 1.3 GB, and beats.
  std::atomic<bool> over{false};
  std::thread asking([&] {
    const Bytes get = framed(Get{.id = 1, .key = "k"});
    Bytes asked;
    for (int i = 0; i < 20000; ++i) asked.insert(asked.end(), get.begin(), get.end());
    ConstBytes left(asked);
    while (!over) {
      const Io io = stopped_receiving.connection.socket().write(left);
      left = left.subspan(io.bytes);
      if (left.empty()) left = asked;
      // A pace at which the server can hear it.
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  const auto losses = ear.losses(1, 20);
  over = true;
  asking.join();
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses[0].rank, 1);
}

int64_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST(RendezvousHostile, TenThousandConnectionsInWavesCostLittleAndTheGroupForms) {
  constexpr int kWaves = 40;
  constexpr int kEach = 250;
  Server server({});
  const int64_t descriptors = open_descriptors();
  const int64_t bytes = test::bytes_in_use();
  const auto start = Clock::now();
  std::vector<Meeting> meetings;
  std::thread group;
  size_t most = 0;
  for (int wave = 0; wave < kWaves; ++wave) {
    if (wave == kWaves / 2) group = std::thread([&] { meetings = meet(server.token(), 4); });
    std::vector<RawConnection> connections;
    for (int i = 0; i < kEach; ++i) {
      connections.emplace_back(server.token());
      if (i % 4 == 1) connections.back().send(std::string(kAnswerBytes, 'x'));
      if (i % 4 == 2) connections.back().send("x");
    }
    most = std::max(most, server.loop().unauthenticated());
  }
  group.join();
  EXPECT_EQ(meetings.size(), 4U);
  EXPECT_LE(most, kMostUnauthenticated);
  EXPECT_LT(seconds_since(start), 60);
  meetings.clear();
  EXPECT_TRUE(test::eventually([&] { return open_descriptors() == descriptors; }))
      << open_descriptors() - descriptors << " more";
  // 256 bytes that each connection leaves are 2.5 MB.
  EXPECT_LT(test::bytes_in_use() - bytes, int64_t{2} << 20);
}

// Lets this process have descriptors below `count` only.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t count) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit low = {.rlim_cur = count, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  }
  ~FewDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(RendezvousHostile, AProcessWithoutDescriptorsLeftRecovers) {
  Server server({});
  std::optional<FewDescriptors> low(120);
  std::vector<RawConnection> connections;
  std::vector<int> taken;
  for (int i = 0; i < 10; ++i) connections.emplace_back(server.token());
  // Else the server may take the descriptor that is left below, for one of these.
  ASSERT_TRUE(
      test::eventually([&] { return server.loop().unauthenticated() == connections.size(); }));
  for (int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0;
       fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) {
    taken.push_back(fd);
  }
  // The last descriptor goes to a connection that the server has no descriptor for.
  close(taken.back());
  taken.pop_back();
  connections.emplace_back(server.token());
  rusage begin{};
  rusage end{};
  getrusage(RUSAGE_SELF, &begin);
  // The time in which it would spin.
  std::this_thread::sleep_for(milliseconds(500));
  getrusage(RUSAGE_SELF, &end);
  for (const int fd : taken) close(fd);
  low.reset();
  const auto seconds = [](const rusage& use) {
    return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
  };
  EXPECT_LT(seconds(end) - seconds(begin), 0.25) << "it does not spin";
  EXPECT_EQ(meet(server.token(), 2).size(), 2U);
}

// A server of the test's, for one connection.
class Impostor {
 public:
  explicit Impostor(std::function<void(RawConnection&)> play) {
    const Token here{.host = "127.0.0.1", .port = 0};
    listener_ = Socket::listen(address_of(here));
    thread_ = std::thread([this, play = std::move(play)] {
      pollfd waited{.fd = listener_.descriptor(), .events = POLLIN, .revents = 0};
      poll(&waited, 1, 10000);
      RawConnection connection(
          Socket(accept4(listener_.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)));
      play(connection);
      connection.is_closed_within(10);
    });
  }
  ~Impostor() { thread_.join(); }
  Token token() const {
    return {.host = "127.0.0.1",
            .port = listener_.local().port(),
            .job = "job",
            .secret = "a-secret-of-the-tests"};
  }

 private:
  Socket listener_;
  std::thread thread_;
};

core::Error deceive(std::function<void(RawConnection&)> play, double seconds = 20) {
  Impostor impostor(std::move(play));
  const Outcome outcome = try_join(impostor.token(), 0, 1, {.seconds = seconds});
  EXPECT_TRUE(outcome.error);
  return outcome.error.value_or(core::Error(SHARDREC_OK, ""));
}

TEST(RendezvousHostile, ARankBelievesNoServerThatDoesNotKnowTheSecret) {
  const core::Error other = deceive([](RawConnection& rank) {
    rank.send("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 and a good deal of what follows");
  });
  EXPECT_EQ(other.status(), SHARDREC_INVALID_ARGUMENT);
  EXPECT_SAYS(other, "is no rendezvous of shardrec");

  const core::Error silent = deceive([](RawConnection&) {}, 0.5);
  EXPECT_EQ(silent.status(), SHARDREC_TIMEOUT);
  EXPECT_SAYS(silent, "does not speak as a rendezvous does");

  const core::Error unknowing = deceive([](RawConnection& rank) {
    const auto nonce = random_bytes<kNonceBytes>();
    rank.send(make_challenge("job", nonce));
    const auto answer = rank.receive<kAnswerBytes>();
    rank.send(make_verdict(Key("another-secret-than-it", "job"), nonce, answer, Code::kWelcome));
    rank.send(std::string(100000, '\xff'));
  });
  EXPECT_EQ(unknowing.status(), SHARDREC_INVALID_ARGUMENT);
  EXPECT_SAYS(unknowing, "does not know this rank's secret");

  const core::Error later = deceive([](RawConnection& rank) {
    Challenge challenge = make_challenge("job", {});
    challenge[8] = std::byte{9};
    rank.send(challenge);
  });
  EXPECT_EQ(later.status(), SHARDREC_UNSUPPORTED);
  EXPECT_SAYS(later, "speaks version 9");
}

TEST(RendezvousHostile, AServerGoneWrongIsAnErrorOfBoundedSize) {
  const core::Error error = deceive([](RawConnection& rank) {
    const auto nonce = random_bytes<kNonceBytes>();
    const Key key("a-secret-of-the-tests", "job");
    rank.send(make_challenge("job", nonce));
    const auto answer = rank.receive<kAnswerBytes>();
    rank.send(make_verdict(key, nonce, answer, Code::kWelcome));
    rank.send(std::string(1000, '\xff'));
  });
  EXPECT_EQ(error.status(), SHARDREC_PEER_FAILED);
  EXPECT_SAYS(error, "is of version 255");
}

}  // namespace
}  // namespace shardrec::comm::rendezvous
