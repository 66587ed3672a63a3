// A connection to a host that is cut off ends within seconds (keepalive.h): Gloo leaves it to TCP.
#pragma once

#include <gloo/transport/pair.h>

namespace shardrec::comm::gloo_plugin {

// Of a pair that is connected. seconds: 0: unlimited. Best effort.
void end_when_silent(gloo::transport::Pair& pair, double seconds) noexcept;

}  // namespace shardrec::comm::gloo_plugin
