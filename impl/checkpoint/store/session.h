// A root of checkpoints (store.h) as one job uses it: what all ranks of a communicator commit, open and
// load together.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/contents/collection_contents.h"
#include "checkpoint/contents/contents.h"
#include "checkpoint/contents/gathering.h"
#include "checkpoint/contents/host_tensors.h"
#include "checkpoint/contents/names.h"
#include "checkpoint/read/load.h"
#include "checkpoint/store/background_commit.h"
#include "checkpoint/store/store.h"
#include "comm/communicator.h"
#include "core/control.h"
#include "core/function_ref.h"
#include "training/tables.h"

namespace shardrec::checkpoint {

// What a rank brings to a commit or a load.
struct Request {
  std::shared_ptr<core::Control> control;  // may be null
  Gathering* gathering = nullptr;          // of what was added
  std::string_view rules = {};             // of a partial load: JSON
};

class Session {
 public:
  // keep: as commit_step() has it. most_deltas: that follow a whole checkpoint; the next one is whole. Not collective;
  // all ranks make theirs in the same order.
  Session(comm::Communicator& communicator, std::string root, int64_t keep, int64_t most_deltas)
      : communicator_(communicator),
        channels_(communicator),
        root_(std::move(root)),
        keep_(keep),
        most_deltas_(most_deltas) {}

  HostTensors& tensors() noexcept { return tensors_; }
  // Of everything that was added.
  UsedNames& names() noexcept { return names_; }
  const UsedNames& names() const noexcept { return names_; }

  // Collective. Each runs request() in an agreement of all ranks: what it throws on one is every
  // rank's error, and nothing has begun. Beyond that they throw what store.h and load.h say, and
  // INVALID_STATE where load() or verify() comes before open().
  void commit(int64_t step, core::FunctionRef<Request()> request);
  // Of tables writes what has changed since this session's last commit; all where it does not know that: in the first
  // call, the first one behind open() or load(), where what was added differs from what it was, or behind most_deltas
  // deltas. From the first call on changes are noted. Returns whether it has written changes alone.
  bool commit_delta(int64_t step, core::FunctionRef<Request()> request);
  // The same in two parts: what was added is as it is at commit_begin(), and may change until commit_wait()
  // returns true. Until then commit(), commit_begin(), open() and load() are INVALID_STATE. commit_wait()
  // runs check() as the others run request(); timeout_ms, and what it returns: BackgroundCommit::wait().
  void commit_begin(int64_t step, core::FunctionRef<Request()> request);
  bool commit_wait(int64_t timeout_ms, core::FunctionRef<void()> check);
  void open(int64_t step);
  void load(core::FunctionRef<Request()> request);
  // Under the request's rules, which all ranks give alike. take_report: as of RuledLoad.
  void load_partial(core::FunctionRef<Request()> request,
                    core::FunctionRef<void(const std::string&)> take_report);
  void verify(core::FunctionRef<std::shared_ptr<core::Control>()> control);

  // Not collective. Throws INVALID_STATE when none is open.
  const Opened& opened() const;

 private:
  // What has been committed, and the rows that have changed since: what the next delta is about.
  struct Since {
    ManifestBase base;
    std::vector<MarkedTables> marked;
  };

  void give_up_begun() noexcept;
  void require_none_begun(const char* call) const;
  bool can_be_delta(const Gathering& gathering) const;
  // Behind a commit: the marks were made when its contents were gathered. None where nobody commits deltas.
  void note_since(std::vector<MarkedTables> marked);
  void require_room(const Group& group, uint64_t bytes);

  comm::Communicator& communicator_;  // outlives this
  GroupChannels channels_;
  std::string root_;
  int64_t keep_ = 0;
  int64_t most_deltas_ = 0;
  HostTensors tensors_;
  UsedNames names_;
  Lineage lineage_;
  std::optional<Opened> opened_;
  std::unique_ptr<BackgroundCommit> begun_;  // null: no commit is under way
  bool commits_deltas_ = false;
  std::optional<Since> since_;                 // none: the next commit is whole
  std::vector<MarkedTables> marked_at_begin_;  // of the commit that is under way
};

}  // namespace shardrec::checkpoint
