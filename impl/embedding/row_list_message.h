// The messages of row_list.cpp: what they look like, and how they are written and read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "comm/communicator.h"
#include "embedding/collection.h"
#include "embedding/row_values.h"
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

// Appends to a message that is counted first and written then.
class MessageWriter {
 public:
  explicit MessageWriter(Messages& messages) : messages_(messages) {}
  void start() { buffer_ = messages_.buffer->data(); }  // of writing: memory for all is there
  size_t at() const { return at_; }
  void put(const void* data, size_t bytes) {
    if (buffer_ != nullptr && bytes != 0) std::memcpy(buffer_ + at_, data, bytes);
    at_ += bytes;
  }
  // Room that the caller fills; null while counting.
  std::byte* room(size_t bytes) {
    std::byte* to = buffer_ == nullptr ? nullptr : buffer_ + at_;
    at_ += bytes;
    return to;
  }
  void end_message(int rank) {
    if (buffer_ != nullptr) {
      messages_.parts[static_cast<size_t>(rank)] =
          comm::ConstBytes(*messages_.buffer).subspan(begin_, at_ - begin_);
    }
    begin_ = at_;
  }

 private:
  Messages& messages_;
  std::byte* buffer_ = nullptr;
  size_t begin_ = 0;
  size_t at_ = 0;
};

// Composes messages: compose(writer) is run to count the bytes, then to write them.
template <class Compose>
void write_messages(Messages& messages, Compose compose) {
  MessageWriter counted(messages);
  compose(counted);
  messages.buffer->resize(counted.at());
  MessageWriter written(messages);
  written.start();
  compose(written);
}

// Reads a message of another rank from its front, checked.
class ListReader {
 public:
  ListReader(const Collection& collection, comm::ConstBytes message, size_t rank,
             const char* operation);

  const ListHeader& header() const { return header_; }

  comm::ConstBytes take(size_t bytes);

  // The rows of a part that the message names.
  struct Named {
    comm::ConstBytes rows;
    int64_t count() const { return static_cast<int64_t>(rows.size() / sizeof(int64_t)); }
    int64_t row(int64_t i) const {
      int64_t row = 0;
      std::memcpy(&row, rows.data() + static_cast<size_t>(i) * sizeof row, sizeof row);
      return row;
    }
  };
  Named take_ids(const Part& part);

  void expect_end() const {
    if (!rest_.empty()) throw_malformed(rank_, operation_);
  }

 private:
  comm::ConstBytes rest_;
  size_t rank_;
  const char* operation_;
  ListHeader header_;
};

}  // namespace shardrec::embedding
