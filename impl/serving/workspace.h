// What a call needs for itself: the checked batch, ids as the tables take them, room for the dense half.
// A call takes a workspace that is free and gives it back; nobody waits for one, and none is made once as
// many were in use at the same time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/backend.h"
#include "core/memory.h"
#include "core/threads.h"
#include "embedding/batch/batch.h"
#include "serving/version.h"

namespace shardrec::serving {

class Workspace {
 public:
  Workspace();

  // Checks the whole batch; non_finite: of its weights. Throws INVALID_BATCH; operation: for the sentence.
  void check(const embedding::BatchArguments& arguments, const Version& version,
             shardrec_non_finite non_finite, const char* operation);
  // Rows of an output of the batch that was checked.
  int64_t output_rows(const Version& version, int32_t output) const;

  // out: of the output's shape.
  void look_up(const Version& version, int32_t output, const core::AnyMatrix& out,
               compute::Element element);

  float* floats(int64_t count) {
    return floats_.resize_as<float>(static_cast<size_t>(count)).data();
  }
  float* pooled(int64_t count) {
    return pooled_.resize_as<float>(static_cast<size_t>(count)).data();
  }

 private:
  friend class Workspaces;

  // The ids of a feature that stay, and the bags that they are in.
  struct Kept {
    compute::Ids ids;
    const float* weights = nullptr;
    const uint32_t* lengths = nullptr;  // null: a sequence all of whose ids are there
    int64_t count = 0;
  };
  Kept keep(const ServedTable& table, int32_t feature, bool sequence);
  compute::Ids as_offsets(const ServedTable& table, const ColumnSlice& slice, const Kept& kept);
  void look_up(const ServedTable& table, const Kept& kept, int64_t items, bool mean,
               const core::AnyMatrix& out, compute::Element element, size_t output_bytes);

  core::Threads threads_{1};
  std::unique_ptr<compute::Backend> backend_;
  embedding::CheckedBatch batch_;
  std::vector<char> out_of_range_;  // by feature: has it such ids?
  core::Scratch ids_;
  core::Scratch offsets_;
  core::Scratch weights_;
  core::Scratch lengths_;
  std::vector<uint32_t> chunk_ids_;
  std::vector<compute::BagOutputs> blocks_;
  core::Scratch pooled_;
  core::Scratch floats_;

  std::atomic<bool> in_use_{false};
  std::atomic<const Version*> reading_{nullptr};
  Workspace* next_ = nullptr;  // in the list of all
};

// All workspaces of a scorer, and the version that calls read.
//
// A version is replaced while calls go on: a call says in its workspace which one it reads, and looks
// again whether that is still the one that is served; who replaces it waits until no workspace names the
// old one. Thread rule: enter() from any thread, exchange() by one at a time.
class Workspaces {
 public:
  explicit Workspaces(std::unique_ptr<const Version> version);
  ~Workspaces();  // nobody is inside
  Workspaces(const Workspaces&) = delete;
  Workspaces& operator=(const Workspaces&) = delete;

  // A call's workspace and the version it reads, until it is destroyed.
  class Use {
   public:
    Use(Workspace& workspace, const Version& version) : workspace_(workspace), version_(version) {}
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    Workspace& workspace() const noexcept { return workspace_; }
    const Version& version() const noexcept { return version_; }

   private:
    Workspace& workspace_;
    const Version& version_;
  };
  Use enter();  // throws OUT_OF_MEMORY

  // Serves the next version; returns when nobody reads the one before, and that is freed.
  void exchange(std::unique_ptr<const Version> next);

 private:
  Workspace& take();

  const uint64_t number_;  // no two of a process have the same
  std::atomic<const Version*> current_;
  std::atomic<Workspace*> all_{nullptr};
};

}  // namespace shardrec::serving
