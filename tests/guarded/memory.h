// Memory that nobody can touch but while it is open: PROT_NONE else. Behind each block lie bytes that
// must be as they were when it is closed: whoever wrote there ends the process.
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
  // Throws OUT_OF_MEMORY.
  GuardedMemory();
  ~GuardedMemory() override;

  shardrec_device_type device() const noexcept override { return SHARDREC_DEVICE_CPU; }
  std::unique_ptr<compute::Allocation> allocate(size_t bytes) override;
  std::unique_ptr<compute::Allocation> allocate_zeros(size_t bytes) override;

  void open() { protect(true); }
  void close() { protect(false); }

 private:
  class Block;

  // One call of the system for all that was ever handed out: their number is what takes the time.
  void protect(bool open);
  void protect_from(size_t begin, bool open) noexcept;

  std::mutex mutex_;
  void* mapped_ = nullptr;
  std::byte* first_ = nullptr;  // addresses, most of which stand for no memory
  size_t used_ = 0;             // handed out, and not again
  bool open_ = false;
  std::set<Block*> blocks_;
};

}  // namespace shardrec::test
