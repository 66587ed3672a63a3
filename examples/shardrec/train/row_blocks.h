// Blocks of rows that are shuffled together, and their memory, which is used again.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "data/samples.h"

namespace shardrec::cli {

struct RowBlock {
  int64_t number = 0;  // in the pass
  Rows rows;
  std::vector<int64_t> order;  // of the rows, once they are shuffled
  double fraction_before = 0;  // of the pass
  double fraction = 0;         // of the pass, behind this block
  bool complete = false;       // nothing more is read into it
  std::exception_ptr error;    // what reading it ended with
};

// Thread rule: blocks may be let go of by any thread; all are before this object is destroyed.
class RowBlocks {
 public:
  // An empty block with the memory of one that nobody has any more.
  std::shared_ptr<RowBlock> take();

 private:
  void give_back(std::unique_ptr<RowBlock> block) noexcept;

  std::mutex mutex_;
  size_t blocks_ = 0;                            // that exist
  std::vector<std::unique_ptr<RowBlock>> free_;  // with room for all of them
};

}  // namespace shardrec::cli
