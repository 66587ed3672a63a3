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

struct SessionOptions {
  int64_t keep = 0;           // as commit_step() has it
  int64_t most_deltas = 100;  // that follow a whole checkpoint; the next one is whole
  DeltaStates delta_states = DeltaStates::kWritten;
};

class Session {
 public:
  // Not collective; all ranks make theirs in the same order.
  Session(comm::Communicator& communicator, std::string root, const SessionOptions& options)
      : communicator_(communicator),
        channels_(communicator),
        root_(std::move(root)),
        options_(options) {}

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
  // deltas. From the first call on changes are noted, and from a load of the newest checkpoint of a run with deltas,
  // which the next delta is then a change of. Returns whether it has written changes alone.
  bool commit_delta(int64_t step, core::FunctionRef<Request()> request);
  // The same in two parts: what was added is as it is at commit_begin(), and may change until commit_wait()
  // returns true. Until then other commits, open() and load() are INVALID_STATE. commit_wait()
  // runs check() as the others run request(); timeout_ms, and what it returns: BackgroundCommit::wait().
  void commit_begin(int64_t step, core::FunctionRef<Request()> request);
  bool commit_delta_begin(int64_t step, core::FunctionRef<Request()> request);
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

  enum class Kind : uint8_t { kWhole, kDelta };
  // What a commit writes.
  struct Prepared {
    Request own;
    Contents contents;
    std::vector<MarkedTables> marked;  // where changes are noted: for those behind the contents

    bool is_delta() const { return contents.base.has_value(); }
  };

  // Collective. name: of the call.
  Prepared prepare(const Group& group, const char* name, int64_t step, Kind kind,
                   core::FunctionRef<Request()> request);
  Contents changes_to_save(const Gathering& gathering) const;
  bool commit_now(const char* name, int64_t step, Kind kind, core::FunctionRef<Request()> request);
  bool begin_commit(const char* name, int64_t step, Kind kind,
                    core::FunctionRef<Request()> request);
  void give_up_begun() noexcept;
  void require_none_begun(const char* call) const;
  bool can_be_delta(const Gathering& gathering) const;
  // Behind a commit: the marks were made when its contents were gathered. None where nobody commits deltas.
  void note_since(std::vector<MarkedTables> marked);
  // Behind a strict load: what was loaded is as committed, where it is the newest of a run with deltas.
  void note_loaded(const Gathering& gathering, const Contents& loaded) noexcept;
  void require_room(const Group& group, const char* name, uint64_t bytes);

  comm::Communicator& communicator_;  // outlives this
  GroupChannels channels_;
  std::string root_;
  const SessionOptions options_;
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
