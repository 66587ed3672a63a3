// Serves the checkpoints of a directory (capi's scorer.h). Thread rule: refresh() by one thread at a
// time, all else by any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/control.h"
#include "core/environment.h"
#include "core/tensor.h"
#include "serving/version.h"
#include "serving/workspace.h"

namespace shardrec::serving {

struct Info {
  int64_t step = 0;
  int64_t dense_columns = 0;  // 0: no dense half
  int64_t scores = 0;
};

class Scorer {
 public:
  // Opens a checkpoint; step -1: the newest. Errors: shardrec_scorer_open's.
  Scorer(std::string directory, int64_t step, Settings settings, core::Control* control,
         core::Environment& environment = core::default_environment());

  // Serves another one; returns the step that is served now. After an error the one before is.
  int64_t refresh(int64_t step, core::Control* control);

  Info info() const;
  plan::Model model() const;

  // Each returns the step of the checkpoint that has answered. Throws INVALID_BATCH, NOT_FOUND,
  // INVALID_ARGUMENT, OUT_OF_MEMORY; UNSUPPORTED (predict without a dense half).
  int64_t look_up(int32_t output, const embedding::BatchArguments& batch,
                  const shardrec_tensor* out) const;
  int64_t predict(const shardrec_tensor* dense, const embedding::BatchArguments& batch,
                  const shardrec_tensor* out) const;

 private:
  // now null: there is none yet. Null: the checkpoint is the one that is served now.
  std::unique_ptr<const Version> open(int64_t step, core::Control* control,
                                      const Version* now) const;
  void require_finite(const core::Matrix& dense) const;

  std::string directory_;
  Settings settings_;
  core::Environment& environment_;
  mutable Workspaces workspaces_;
};

}  // namespace shardrec::serving
