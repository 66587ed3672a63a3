#include "relay.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "job.h"

namespace shardrec::hosts {
namespace {

constexpr size_t kMostFrameBytes = 2048;
constexpr size_t kMostUnderWay = 20000;  // frames; more are lost, as they are in a switch

// A device belongs to the network of the thread that opens it.
int open_device(const Host& host) {
  int device = -1;
  int error = 0;
  std::thread([&] {
    ifreq request{};
    std::strncpy(request.ifr_name, "eth0", sizeof request.ifr_name - 1);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (host.enter_network()) device = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (device >= 0 && ioctl(device, TUNSETIFF, &request) != 0) {
      error = errno;
      close(std::exchange(device, -1));
    } else {
      error = errno;
    }
  }).join();
  if (device < 0) {
    throw std::runtime_error(std::string("a TAP device was refused: ") + strerror(error));
  }
  host.ip("addr add " + host.address() + "/24 dev eth0; link set eth0 up");
  return device;
}

uint32_t number_at(std::span<const std::byte> bytes, size_t at, size_t size) {
  uint32_t number = 0;
  for (size_t i = at; i < at + size; ++i)
    number = number << 8 | std::to_integer<uint32_t>(bytes[i]);
  return number;
}

struct Segment {
  std::array<std::byte, 12> stream{};  // addresses and ports
  uint32_t sequence = 0;               // of the first byte of payload
  uint32_t bytes = 0;
  bool first = false;
};

// Of a frame that carries IPv4 and TCP.
std::optional<Segment> read_segment(std::span<const std::byte> frame) {
  constexpr size_t kIp = 14;
  if (frame.size() < kIp + 40 || number_at(frame, 12, 2) != 0x0800) return std::nullopt;
  if (std::to_integer<int>(frame[kIp + 9]) != 6) return std::nullopt;
  const size_t tcp = kIp + (std::to_integer<size_t>(frame[kIp]) & 15) * 4;
  const size_t end = kIp + number_at(frame, kIp + 2, 2);
  if (tcp + 20 > frame.size() || end > frame.size()) return std::nullopt;
  const size_t payload = tcp + (std::to_integer<size_t>(frame[tcp + 12]) >> 4) * 4;
  const uint32_t flags = std::to_integer<uint32_t>(frame[tcp + 13]);
  if (payload > end || number_at(frame, tcp, 2) == kRendezvousPort ||
      number_at(frame, tcp + 2, 2) == kRendezvousPort) {
    return std::nullopt;
  }
  Segment segment;
  std::copy_n(frame.begin() + kIp + 12, 8, segment.stream.begin());
  std::copy_n(frame.begin() + static_cast<std::ptrdiff_t>(tcp), 4, segment.stream.begin() + 8);
  segment.first = (flags & 2) != 0;
  segment.sequence = number_at(frame, tcp + 4, 4) + (segment.first ? 1 : 0);
  segment.bytes = static_cast<uint32_t>(end - payload);
  return segment;
}

}  // namespace

Relay::Relay(const Host& left, const Host& right, const Weather& weather) : weather_(weather) {
  for (size_t side = 0; side < 2; ++side) directions_[side].dice.seed(weather.seed + side);
  stop_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  try {
    devices_ = {open_device(left), -1};
    devices_[1] = open_device(right);
  } catch (...) {
    for (const int descriptor : {devices_[0], stop_}) close(descriptor);
    throw;
  }
  thread_ = std::thread([this] { run(); });
}

Relay::~Relay() {
  eventfd_write(stop_, 1);
  thread_.join();
  for (const int descriptor : {devices_[0], devices_[1], stop_}) close(descriptor);
}

std::string refused_relay(const Host& left, const Host& right) {
  try {
    const Relay tried(left, right, {});
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

Traffic Relay::traffic() const {
  const std::lock_guard lock(mutex_);
  return traffic_;
}

void Relay::run() {
  for (;;) {
    std::array<pollfd, 3> waited{{{.fd = devices_[0], .events = POLLIN, .revents = 0},
                                  {.fd = devices_[1], .events = POLLIN, .revents = 0},
                                  {.fd = stop_, .events = POLLIN, .revents = 0}}};
    timespec time{.tv_sec = 1, .tv_nsec = 0};
    if (!under_way_.empty()) {
      const auto left = std::chrono::nanoseconds(under_way_.begin()->first - Clock::now()).count();
      time = {.tv_sec = 0, .tv_nsec = std::clamp<int64_t>(left, 0, 999'999'999)};
    }
    ppoll(waited.data(), waited.size(), &time, nullptr);
    if (waited[2].revents != 0) return;
    for (size_t side = 0; side < 2; ++side) {
      if (waited[side].revents != 0) read_all(side);
    }
    write_due();
  }
}

bool Relay::happens(Direction& direction, double share) const {
  return static_cast<double>(direction.dice() >> 11) * 0x1p-53 < share;
}

void Relay::read_all(size_t from) {
  Direction& direction = directions_[from];
  for (int i = 0; i < 64; ++i) {
    std::vector<std::byte> bytes(kMostFrameBytes);
    const ssize_t size = read(devices_[from], bytes.data(), bytes.size());
    if (size <= 0) return;
    bytes.resize(static_cast<size_t>(size));
    const bool is_lost = happens(direction, weather_.loss);
    const bool is_late = happens(direction, weather_.late);
    auto due = Clock::now() + weather_.delay;
    if (is_late) due += weather_.lateness * static_cast<int>(direction.dice() % 100 + 1) / 100;
    const std::lock_guard lock(mutex_);
    ++traffic_.frames;
    if (is_lost || cut_ || under_way_.size() >= kMostUnderWay) {
      ++traffic_.lost;
      continue;
    }
    count_payload(bytes);
    if (due < direction.last) ++traffic_.overtaken;
    direction.last = std::max(direction.last, due);
    under_way_.emplace(due, Frame{1 - from, std::move(bytes)});
  }
}

void Relay::write_due() {
  while (!under_way_.empty() && under_way_.begin()->first <= Clock::now()) {
    const Frame frame = std::move(under_way_.begin()->second);
    under_way_.erase(under_way_.begin());
    // A partition also takes what is under way. A device that takes nothing loses it.
    if (cut_ || write(devices_[frame.to], frame.bytes.data(), frame.bytes.size()) < 0) {
      const std::lock_guard lock(mutex_);
      ++traffic_.lost;
    }
  }
}

void Relay::count_payload(const std::vector<std::byte>& frame) {
  const auto segment = read_segment(frame);
  if (!segment || (segment->bytes == 0 && !segment->first)) return;  // ends have numbers too
  const auto [stream, is_new] =
      streams_.try_emplace(segment->stream, segment->sequence, segment->sequence);
  auto& [begin, end] = stream->second;
  if (segment->first && !is_new) {
    begin = end = segment->sequence;  // the ports are used again
  }
  const uint32_t reached = segment->sequence + segment->bytes;
  if (const auto more = static_cast<int32_t>(reached - end); more > 0) {
    traffic_.payload_bytes += static_cast<uint32_t>(more);
    end = reached;
  }
}

}  // namespace shardrec::hosts
