// Bodies that peers may still copy when the channel that they went by has ended: their memory is written again by nobody
// before.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/bodies/shared_memory.h"
#include "comm/ipc/acknowledgements.h"
#include "comm/ipc/links.h"

namespace shardrec::comm::ipc {

class Unread {
 public:
  // What was sent in an exchange: the memory that it lies in, each once, and the peers that it is for.
  struct Bodies {
    uint64_t sequence = 0;
    std::vector<std::shared_ptr<SharedMemory>> from;
    std::vector<size_t> peers;
    std::shared_ptr<Exports::Event> written;
    void clear() noexcept {
      from.clear();
      peers.clear();
      written.reset();
    }
  };

  explicit Unread(std::shared_ptr<Links> links) : links_(std::move(links)) {}

  // Of a channel that ends.
  void add(std::unique_ptr<Acknowledgements> acknowledgements, std::vector<Bodies> bodies);
  // Lets go of what has been copied, before an operation. Blocks for up to a second if something of a peer cannot be
  // opened. Throws as Links::is_over() does.
  void let_go_of_read(const char* operation);

 private:
  struct Ended {
    std::unique_ptr<Acknowledgements> acknowledgements;
    std::vector<Bodies> bodies;
  };
  bool is_read(Ended& ended, const Bodies& bodies, const char* operation) const;

  const std::shared_ptr<Links> links_;
  std::mutex mutex_;
  std::vector<Ended> ended_;
};

}  // namespace shardrec::comm::ipc
