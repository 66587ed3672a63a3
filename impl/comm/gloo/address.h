// The address that a rank's connections are bound to.
#pragma once

#include <string>

namespace shardrec::comm::gloo_plugin {

// wanted: a numeric address of this host, the name of a network interface, or nothing: loopback.
// Returns the numeric address. Throws plugin::Failure (UNUSABLE) saying what there is.
std::string resolve_address(const char* wanted);

}  // namespace shardrec::comm::gloo_plugin
