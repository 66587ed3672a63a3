#include "checkpoint/store/session.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "checkpoint/write/save.h"
#include "comm/collective/agree.h"
#include "core/error.h"
#include "core/hash.h"
#include "embedding/room.h"

namespace shardrec::checkpoint {
namespace {

// The operation in which the ranks agree on their arguments. What a rank is given is read there: one
// that got no good handle must not leave the others waiting.
comm::Operation preparing(const char* name) {
  return {.name = name, .kind = 1, .deadline_kind = comm::DeadlineKind::kSetup};
}

void require_same_directory(const Group& group, const char* name, const std::string& directory) {
  comm::require_same_text(group.collectives, preparing(name), "directory", directory);
}

// What is so of some ranks only is so of none.
bool on_all_ranks(const Group& group, bool here) {
  const std::byte own{here ? std::byte{1} : std::byte{0}};
  const auto all = group.collectives.all_gather(preparing("commit_delta"), {&own, 1});
  return std::ranges::all_of(
      all, [](comm::ConstBytes bytes) { return bytes.size() == 1 && bytes[0] == std::byte{1}; });
}

// Sharded sets are made whole by all ranks together.
comm::SharedValue sharded_sets(const Gathering& gathering) {
  return {.name = "sharded parameters", .value = core::hash64(0, gathering.names_of_sharded())};
}

// Are the collections that were loaded all that it holds?
bool holds_just(const Manifest& manifest, const Contents& loaded) {
  return std::ranges::equal(manifest.collections, loaded.collections,
                            [](const ManifestCollection& saved, const CollectionContents& own) {
                              return saved.name == own.name &&
                                     same_tables(saved.tables, own.tables);
                            });
}

// As a delta of it names it.
ManifestBase as_base(const Opened& opened) {
  const Manifest& manifest = opened.manifest;
  return {.directory = opened.directory.substr(opened.directory.rfind('/') + 1),
          .step = manifest.step,
          .commit = manifest.commit,
          .checksum = opened.checksum,
          .deltas = manifest.base ? manifest.base->deltas : 0};
}

void require_step(int64_t step, int64_t least, const char* accepted) {
  if (step >= least) return;
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence("step is ", step, "; ", accepted, " is accepted"), {.value = step});
}

}  // namespace

void Session::commit(int64_t step, core::FunctionRef<Request()> request) {
  (void)commit_now("commit", step, Kind::kWhole, request);
}

bool Session::commit_delta(int64_t step, core::FunctionRef<Request()> request) {
  return commit_now("commit_delta", step, Kind::kDelta, request);
}

void Session::commit_begin(int64_t step, core::FunctionRef<Request()> request) {
  (void)begin_commit("commit_begin", step, Kind::kWhole, request);
}

bool Session::commit_delta_begin(int64_t step, core::FunctionRef<Request()> request) {
  return begin_commit("commit_delta_begin", step, Kind::kDelta, request);
}

Session::Prepared Session::prepare(const Group& group, const char* name, int64_t step, Kind kind,
                                   core::FunctionRef<Request()> request) {
  const bool marks = kind == Kind::kDelta || commits_deltas_;
  Prepared prepared;
  comm::agree_on_same(group.collectives, preparing(name), [&] {
    require_none_begun(name);
    require_step(step, 0, "0 or more");
    prepared.own = request();
    const Gathering& gathering = *prepared.own.gathering;
    if (kind == Kind::kWhole) prepared.contents = gathering.to_save(tensors_);
    if (marks) prepared.marked = gathering.mark();
    std::vector shared{sharded_sets(gathering)};
    if (kind == Kind::kDelta) {
      shared.push_back(
          {.name = "option DELTA_STATES", .value = static_cast<uint64_t>(options_.delta_states)});
    }
    return shared;
  });
  require_same_directory(group, name, root_);
  Gathering& gathering = *prepared.own.gathering;
  gathering.gather_shards();
  if (kind == Kind::kWhole) return prepared;
  commits_deltas_ = true;
  const bool delta = on_all_ranks(group, can_be_delta(gathering));
  comm::agree(group.collectives, preparing(name), [&] {
    prepared.contents = delta ? changes_to_save(gathering) : gathering.to_save(tensors_);
  });
  return prepared;
}

Contents Session::changes_to_save(const Gathering& gathering) const {
  Contents contents = gathering.changes_to_save(tensors_, since_->marked, options_.delta_states);
  contents.base = since_->base;
  ++contents.base->deltas;
  return contents;
}

bool Session::commit_now(const char* name, int64_t step, Kind kind,
                         core::FunctionRef<Request()> request) {
  const Group group = channels_.group();
  Prepared prepared = prepare(group, name, step, kind, request);
  commit_step(group, root_, step, options_.keep, prepared.contents, lineage_,
              prepared.own.control.get());
  note_since(std::move(prepared.marked));
  return prepared.is_delta();
}

bool Session::can_be_delta(const Gathering& gathering) const {
  return since_ && since_->base.deltas < options_.most_deltas && gathering.is_of(since_->marked);
}

void Session::note_since(std::vector<MarkedTables> marked) {
  if (commits_deltas_) since_ = {.base = lineage_.made, .marked = std::move(marked)};
}

bool Session::begin_commit(const char* name, int64_t step, Kind kind,
                           core::FunctionRef<Request()> request) {
  const Group group = channels_.group();
  Prepared prepared = prepare(group, name, step, kind, request);
  const bool delta = prepared.is_delta();
  const Gathering& gathering = *prepared.own.gathering;
  require_room(group, name, gathering.bytes_to_freeze(prepared.contents));
  std::unique_ptr<BackgroundCommit> begun;
  comm::agree(group.collectives, preparing(name), [&] {
    auto commit = std::make_unique<StepCommit>(root_, step, options_.keep);
    auto frozen = gathering.freeze(prepared.contents);
    begun = std::make_unique<BackgroundCommit>(
        std::move(commit),
        FrozenContents{.contents = std::move(prepared.contents), .frozen = std::move(frozen)},
        prepared.own.control);
  });
  begun->begin(group, lineage_);
  begun_ = std::move(begun);
  marked_at_begin_ = std::move(prepared.marked);
  return delta;
}

bool Session::commit_wait(int64_t timeout_ms, core::FunctionRef<void()> check) {
  const Group group = channels_.group();
  bool begins = true;
  try {
    comm::agree(group.collectives, preparing("commit_wait"), [&] {
      check();
      if (begun_ != nullptr) return;
      core::fail(SHARDREC_INVALID_STATE,
                 "no commit is under way: call shardrec_checkpoint_commit_begin first");
    });
    begins = false;
    if (!begun_->wait(group, communicator_, preparing("commit_wait"), timeout_ms, lineage_)) {
      return false;
    }
  } catch (const comm::AgreedError&) {
    if (!begins) give_up_begun();
    throw;
  } catch (...) {
    give_up_begun();  // nobody is there to end it with
    throw;
  }
  begun_.reset();
  note_since(std::move(marked_at_begin_));
  return true;
}

void Session::give_up_begun() noexcept {
  begun_.reset();
  marked_at_begin_.clear();
}

void Session::require_none_begun(const char* call) const {
  if (begun_ == nullptr) return;
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence(call,
                            " was called while a commit is under way: call"
                            " shardrec_checkpoint_commit_wait until it is over"),
             {.operation = call});
}

// Copies for a commit in the background are asked for by all ranks together, as tables are when they are made.
void Session::require_room(const Group& group, const char* name, uint64_t bytes) {
  const embedding::GatheredNeeds needs(group.collectives, preparing(name), group.rank, bytes);
  comm::agree(group.collectives, preparing(name), [&] {
    try {
      needs.check();
    } catch (const core::Error& error) {
      core::fail(error.status(),
                 core::sentence("for copies that a commit in the background is written from, ",
                                error.sentence(), "; shardrec_checkpoint_commit",
                                " and _commit_delta need none"),
                 error.parts());
    }
  });
}

void Session::open(int64_t step) {
  const Group group = channels_.group();
  comm::agree(group.collectives, preparing("open"), [&] {
    require_none_begun("open");
    require_step(step, -1, "-1 for the newest, 0 or more");
  });
  require_same_directory(group, "open", root_);
  Lineage lineage;
  opened_ = open_step(group, root_, step, lineage);
  lineage_ = std::move(lineage);
  since_.reset();
}

void Session::load(core::FunctionRef<Request()> request) {
  const Group group = channels_.group();
  Request own;
  Contents contents;
  comm::agree_on_same(group.collectives, preparing("load"), [&] {
    require_none_begun("load");
    (void)opened();
    own = request();
    contents = own.gathering->to_load();
    return std::vector{sharded_sets(*own.gathering)};
  });
  since_.reset();
  own.gathering->gather_shards();
  // No table is whole from before the first byte changes until all are there.
  checkpoint::load(group, *opened_, contents, own.control.get(),
                   [&] { own.gathering->begin_filling(contents); });
  own.gathering->apply(contents);
  note_loaded(*own.gathering, contents);
}

void Session::note_loaded(const Gathering& gathering, const Contents& loaded) noexcept {
  const bool deltas_follow = commits_deltas_ || lineage_.has_deltas;
  if (!deltas_follow || opened_->manifest.commit != lineage_.commit) return;
  if (!holds_just(opened_->manifest, loaded)) return;
  try {
    since_ = {.base = as_base(*opened_), .marked = gathering.mark()};
    commits_deltas_ = true;
  } catch (...) {  // there is no memory for marks: the next commit is whole
    since_.reset();
  }
}

void Session::load_partial(core::FunctionRef<Request()> request,
                           core::FunctionRef<void(const std::string&)> take_report) {
  const Group group = channels_.group();
  Request own;
  Contents contents;
  LoadRules rules;
  comm::agree_on_same(group.collectives, preparing("load_partial"), [&] {
    require_none_begun("load_partial");
    (void)opened();
    own = request();
    rules = load_rules_from_json(own.rules);
    contents = own.gathering->to_load();
    return std::vector<comm::SharedValue>{
        {.name = "document of rules", .value = core::hash64(0, own.rules)},
        sharded_sets(*own.gathering)};
  });
  since_.reset();
  own.gathering->gather_shards();
  const RuledLoad ruled{.rules = rules, .take_report = take_report};
  checkpoint::load(group, *opened_, contents, ruled, own.control.get(),
                   [&] { own.gathering->begin_filling(contents); });
  own.gathering->apply(contents);
}

void Session::verify(core::FunctionRef<std::shared_ptr<core::Control>()> control) {
  const Group group = channels_.group();
  std::shared_ptr<core::Control> progress;
  comm::agree(group.collectives, preparing("verify"), [&] {
    progress = control();
    (void)opened();
  });
  checkpoint::verify(group, *opened_, progress.get());
}

const Opened& Session::opened() const {
  if (!opened_) {
    core::fail(SHARDREC_INVALID_STATE,
               "no checkpoint is open: call shardrec_checkpoint_open first");
  }
  return *opened_;
}

}  // namespace shardrec::checkpoint
