// A cable between two hosts with weather: frames take their time, some are lost, some are overtaken
// by later ones, and on command none gets through. Each host has a TAP device (eth0); a thread of
// this process reads the frames of one and writes them to the other.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "namespaces.h"
#include "process.h"

namespace shardrec::hosts {

struct Weather {
  std::chrono::milliseconds delay{0};  // of each frame, one direction
  double loss = 0;                     // share of the frames
  double late = 0;                     // share of the frames that take up to `lateness` longer
  std::chrono::milliseconds lateness{10};
  uint64_t seed = 1;
};

struct Traffic {
  uint64_t frames = 0;
  uint64_t lost = 0;
  uint64_t overtaken = 0;
  // Of TCP's streams over IPv4, whatever was sent twice counted once. Without the rendezvous':
  // heartbeats are as many as there is time.
  uint64_t payload_bytes = 0;
};

class Relay {
 public:
  Relay(const Host& left, const Host& right, const Weather& weather);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  void cut() noexcept { cut_ = true; }
  // Of both ways, so far.
  Traffic traffic() const;

 private:
  // What one host sends the other.
  struct Direction {
    std::mt19937_64 dice;
    Clock::time_point last{};  // when the latest frame so far is due
  };
  struct Frame {
    size_t to = 0;
    std::vector<std::byte> bytes;
  };

  void run();
  void read_all(size_t from);
  void write_due();
  void count_payload(const std::vector<std::byte>& frame);
  bool happens(Direction& direction, double share) const;

  const Weather weather_;
  std::array<int, 2> devices_{-1, -1};
  int stop_ = -1;
  std::atomic<bool> cut_{false};
  std::array<Direction, 2> directions_;
  std::multimap<Clock::time_point, Frame> under_way_;
  std::map<std::array<std::byte, 12>, std::pair<uint32_t, uint32_t>> streams_;
  mutable std::mutex mutex_;
  Traffic traffic_;
  std::thread thread_;
};

// Why this machine allows none; empty: it does.
std::string refused_relay(const Host& left, const Host& right);

}  // namespace shardrec::hosts
