// The means over replicas that ReplicaMeans makes, while training goes on: begin() copies the rows, a thread of this object
// averages the copies, and apply() adds to each row what its copy has gained by that (compute::RowGains). A row that is
// as it was becomes the mean.
//
// Copies and means are in memory of the back end that grows with the rows that are averaged, and is kept for the next
// time. The thread exchanges on a channel of its own, by a back end of its own (block_means.h).
//
// Thread rule: as the collection's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/buffer.h"
#include "core/threads.h"
#include "core/worker.h"
#include "embedding/collection.h"
#include "embedding/tables/stored_pieces.h"
#include "training/block_means.h"
#include "training/changed_union.h"
#include "training/mesh_groups.h"

namespace shardrec::training {

class OverlappedMeans {
 public:
  // groups: of this rank; channel: of the replicas, for this object alone. Throws as BlockMeans does.
  OverlappedMeans(MeshGroups groups, std::shared_ptr<comm::Channel> channel,
                  std::shared_ptr<embedding::Collection> collection);
  // Where means are under way, ends the groups, whose other ranks would wait for this one.
  ~OverlappedMeans();
  OverlappedMeans(const OverlappedMeans&) = delete;
  OverlappedMeans& operator=(const OverlappedMeans&) = delete;

  // Once, before the first begin(). Collective over the replicas; an error ends their communicator.
  void connect(comm::Collectives& of_replicas) { blocks_.connect(of_replicas); }

  // In this order, while nothing is under way and operations of the collection are over. gather(): finds the rows that are
  // averaged; collective over the replicas; throws CORRUPT_DATA and what channels throw. prepare(): copies them; throws OUT_OF_MEMORY
  // and what operations throw; all is as before then. start(): no row is noted as changed any more, and the thread works. What
  // stops it ends the groups at once.
  void gather(comm::Collectives& of_replicas, const comm::Operation& operation);
  void prepare();
  void start(const comm::Operation& operation);
  bool under_way() const noexcept { return under_way_; }
  // Number of steps that had been taken when they began.
  int64_t step() const noexcept { return step_; }

  // Waits for the thread, and throws what stopped it, each time.
  void wait();
  // After wait(), when operations of the collection are over: all rows get their means, and nothing is under way.
  void apply();

 private:
  // The averaged rows of a piece.
  struct Copy {
    embedding::StoredPiece piece;
    int64_t rows = 0;
    const int64_t* numbers = nullptr;  // of all of them; null: the first `rows` of the shard
    size_t at = 0;                     // in copies_ and means_
    bool at_least_zero = false;
  };
  // Copies of one type, side by side.
  struct Segment {
    compute::Element element;
    size_t at;  // in copies_ and means_
    int64_t elements;
  };

  int64_t averaged_rows(size_t shard) const;
  void list_numbers();
  void lay_out();
  void copy_rows();
  // Calls visit(first, count) for rows of a copy that operations move at once.
  template <class Visit>
  static void in_parts(const Copy& copy, Visit visit);
  // The thread: averages all copies; what stops it ends the groups.
  void run(const char* operation);
  void average_segment(const Segment& segment, const char* operation);

  const MeshGroups groups_;
  const std::shared_ptr<embedding::Collection> collection_;
  core::Threads threads_;
  BlockMeans blocks_;
  ChangedUnion changed_;
  compute::Buffer numbers_memory_;
  std::vector<std::span<int64_t>> numbers_;  // by shard; none: all of its rows
  std::vector<Copy> rows_;
  std::vector<Segment> segments_;
  compute::Buffer copies_;
  compute::Buffer means_;
  bool under_way_ = false;
  int64_t step_ = 0;
  std::exception_ptr failure_;
  core::Worker worker_;  // it ends before what it works with
};

}  // namespace shardrec::training
