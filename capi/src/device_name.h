// Devices by the names that the C API's texts have for them: "cpu", "cuda" (of several the first), "cuda:1".
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace shardrec::capi {

constexpr int32_t kMostDevice = 1023;
constexpr const char* kDeviceNames = "\"cpu\", \"cuda\", or \"cuda:0\" to \"cuda:1023\"";

struct DeviceName {
  bool is_cuda = false;
  int32_t number = 0;  // of a CUDA device; 0 where none is named
};

// Empty for a text that names no device.
inline std::optional<DeviceName> read_device_name(std::string_view text) noexcept {
  constexpr std::string_view kCuda = "cuda";
  if (text == "cpu") return DeviceName{};
  if (text == kCuda) return DeviceName{.is_cuda = true};
  if (!text.starts_with(kCuda) || text.size() < kCuda.size() + 2 || text[kCuda.size()] != ':') {
    return std::nullopt;
  }
  const std::string_view digits = text.substr(kCuda.size() + 1);
  int32_t number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0 ||
      number > kMostDevice || digits.front() == '-') {
    return std::nullopt;
  }
  return DeviceName{.is_cuda = true, .number = number};
}

}  // namespace shardrec::capi
