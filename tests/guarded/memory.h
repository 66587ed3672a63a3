// Memory that nobody can touch but while it is open: PROT_NONE else. A block ends where its pages end,
// and the page behind it is never open.
//
// Thread rule: any thread; open() and close() by one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <set>

#include "compute/buffer.h"

namespace shardrec::test {

class GuardedMemory final : public compute::Memory,
                            public std::enable_shared_from_this<GuardedMemory> {
 public:
  shardrec_device_type device() const noexcept override { return SHARDREC_DEVICE_CPU; }
  std::unique_ptr<compute::MemoryBlock> allocate(size_t bytes) override;
  std::unique_ptr<compute::MemoryBlock> allocate_zeros(size_t bytes) override;

  void open() { protect(true); }
  void close() { protect(false); }

 private:
  class Block;

  void protect(bool open);

  std::mutex mutex_;
  bool open_ = false;
  std::set<Block*> blocks_;
};

}  // namespace shardrec::test
