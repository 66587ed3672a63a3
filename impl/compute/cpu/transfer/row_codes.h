// TransferOperations::encode_rows and TransferOperations::decode_rows on the CPU: the rows of all blocks are cut into
// tasks of about as many numbers.
#pragma once

#include <span>

#include "compute/cpu/tasks/context.h"
#include "compute/transfer_operations.h"
#include "core/grouped_tasks.h"

namespace shardrec::compute::cpu {

class RowCodes {
 public:
  void run(std::span<const RowEncoding> blocks, const Context& context);
  void run(std::span<const RowDecoding> blocks, const Context& context);

 private:
  template <class Coding>
  void run_tasks(std::span<const Coding> blocks, const Context& context);

  core::GroupedTasks tasks_;  // by block
};

}  // namespace shardrec::compute::cpu
