// Training runs whose messages are recorded, on the CPU or on a device.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "compute/backend.h"
#include "embedding/scenario.h"
#include "messages/recording.h"

namespace shardrec::test {

std::unique_ptr<compute::Backend> cpu(core::Threads& threads, bool peers_in_process);
// The CPU's, with memory that is new at each use, full of a byte: what nobody writes is known by it.
std::unique_ptr<compute::Backend> cpu_with_garbage(core::Threads& threads, bool peers_in_process);
std::unique_ptr<compute::Backend> cpu_with_other_garbage(core::Threads& threads,
                                                         bool peers_in_process);
// Device 0, whose messages leave from the host's memory, as those between processes do.
std::unique_ptr<compute::Backend> device(core::Threads& threads, bool peers_in_process);

// What each rank of a group of threads posts. body(rank, comm) is the same on all back ends.
std::deque<Record> record_ranks(int ranks, int ranks_per_node, compute::BackendFactory factory,
                                const std::function<void(int rank, shardrec_comm* comm)>& body);

// The same of a training run, from the making of its collection to its end.
std::deque<Record> record_training(const Scenario& scenario, const Deal& deal,
                                   compute::BackendFactory factory);

}  // namespace shardrec::test
