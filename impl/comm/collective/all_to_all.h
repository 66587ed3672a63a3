// An all-to-all as an object, in three steps of which only the last one waits for peers:
//   start()        posts a message to each rank
//   has_arrived()  tells whether finish() would wait
//   finish()       waits for the messages of all ranks and shows them
// Other exchanges of the channel may be started in between, by other objects; exchanges of one
// channel are finished in the order of their start. An object may be started again after finish().
// A steady call allocates nothing.
//
// Thread rule: the channel's.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/collective/pipelined_channel.h"
#include "comm/communicator.h"

namespace shardrec::comm {

class AllToAll {
 public:
  // The channel outlives this object.
  AllToAll(PipelinedChannel& channel, int ranks);

  // Posts send[r] for rank r; releases what this object still shows. The memory behind send stays
  // unchanged until reclaim(); keep_alive is held until then.
  void start(const Operation& operation, std::span<const ConstBytes> send,
             std::shared_ptr<const void> keep_alive);
  // As Channel::has_arrived(). Needs start().
  bool has_arrived() const noexcept { return channel_.has_arrived(ticket_); }
  // The messages of all ranks, in rank order; valid until release() or the next start(). Until then
  // another call shows them again.
  std::span<const ConstBytes> finish();
  // This rank no longer reads the messages. Does nothing if there are none.
  void release() noexcept;
  // Waits until the peers have released what this rank has sent last. Does nothing before start().
  void reclaim();

  // After finish(). Throws CORRUPT_DATA unless the message of rank `from` has so many bytes: the
  // channel has compared the number of elements, so another size comes only from a peer that sent
  // what it did not announce.
  void require_size(size_t from, size_t bytes) const;

 private:
  PipelinedChannel& channel_;
  Operation operation_{};
  Ticket ticket_{};
  bool is_started_ = false;  // ever
  bool is_reading_ = false;  // received_
  std::vector<ConstBytes> received_;
};

}  // namespace shardrec::comm
