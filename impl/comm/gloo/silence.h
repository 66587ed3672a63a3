// A connection to a host that is cut off ends within seconds (keepalive.h): Gloo leaves it to TCP.
#pragma once

#include <gloo/transport/pair.h>

namespace shardrec::comm::gloo_plugin {

// Sets the limit on a connected pair. seconds 0 means no limit. Best effort.
void end_when_silent(gloo::transport::Pair& pair, double seconds) noexcept;

}  // namespace shardrec::comm::gloo_plugin
