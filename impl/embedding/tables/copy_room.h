// Memory for the copies of rows that a snapshot keeps (snapshot.h). Pages cost most where they are touched first, which
// a step would wait for: the snapshot's reader touches beforehand as many as steps take (make_ready).
//
// Thread rule: make_ready() any one thread beside the others; all else one at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "compute/booked_memory.h"
#include "compute/buffer.h"

namespace shardrec::embedding {

class CopyRoom {
 public:
  using Block = std::shared_ptr<compute::Allocation>;

  // Blocks are counted in `booked`.
  explicit CopyRoom(compute::BookedBytes booked) : booked_(std::move(booked)) {}

  // What one owner has of it, given back as a whole.
  struct Share {
    std::vector<Block> blocks;
    std::byte* room = nullptr;  // left in the last one
    size_t left = 0;
    size_t total = 0;
  };
  struct Part {
    std::byte* data;
    size_t bytes;
  };
  // Room in a share for some or all of `bytes`, a multiple of `unit` bytes. Throws OUT_OF_MEMORY.
  Part take(Share& share, size_t bytes, size_t unit);
  // Frees a share; what of it steps can use at once stays ready for them.
  void give_back(Share& share) noexcept;

  // Touches memory for what is taken until the next call, judged by what was taken since the last.
  void make_ready() noexcept;
  // Keeps nothing ready, now and from now on.
  void close() noexcept;

  // A block of its own. Throws OUT_OF_MEMORY.
  Block allocate(size_t bytes);

 private:
  Block take_block();
  std::byte* take_shared(size_t bytes);

  const compute::BookedBytes booked_;
  // Shares begin with parts of a block, and have whole blocks later.
  struct Shared {
    Block block;
    size_t used = 0;
    size_t total = 0;  // of it and those before
  };
  Shared shared_;
  // Bytes that were allocated since the machine was asked for room.
  std::atomic<size_t> unchecked_{0};
  std::mutex mutex_;  // guards the rest
  std::vector<Block> ready_;
  size_t taken_ = 0;   // since make_ready()
  size_t wanted_ = 0;  // ready
  bool closed_ = false;
};

}  // namespace shardrec::embedding
