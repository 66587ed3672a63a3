#include "comm/gloo/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <string_view>

#include "comm/plugin_side.h"

namespace shardrec::comm::gloo_plugin {
namespace {

using plugin::sentence;

bool is_numeric(const char* text) {
  in6_addr any{};
  return inet_pton(AF_INET, text, &any) == 1 || inet_pton(AF_INET6, text, &any) == 1;
}

std::string numeric(const sockaddr* address) {
  char text[NI_MAXHOST] = "";
  const socklen_t length =
      address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const int status = getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return status == 0 ? text : "";
}

bool is_link_local(const std::string& address) {
  return address.starts_with("fe80:") || address.starts_with("169.254.");
}

}  // namespace

std::string resolve_address(const char* wanted) {
  if (wanted == nullptr || *wanted == '\0') return "127.0.0.1";
  if (is_numeric(wanted)) return wanted;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    throw plugin::Failure(
        SHARDREC_TRANSPORT_UNUSABLE, -1,
        sentence("the network interfaces of this host cannot be read: ", strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::string found, names;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const std::string_view name = entry->ifa_name;
    const std::string address = numeric(entry->ifa_addr);
    if (address.empty() || is_link_local(address)) continue;
    names += sentence(names.empty() ? "" : ", ", name, " (", address, ")");
    // IPv4 where there is one: it is what hosts of a cluster most often share.
    if (name == wanted && (found.empty() || family == AF_INET)) found = address;
    if (!found.empty() && name == wanted && family == AF_INET) break;
  }
  if (found.empty()) {
    throw plugin::Failure(SHARDREC_TRANSPORT_UNUSABLE, -1,
                          sentence("this host has no network interface or address \"", wanted,
                                   "\"; it has ", names.empty() ? "none" : names));
  }
  return found;
}

}  // namespace shardrec::comm::gloo_plugin
