#include "training/continuation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "comm/collective/agree.h"
#include "compute/booked_memory.h"
#include "compute/buffer.h"
#include "compute/transfer_operations.h"
#include "core/error.h"
#include "embedding/tables/stored_pieces.h"
#include "training/replica_fill.h"

namespace shardrec::training {
namespace {

// What a rank says of the tables that it brings.
struct Brought {
  int64_t step = 0;
  uint64_t rewrites = 0;
  int32_t group = 0;
  uint8_t any = 0;
  uint8_t whole = 0;  // are all rows of one state of the model?
  uint8_t in_step = 0;
  uint8_t unused = 0;
};

// What a sharding group brings, from what its ranks say.
struct Group {
  const Brought* first = nullptr;
  bool whole = true;
};

void require_alike(const embedding::Collection& to, const embedding::Collection& from) {
  if (plan::model_fingerprint(to.model()) != plan::model_fingerprint(from.model())) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               "the collections are of different models: only tables that are the same go on");
  }
  const embedding::Layout& ours = to.layout();
  const embedding::Layout& theirs = from.layout();
  const int place = ours.groups().number_of(ours.rank());
  const int before = theirs.groups().number_of(theirs.rank());
  if (place != before || plan::plan_fingerprint(ours.plan(), to.model()) !=
                             plan::plan_fingerprint(theirs.plan(), from.model())) {
    core::fail(
        SHARDREC_INVALID_ARGUMENT,
        core::sentence("this rank does not hold the boxes that it brings: the plan, and its"
                       " place in a sharding group (",
                       place, ", it was ", before, "), have to be those of the collection before"));
  }
}

// Those of rows that a lost replica has updated are lost with it.
void require_all_states(const embedding::Collection& tables) {
  if (!tables.layout().groups().share_states) return;
  core::fail(SHARDREC_UNSUPPORTED,
             "replicas that share optimizer states (REPLICA_SYNC SHARDED) have one copy of each, so"
             " that none of them is whole alone: load a checkpoint");
}

// Behind it the rows are as operations have left them, also where the end of their communicator has broken off messages
// between devices: updates have changed nothing from there on.
void wait_for_operations(embedding::Collection& from) {
  try {
    from.synchronize();
  } catch (const core::Error& error) {
    const shardrec_status status = error.status();
    const bool ended =
        status == SHARDREC_ABORTED || status == SHARDREC_PEER_FAILED || status == SHARDREC_TIMEOUT;
    if (!ended) throw;
  }
}

Brought brought_by(const EarlierTables& from, int group) {
  Brought out{.group = group};
  if (from.tables == nullptr) return out;
  const embedding::Collection& tables = *from.tables;
  out.any = 1;
  out.step = tables.step();
  out.rewrites = tables.rewrites();
  out.whole = uint8_t{!tables.filled_in_part() && tables.rewrites() % 2 == 0};
  out.in_step = uint8_t{from.in_step};
  return out;
}

class Continuation {
 public:
  Continuation(embedding::Collection& to, const EarlierTables& from, const ContinuedRanks& ranks,
               const comm::Operation& operation)
      : to_(to),
        from_(from),
        ranks_(ranks),
        operation_(operation),
        group_(ranks.replicas == nullptr ? 0 : ranks.replicas->rank()),
        rows_(compute::book(compute::cpu_memory(), to.counters().buffer_bytes)) {}

  bool run() {
    Brought own;
    comm::agree(ranks_.all, operation_, [&] {
      require_all_states(to_);
      if (from_.tables != nullptr) {
        require_all_states(*from_.tables);
        require_alike(to_, *from_.tables);
        from_.tables->require_no_backward();
        wait_for_operations(*from_.tables);
      }
      to_.require_no_snapshot(operation_.name);
      own = brought_by(from_, group_);
    });
    read_groups(own);
    const int source = source_group();
    if (source < 0) refuse();
    to_.set_filled_in_part(true);
    comm::agree(ranks_.all, operation_, [&] {
      if (each_keeps_its_own_ || group_ == source) take();
    });
    to_.set_filled_in_part(false);
    if (!each_keeps_its_own_) fill_replicas(to_, *ranks_.replicas, source, operation_);
    return !each_keeps_its_own_ || in_step_;
  }

 private:
  void read_groups(const Brought& own) {
    const auto said = ranks_.all.all_gather(operation_, std::as_bytes(std::span(&own, 1)));
    brought_.resize(said.size());
    for (size_t r = 0; r < said.size(); ++r) {
      std::memcpy(&brought_[r], said[r].data(), sizeof(Brought));
    }
    groups_.resize(ranks_.replicas == nullptr ? 1 : static_cast<size_t>(ranks_.replicas->size()));
    for (const Brought& rank : brought_) {
      Group& group = groups_[static_cast<size_t>(rank.group)];
      if (group.first == nullptr) group.first = &rank;
      if (rank.any == 0 || rank.whole == 0 || rank.step != group.first->step ||
          rank.rewrites != group.first->rewrites) {
        group.whole = false;
      }
      in_step_ = in_step_ && rank.in_step != 0;
    }
  }

  // The whole group of the highest step; -1: there is none. Do all go on with what they bring?
  int source_group() {
    int source = -1;
    each_keeps_its_own_ = true;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      if (!group.whole || group.first->step != groups_[0].first->step) each_keeps_its_own_ = false;
      if (!group.whole) continue;
      if (source < 0 || group.first->step > groups_[static_cast<size_t>(source)].first->step) {
        source = static_cast<int>(g);
      }
    }
    return source;
  }

  // On all ranks alike: the error is that of an agreement.
  [[noreturn]] void refuse() const {
    size_t rank = 0;
    const auto is_at_fault = [&](const Brought& one) {
      const Brought& first = *groups_[static_cast<size_t>(one.group)].first;
      return one.any == 0 || one.whole == 0 || one.step != first.step ||
             one.rewrites != first.rewrites;
    };
    while (!is_at_fault(brought_[rank])) ++rank;
    const Brought& one = brought_[rank];
    const Brought& first = *groups_[static_cast<size_t>(one.group)].first;
    std::string what;
    if (one.any == 0) {
      what = " brings none";
    } else if (one.whole == 0) {
      what = " brings tables of which a sync, a fill, a write or a load has written a part";
    } else if (one.step != first.step) {
      what = core::sentence(" is at step ", one.step, ", others of its sharding group at step ",
                            first.step);
    } else {
      what = " is before, or behind, a sync or a write that others of its sharding group are not";
    }
    throw comm::AgreedError(
        SHARDREC_INVALID_STATE,
        core::sentence("no sharding group brings whole tables of one step: rank ", rank, what,
                       "; load a checkpoint"),
        {.rank = static_cast<int64_t>(rank), .operation = operation_.name});
  }

  // The rows of this rank, through the host: the two may be on different devices.
  void take() {
    embedding::Collection& from = *from_.tables;
    const auto read =
        embedding::stored_pieces(from.layout(), from.shards(), embedding::PieceUse::kLoad);
    const auto written =
        embedding::stored_pieces(to_.layout(), to_.shards(), embedding::PieceUse::kLoad);
    for (size_t p = 0; p < read.size(); ++p) copy(read[p], written[p]);
    const embedding::TrainingSettings& before = from.settings();
    for (size_t t = 0; t < to_.model().tables.size(); ++t) {
      const auto table = static_cast<int32_t>(t);
      to_.settings().set_learning_rate(table, before.learning_rate(table));
      to_.settings().set_frozen(table, before.frozen(table));
    }
    to_.set_step(from.step());
    to_.update().drop_accumulated();
  }

  void copy(const embedding::StoredPiece& read, const embedding::StoredPiece& written) {
    const int64_t most = compute::rows_at_once(read.row_bytes());
    const auto width = static_cast<size_t>(read.row_width());
    for (int64_t first = 0; first < read.cells.rows; first += most) {
      const int64_t count = std::min(most, read.cells.rows - first);
      std::byte* const rows = rows_.resize(static_cast<size_t>(count) * read.row_bytes());
      const compute::RowTransfer out{.from = {read.at_row(first), read.element, read.stride},
                                     .to = {rows, read.element, width},
                                     .rows = count,
                                     .width = read.row_width()};
      from_.tables->backend().transfer().copy_to_host({&out, 1});
      const compute::RowTransfer in{.from = {rows, written.element, width},
                                    .to = {written.at_row(first), written.element, written.stride},
                                    .rows = count,
                                    .width = written.row_width()};
      to_.backend().transfer().copy_from_host({&in, 1});
    }
  }

  embedding::Collection& to_;
  const EarlierTables from_;
  const ContinuedRanks& ranks_;
  const comm::Operation& operation_;
  const int group_;
  compute::Buffer rows_;
  std::vector<Brought> brought_;  // by rank
  std::vector<Group> groups_;
  bool each_keeps_its_own_ = false;
  bool in_step_ = true;
};

}  // namespace

bool continue_tables(embedding::Collection& to, const EarlierTables& from,
                     const ContinuedRanks& ranks, const comm::Operation& operation) {
  return Continuation(to, from, ranks, operation).run();
}

}  // namespace shardrec::training
