// A communicator that keeps a copy of every message that its rank posts, at the time of the post.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace shardrec::test {

// One exchange, as one rank posted it. Its sequence number is its place on the channel.
struct PostedExchange {
  std::string name;
  uint32_t kind = 0;
  uint64_t detail = 0;
  uint64_t size = 0;
  std::vector<std::vector<std::byte>> messages;  // by rank that they go to
};

struct ChannelRecord {
  std::string name;  // "input of the world"
  int rank = 0;      // own, among those of the channel
  std::vector<PostedExchange> posted;
};

// What one rank posts on all of its channels, in the order of their opening. Any thread may open
// channels; one at a time posts on each.
class Record {
 public:
  ChannelRecord& open(std::string name, int rank);
  const std::deque<ChannelRecord>& channels() const { return channels_; }

 private:
  std::mutex mutex_;
  std::deque<ChannelRecord> channels_;  // they stay where they are
};

// inner, with all that is posted on channels of it, and of what is split from it, in the record, which
// outlives both.
std::shared_ptr<comm::Communicator> recording(std::shared_ptr<comm::Communicator> inner,
                                              Record& record);

}  // namespace shardrec::test
