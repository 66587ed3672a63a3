// Long messages between processes of one machine. The receiver reads a message in the sender's memory
// with process_vm_readv(2). This copies once, while a TCP connection copies twice and keeps both
// processes busy. Only two short messages go over the connection: the offer, which says where the
// message is, and the answer, which says that it has been read.
//
// A message that was read is valid only if its offer still stands after the read. Each offer has a
// guard word in the sender's memory. The receiver reads it after the message, and the sender clears it
// before it uses the memory for anything else. No two offers have the same guard word, also if a later
// process gets the same process number.
//
// Thread rule: any thread may call GuardWords.
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

// What a process says of itself, so that its peers know whether they can read its memory.
struct Whereabouts {
  std::array<char, 96> machine{};  // and its namespaces of network and processes; empty: unknown
  int64_t process = 0;
  uint64_t guard_at = 0;  // address of a guard word that stands as long as the transport
  uint64_t guard = 0;
  uint64_t least_bytes = UINT64_MAX;  // shorter messages go over the connection
};

struct Offer {
  uint64_t slot = 0;  // of the message
  uint64_t bytes = 0;
  uint64_t data = 0;  // addresses in the sender
  uint64_t guard_at = 0;
  uint64_t guard = 0;
};

class GuardWords {
 public:
  using Word = std::atomic<uint64_t>;

  GuardWords();
  // The word stays where it is until this object ends.
  Word& put();
  void take_away(Word& word) noexcept;

 private:
  std::mutex mutex_;
  std::deque<Word> words_;
  std::vector<Word*> free_;
  uint64_t next_;
};

// The environment variable SHARDREC_GLOO_DIRECT_BYTES: the least number of bytes of a message that is
// read in the sender's memory. 1 MiB if it is not set or empty; UINT64_MAX (no message is read so) if
// it is 0. Throws plugin::Failure if it is malformed.
uint64_t least_bytes_to_read();

// What this process says of itself; least_bytes is least_bytes_to_read().
Whereabouts whereabouts(const GuardWords::Word& guard);
// Whether this process can read the memory of the other one.
bool reaches(const Whereabouts& mine, const Whereabouts& theirs) noexcept;

// Returns false if the sender has ended or has withdrawn its offer: what was read is not valid.
bool read_offer(pid_t process, const Offer& offer, void* to) noexcept;

}  // namespace shardrec::comm::gloo_plugin
