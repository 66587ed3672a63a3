#include "comm/rendezvous/net/interfaces.h"

#include <ifaddrs.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "core/error.h"

namespace shardrec::comm::rendezvous {
namespace {

using core::fail;
using core::sentence;

constexpr size_t kMostBytes = 64;

// Spellings of one IPv6 address differ: both sides are compared as this machine writes them.
std::string as_written(const std::string& address) {
  std::string unknown;
  if (address.find(':') == std::string::npos) return address;
  const auto found = look_up(address, 0, unknown);
  return found.empty() ? address : found.front().host();
}

bool is_link_local(std::string_view address) {
  return address.starts_with("fe80:") || address.starts_with("169.254.");
}

}  // namespace

bool is_interface(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kMostBytes &&
         std::all_of(text.begin(), text.end(), [](char each) { return each > ' ' && each < 127; });
}

Address find_interface(const std::string& wanted) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    fail(SHARDREC_IO_ERROR,
         sentence("the network interfaces of this machine cannot be read: ", reason_of(errno)));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  const std::string wanted_address = as_written(wanted);
  std::optional<Address> found;
  std::string names;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const Address address(entry->ifa_addr,
                          family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    const std::string text = address.host();
    if (is_link_local(text)) continue;
    if (text == wanted_address) return address;
    names += sentence(names.empty() ? "" : ", ", entry->ifa_name, " (", text, ")");
    // IPv4 where there is one: it is what hosts of a cluster most often share.
    const bool better = !found || (found->family() == AF_INET6 && family == AF_INET);
    if (entry->ifa_name == wanted && better) found = address;
  }
  if (found) return *found;
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("this machine has no network interface or address \"", wanted, "\"; ",
                names.empty() ? "it has none" : names, " is accepted"));
}

}  // namespace shardrec::comm::rendezvous
