// Which slots of Gloo's connections carry what. Slots below kGreetingSlot are tags of messages.
#pragma once

#include <cstdint>

#include "comm/plugin/transport_plugin.h"

namespace shardrec::comm::gloo_plugin {

constexpr uint64_t kGreetingSlot = uint64_t{1} << SHARDREC_TRANSPORT_TAG_BITS;
constexpr uint64_t kLossCheckSlot = kGreetingSlot + 1;
constexpr uint64_t kReachSlot = kGreetingSlot + 2;
constexpr uint64_t kOfferSlot = kGreetingSlot + 3;
constexpr uint64_t kAnswers = kGreetingSlot << 1;  // plus the tag of the message that is answered

}  // namespace shardrec::comm::gloo_plugin
