// Where the sharding groups of a mesh share optimizer states, each updates its rows of every box: the new weights of these
// rows go to the ranks of the other groups that have the box, before anybody looks them up.
//
// A message is the same for all of them: for each part for updates of the sender's, in their order, how many rows; their
// numbers, counted from the first row of the box; behind this head their weights, as tables have them.
//
// Thread rule: as the collection's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/bodies/carrier.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "embedding/exchange/step_context.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/shard.h"
#include "embedding/tables/snapshot.h"

namespace shardrec::embedding {

class ReplicaWeights {
 public:
  explicit ReplicaWeights(const StepContext& context);

  // Does any group share states with others? The calls below are for these.
  bool needed() const { return needed_; }
  // Before rows of this rank's are updated: what reads a snapshot keeps them as they are. rows: by shard.
  void keep(std::span<const std::span<const int64_t>> rows, const RowChange& change);
  // Behind the update: writes the messages, and notes the rows as changed.
  void pack(std::span<const std::span<const int64_t>> rows, comm::MessageBuffer& buffer);
  // For the channel, by rank.
  std::span<const comm::ConstBytes> messages() const { return messages_; }
  // Writes the rows of the others. Throws CORRUPT_DATA, naming the rank; nothing of its rows was written then.
  void take(std::span<const comm::ConstBytes> messages);
  // Rows that take() has written the last time.
  int64_t taken() const { return taken_; }

 private:
  // A part for updates, of this rank's or of a rank with the same boxes.
  struct Source {
    int32_t part = 0;
    size_t shard = 0;         // of this rank: with the weights of its rows
    int64_t rows_before = 0;  // in that shard
  };
  struct Peer {
    int rank = 0;
    std::vector<Source> sources;  // in the order of its messages
  };

  std::vector<Source> sources_of(int rank) const;
  int64_t rows_of(const Source& source) const {
    return context_.layout.parts()[static_cast<size_t>(source.part)].rows;
  }
  size_t row_bytes(const Source& source) const { return context_.shards[source.shard].row_bytes(); }
  // Bytes that operations do not read.
  size_t head_bytes(std::span<const Source> sources, int64_t rows) const;
  // Row numbers of a shard's updates as the host has them, counted from the first row of its box.
  std::span<const int64_t> numbers_in_box(const Source& own, std::span<const int64_t> rows);
  // Moves rows of a box to a message, where they are side by side, and back.
  template <class TransferOf>
  void move(const Source& source, std::span<const int64_t> numbers, TransferOf transfer_of);
  void move_out(const Source& source, std::span<const int64_t> numbers, std::byte* to);
  void move_in(const Source& source, std::span<const int64_t> numbers, const std::byte* from);
  void read_head(const Peer& peer, comm::ConstBytes message);

  const StepContext context_;
  bool needed_;
  std::vector<size_t> own_shards_;  // by own source
  std::vector<Source> own_;
  std::vector<Peer> peers_;
  std::vector<comm::ConstBytes> messages_;
  std::unique_ptr<comm::ReceivedBodies> received_;
  std::vector<size_t> heads_;     // by rank, bytes of the head of what has come
  std::vector<int64_t> counts_;   // of a message
  std::vector<int64_t> numbers_;  // of one part
  int64_t taken_ = 0;
};

}  // namespace shardrec::embedding
