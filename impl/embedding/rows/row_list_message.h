// The messages of row_list.cpp: what they look like, and how they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "embedding/collection.h"
#include "embedding/rows/row_messages.h"
#include "embedding/tables/layout.h"

namespace shardrec::embedding {

// Every message of a request or a write begins with this. Then, for each of the receiver's parts of
// the table that take part, in canonical order: the number of rows, and which, relative to the
// part's first. In a write the rows themselves follow, as many per part.
struct ListHeader {
  int32_t table = 0;
  int32_t what = 0;
  int64_t blocks = 0;  // of the sender's whole list; at least 1
  int64_t ids = 0;     // 0: nothing follows
};

// Reads a message of another rank from its front, checked.
class ListReader {
 public:
  ListReader(const Collection& collection, comm::ConstBytes message, size_t rank,
             const char* operation);

  const ListHeader& header() const { return header_; }

  comm::ConstBytes take(size_t bytes);

  // The rows of a part that the message names; valid until the next call.
  std::span<const int64_t> take_ids(const Part& part);

  void expect_end() const {
    if (!rest_.empty()) throw_malformed(rank_, operation_);
  }

 private:
  comm::ConstBytes rest_;
  size_t rank_;
  const char* operation_;
  ListHeader header_;
  std::vector<int64_t> ids_;
};

}  // namespace shardrec::embedding
