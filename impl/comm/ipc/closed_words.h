// Words in memory that processes share, one for each rank, in which ranks say that they have closed what they had opened
// of one of them: memory and events of a device, which that one destroys then, and not before. They tell it of ranks
// whose communicator is dead, too, which can send no message.
//
// Thread rule: one thread at a time in a process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace shardrec::comm::ipc {

// By which other processes find the words of this one.
struct WordsHandle {
  int64_t process = 0;
  int64_t file = -1;  // of that process
  uint64_t inode = 0;
};

class ClosedWords {
 public:
  // Those of this process. Throws OUT_OF_MEMORY.
  explicit ClosedWords(size_t ranks);
  // Those of another process. Throws INTERNAL where they are out of reach.
  ClosedWords(const WordsHandle& handle, size_t ranks);
  ~ClosedWords();
  ClosedWords(ClosedWords&& other) noexcept;
  ClosedWords& operator=(ClosedWords&&) = delete;

  WordsHandle handle() const noexcept;
  void set(size_t rank) noexcept { words_[rank].store(1, std::memory_order_release); }
  bool is_set(size_t rank) const noexcept {
    return words_[rank].load(std::memory_order_acquire) != 0;
  }

 private:
  using Word = std::atomic<uint32_t>;
  static_assert(Word::is_always_lock_free);

  void map(size_t ranks);

  int file_;
  size_t bytes_ = 0;
  Word* words_ = nullptr;
};

}  // namespace shardrec::comm::ipc
