#include "comm/nccl/device_turn.h"

#include <map>

namespace shardrec::comm::nccl {

std::mutex& turn_of(int32_t device) {
  // Never destroyed: other threads may train while the process ends.
  static std::mutex& mutex = *new std::mutex;
  static auto& turns = *new std::map<int32_t, std::mutex>;
  const std::lock_guard lock(mutex);
  return turns[device];
}

}  // namespace shardrec::comm::nccl
