#include "compute/cuda/host/present_words.h"

#include <span>
#include <utility>

namespace shardrec::compute::cuda::host {

PresentWords::PresentWords(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), arguments_(stream_), room_(make_memory(stream_)) {}

void PresentWords::clear() {
  lists_.clear();
  ended_ = 0;
  unions_.clear();
  presence_.clear();
}

void PresentWords::add(const uint64_t* bits) { lists_.push_back(bits); }

void PresentWords::end_union(int64_t words) {
  unions_.push_back({.count = std::ssize(lists_) - ended_, .words = words});
  ended_ = std::ssize(lists_);
}

void PresentWords::count(int64_t* rows) {
  send();
  require(table().count_present(stream_->handle(), unions_there_,
                                static_cast<int32_t>(unions_.size()), rows),
          "count the rows of nodes on device ", stream_->device());
}

// A union of one list has the bits of the list.
void PresentWords::place() {
  size_t words = 0;
  for (const shardrec_cuda_present_words& of : unions_) words += static_cast<size_t>(of.words);
  std::byte* const room = room_.resize(words * (sizeof(uint64_t) + sizeof(uint32_t)));
  auto* bits = static_cast<uint64_t*>(static_cast<void*>(room));
  auto* before = static_cast<uint32_t*>(static_cast<void*>(room + words * sizeof(uint64_t)));
  const uint64_t* const* list = lists_.data();
  for (shardrec_cuda_present_words& of : unions_) {
    of.bits = of.count == 1 ? nullptr : bits;
    of.before = before;
    presence_.push_back({.bits = of.count == 1 ? *list : bits, .before = before});
    bits += of.words;
    before += of.words;
    list += of.count;
  }
}

void PresentWords::index() {
  send();
  require(table().count_present(stream_->handle(), unions_there_,
                                static_cast<int32_t>(unions_.size()), nullptr),
          "find rows on device ", stream_->device());
}

void PresentWords::send() {
  arguments_.begin(Arguments::bytes_of<const uint64_t*>(lists_.size()) +
                   Arguments::bytes_of<shardrec_cuda_present_words>(unions_.size()));
  const uint64_t* const* list = arguments_.add(std::span<const uint64_t* const>(lists_));
  for (shardrec_cuda_present_words& of : unions_) {
    of.lists = list;
    list += of.count;
  }
  unions_there_ = arguments_.add(std::span<const shardrec_cuda_present_words>(unions_));
  arguments_.send();
}

}  // namespace shardrec::compute::cuda::host
