// Messages of rows.cpp and row_list.cpp: one for each rank, side by side in one buffer.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace shardrec::embedding {

struct Messages {
  explicit Messages(int ranks)
      : buffer(std::make_shared<std::vector<std::byte>>()), parts(static_cast<size_t>(ranks)) {}
  std::shared_ptr<std::vector<std::byte>> buffer;
  std::vector<comm::ConstBytes> parts;
};

// CORRUPT_DATA: what `rank` has sent is no message of the operation.
[[noreturn]] void throw_malformed(size_t rank, const char* operation);

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

}  // namespace shardrec::embedding
