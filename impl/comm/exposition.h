// The figures of communicators, for Prometheus.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/membership.h"
#include "core/exposition.h"

namespace shardrec::comm {

// The labels of every sample that belongs to a communicator: its number in this process and the rank.
std::string labels_of(const Membership& membership);

// Any thread, while others communicate. The order of the samples is that of the numbers.
void write_communicators(core::Exposition& out,
                         std::vector<std::shared_ptr<const Membership>> memberships);

}  // namespace shardrec::comm
