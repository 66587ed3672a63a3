// The network interfaces of this machine: which address ranks' connections use.
#pragma once

#include <string>
#include <string_view>

#include "comm/rendezvous/net/socket.h"

namespace shardrec::comm::rendezvous {

// May it be the name of an interface or an address: 1 to 64 printable characters without spaces.
bool is_interface(std::string_view text) noexcept;

// wanted: the name of an interface, of whose addresses the first of IPv4 is taken where there is
// one, or one of this machine's addresses. Addresses of one link only (169.254., fe80:) do not
// count. Throws INVALID_ARGUMENT listing what there is.
Address find_interface(const std::string& wanted);

}  // namespace shardrec::comm::rendezvous
