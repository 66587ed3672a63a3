// Training runs whose messages are recorded, on the CPU or on a device.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string_view>

#include "embedding/scenario.h"
#include "messages/recording.h"

namespace shardrec::test {

// The CPU's back end, with memory that is new at each use, full of a byte: what nobody writes is known by it.
inline constexpr std::string_view kCpuWithGarbage = "CPU with garbage";
inline constexpr std::string_view kCpuWithOtherGarbage = "CPU with other garbage";
// Device 0, whose messages leave from the host's memory, as those between processes do.
inline constexpr std::string_view kDeviceByMessages = "device by messages";

// What each rank of a group of threads posts, its tables on the back end of this name. body(rank, comm) is the
// same on all back ends.
std::deque<Record> record_ranks(int ranks, int ranks_per_node, std::string_view backend,
                                const std::function<void(int rank, shardrec_comm* comm)>& body);

// The same of a training run, from the making of its collection to its end.
std::deque<Record> record_training(const Scenario& scenario, const Deal& deal,
                                   std::string_view backend);

}  // namespace shardrec::test
