// Long messages between processes of one machine: the receiver reads them where they lie in the
// sender's memory, by process_vm_readv(2), which copies once where a TCP connection copies twice
// and keeps both ends busy. Only the offer (where the message lies) and the answer (that it has
// been read) go over the connection.
//
// What a receiver has read counts only while the sender stands by it: each offer has a mark, a word
// of the sender's memory that is read behind the message and taken away before its memory is used
// for anything else. A mark is no other offer's, nor another process' that has got the same number.
//
// Thread rule: Marks: any thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

namespace shardrec::comm::gloo_plugin {

// What a process tells its peers, so that they know whether they can read its memory.
struct Whereabouts {
  std::array<char, 96> machine{};  // and its namespaces of network and processes; empty: unknown
  int64_t process = 0;
  uint64_t mark_at = 0;  // address of a mark that stands as long as the transport
  uint64_t mark = 0;
  uint64_t least_bytes = UINT64_MAX;  // messages of fewer bytes are not worth reading directly
};

struct Offer {
  uint64_t slot = 0;  // of the message
  uint64_t bytes = 0;
  uint64_t data = 0;  // addresses in the sender
  uint64_t mark_at = 0;
  uint64_t mark = 0;
};

class Marks {
 public:
  using Word = std::atomic<uint64_t>;

  Marks();
  // The word stays where it is until this object ends.
  Word& put();
  void take_away(Word& word) noexcept;

 private:
  std::mutex mutex_;
  std::deque<Word> words_;
  std::vector<Word*> free_;
  uint64_t next_;
};

// What this process tells: least_bytes is SHARDREC_GLOO_DIRECT_BYTES where that is set.
Whereabouts whereabouts(const Marks::Word& mark);
// Whether this process can read that one's memory.
bool reaches(const Whereabouts& mine, const Whereabouts& theirs) noexcept;

// False: the sender has ended, or does not stand by its offer any more; what was read is of no use.
bool read_offer(pid_t process, const Offer& offer, void* to) noexcept;

}  // namespace shardrec::comm::gloo_plugin
