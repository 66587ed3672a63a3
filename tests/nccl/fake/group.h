// The group of calls that the calling thread has begun.
//
// Thread rule: each thread has its own.
#pragma once

#include <cstdint>

#include "comm/nccl/nccl_api.h"
#include "operation.h"

namespace fake_nccl {

using shardrec::comm::nccl::Comm;

bool is_in_group();
void start_group();
Result end_group();

// What a call adds to the operation that it is part of: to the group's, or to one of its own, which then begins.
struct Part {
  const char* name;  // of the call
  const Send* send = nullptr;
  const Receive* receive = nullptr;
  const Collective* collective = nullptr;
};
Result add_part(Comm handle, int64_t stream, const Part& part);

}  // namespace fake_nccl
