// Which address of this machine ranks' connections use.
#include "comm/rendezvous/net/interfaces.h"

#include <gtest/gtest.h>
#include <ifaddrs.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "comm/engines/engine.h"
#include "rendezvous.h"

namespace shardrec::comm::rendezvous {
namespace {

struct Interface {
  std::string name;
  std::string address;
};

// One that is not loopback, of IPv4.
std::optional<Interface> network() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    const Address address(entry->ifa_addr, sizeof(sockaddr_in));
    if (!address.is_loopback() && !address.host().starts_with("169.254.")) {
      return Interface{entry->ifa_name, address.host()};
    }
  }
  return std::nullopt;
}

// The sockets of this process, as links name them: "socket:[123]".
std::set<std::string> own_sockets() {
  std::set<std::string> sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    sockets.insert(std::filesystem::read_symlink(entry, gone).string());
  }
  return sockets;
}

// Of this process's ends of connections, the addresses as the kernel lists them: "0100007F". Others
// come and go on this machine.
std::vector<std::string> connected() {
  const std::set<std::string> own = own_sockets();
  std::ifstream table("/proc/self/net/tcp");
  std::vector<std::string> addresses;
  std::string line;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    // Number, local and remote address, state, queues, timer, retransmissions, user, time-out, inode.
    const std::vector<std::string> row{std::istream_iterator<std::string>(words), {}};
    if (row.size() > 9 && row[3] == "01" && own.contains("socket:[" + row[9] + "]")) {
      addresses.push_back(row[1].substr(0, 8));
    }
  }
  return addresses;
}

std::string as_the_kernel_writes(const std::string& host) {
  std::string reason;
  const auto found = look_up(host, 0, reason);
  uint32_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(static_cast<const void*>(found.at(0).get())) + 4, 4);
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08X", bits);
  return text.data();
}

int64_t connections_at(const std::string& host) {
  const auto all = connected();
  return std::count(all.begin(), all.end(), as_the_kernel_writes(host));
}

TEST(Interfaces, AreFoundByNameAndByAddress) {
  EXPECT_EQ(find_interface("lo").host(), "127.0.0.1");
  EXPECT_EQ(find_interface("127.0.0.1").host(), "127.0.0.1");
  const auto other = network();
  if (!other) GTEST_SKIP() << "this machine has no network but loopback";
  EXPECT_EQ(find_interface(other->name).host(), other->address);
  EXPECT_EQ(find_interface(other->address).host(), other->address);
}

TEST(Interfaces, TheErrorListsThoseThereAre) {
  for (const char* wanted : {"nosuch0", "203.0.113.77", "2001:db8::77", "l", "127.0.0.1 "}) {
    const auto error = error_of([&] { find_interface(wanted); });
    ASSERT_TRUE(error.has_value()) << wanted;
    EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT);
    EXPECT_SAYS(*error, wanted);
    EXPECT_SAYS(*error, "lo (127.0.0.1)");
    if (const auto other = network()) {
      EXPECT_SAYS(*error, other->address);
    }
  }
}

// Two ranks over Gloo.
struct Ends {
  std::vector<std::shared_ptr<Communicator>> ranks{2};
  std::vector<std::optional<core::Error>> errors{2};
  bool missing() const { return errors[0] && errors[0]->status() == SHARDREC_UNSUPPORTED; }
};

Ends connect_both(const Token& token, const EngineOptions& options) {
  Ends ends;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, at = static_cast<size_t>(rank)] {
      ends.errors[at] = error_of(
          [&] { ends.ranks[at] = connect(options, token, static_cast<int>(at), 2, nullptr); });
    });
  }
  for (auto& thread : threads) thread.join();
  return ends;
}

TEST(Interfaces, OthersThanLoopbackNeedLeave) {
  const auto other = network();
  if (!other) GTEST_SKIP() << "this machine has no network but loopback";
  for (const std::string& wanted : {other->name, other->address}) {
    Server server({});
    const Ends ends =
        connect_both(server.token(), {.engine = "gloo", .seconds = 20, .interface = wanted});
    if (ends.missing()) GTEST_SKIP() << ends.errors[0]->sentence();
    for (const auto& error : ends.errors) {
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT);
      EXPECT_SAYS(*error, other->address);
      EXPECT_SAYS(*error, "SHARDREC_OPTION_ALLOW_PLAIN_TCP");
    }
  }
}

TEST(Interfaces, ConnectionsUseTheOneThatIsChosen) {
  const auto other = network();
  if (!other) GTEST_SKIP() << "this machine has no network but loopback";
  Server server({});
  const int64_t before = connections_at(other->address);
  const Ends ends = connect_both(
      server.token(),
      {.engine = "gloo", .seconds = 20, .interface = other->name, .allow_plain_tcp = true});
  if (ends.missing()) GTEST_SKIP() << ends.errors[0]->sentence();
  ASSERT_FALSE(ends.errors[0].has_value()) << ends.errors[0]->sentence();
  ASSERT_FALSE(ends.errors[1].has_value()) << ends.errors[1]->sentence();
  EXPECT_GE(connections_at(other->address), before + 2) << "both ends of one connection";
}

TEST(Interfaces, WithoutAChoiceItIsTheOneThatReachesTheRendezvous) {
  const auto other = network();
  if (!other) GTEST_SKIP() << "this machine has no network but loopback";
  for (const std::string& host : {std::string("127.0.0.1"), other->address}) {
    Server server({.address = host, .secret = "a-secret-of-the-tests", .allow_plain_tcp = true});
    const int64_t before = connections_at(host);
    const Ends ends = connect_both(server.token(), {.engine = "gloo", .seconds = 20});
    if (ends.missing()) GTEST_SKIP() << ends.errors[0]->sentence();
    ASSERT_FALSE(ends.errors[0].has_value()) << ends.errors[0]->sentence();
    EXPECT_GE(connections_at(host), before + 6)
        << host << ": both ends of one connection, and of two to the rendezvous";
  }
}

}  // namespace
}  // namespace shardrec::comm::rendezvous
