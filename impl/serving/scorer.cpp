#include "serving/scorer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "checkpoint/store/store.h"
#include "compute/non_finite.h"
#include "compute/probe/profile_cache.h"
#include "core/error.h"
#include "dense/layers/forward.h"

namespace shardrec::serving {
namespace {

// The checkpoint of a step, or what it changes of the one that is served now; null: it is that one.
std::unique_ptr<const Version> load_step(const std::string& directory, const Settings& settings,
                                         core::Control* control, const Version* now,
                                         core::Environment& environment) {
  const auto opened = std::make_shared<const checkpoint::Opened>(
      checkpoint::open_directory(directory, environment, now == nullptr ? nullptr : now->opened));
  if (now != nullptr) {
    if (now->is(*opened)) return nullptr;
    if (auto next = stage_version(opened, settings, *now, control, environment)) return next;
  }
  auto next = load_version(opened, settings, control, environment);
  if (now != nullptr) require_same_shape(*now, *next);
  return next;
}

shardrec_dtype dtype_of(const shardrec_tensor* out) {
  const auto dtype = out == nullptr ? SHARDREC_FLOAT32 : static_cast<shardrec_dtype>(out->dtype);
  if (dtype == SHARDREC_FLOAT32 || dtype == SHARDREC_FLOAT16 || dtype == SHARDREC_BFLOAT16) {
    return dtype;
  }
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence("out has dtype ", core::dtype_name(dtype),
                            "; float32, float16 and bfloat16 are accepted"),
             {.value = dtype});
}

// [batch, scores]; of one score also [batch].
core::Matrix scores_view(const shardrec_tensor* out, int64_t batch, int64_t scores) {
  if (out != nullptr && out->ndim == 1 && scores == 1) {
    return {core::column_view<float>(out, "out", batch).data(), batch, 1, 1};
  }
  return dense::with_blas_stride(core::matrix_view(out, "out", batch, scores), "out");
}

}  // namespace

Scorer::Scorer(std::string directory, int64_t step, Settings settings, core::Control* control,
               core::Environment& environment)
    : directory_(std::move(directory)),
      settings_(std::move(settings)),
      environment_(environment),
      workspaces_(open(step, control, nullptr)) {
  compute::memory_profile();  // kernels go by it from now on
}

// The newest may be replaced, and removed, while it is read: then the one that is newest by then.
std::unique_ptr<const Version> Scorer::open(int64_t step, core::Control* control,
                                            const Version* now) const {
  for (;;) {
    const std::string directory = checkpoint::find_step(directory_, step, environment_);
    try {
      return load_step(directory, settings_, control, now, environment_);
    } catch (const core::Error& error) {
      const bool may_be_gone = error.status() == SHARDREC_NOT_FOUND ||
                               error.status() == SHARDREC_CORRUPT_DATA ||
                               error.status() == SHARDREC_IO_ERROR;
      if (step >= 0 || !may_be_gone) throw;
      if (checkpoint::find_step(directory_, step, environment_) == directory) throw;
    }
  }
}

int64_t Scorer::refresh(int64_t step, core::Control* control) {
  std::unique_ptr<const Version> next;
  {
    const Workspaces::Use use = workspaces_.enter();
    next = open(step, control, &use.version());
    if (next == nullptr) return use.version().step;
  }
  const int64_t served = next->step;
  // Rows that have changed are read beside the tables until nobody reads the version before, and are then written
  // into the tables, where the last version reads them: each has all rows of one step.
  const bool staged = std::ranges::any_of(
      next->tables, [](const ServedTable& table) { return table.staged != nullptr; });
  if (!staged) {
    workspaces_.exchange(std::move(next));
    return served;
  }
  std::unique_ptr<const Version> last = without_staged(*next);
  const std::vector<ServedTable> tables = next->tables;
  workspaces_.exchange(std::move(next));
  write_staged(tables);
  workspaces_.exchange(std::move(last));
  return served;
}

plan::Model Scorer::model() const { return workspaces_.enter().version().model; }

Info Scorer::info() const {
  const Workspaces::Use use = workspaces_.enter();
  const Version& version = use.version();
  Info info{.step = version.step};
  if (version.dense != nullptr) {
    info.dense_columns = version.dense->dense_columns();
    info.scores = version.dense->scores();
  }
  return info;
}

void Scorer::require_finite(const core::Matrix& dense) const {
  if (settings_.non_finite == SHARDREC_NON_FINITE_ALLOW) return;
  for (int64_t row = 0; row < dense.rows; ++row) {
    const int64_t column =
        compute::first_non_finite(dense.data + row * dense.stride, SHARDREC_FLOAT32, dense.cols);
    if (column < 0) continue;
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("dense is NaN or infinite at row ", row, ", column ", column,
                              ", and the option NON_FINITE is ERROR"),
               {.position = row, .value = column, .operation = "scorer_predict"});
  }
}

int64_t Scorer::look_up(int32_t output, const embedding::BatchArguments& batch,
                        const shardrec_tensor* out) const {
  const Workspaces::Use use = workspaces_.enter();
  const Version& version = use.version();
  if (output < 0 || output >= version.outputs.outputs()) {
    core::fail(SHARDREC_NOT_FOUND,
               core::sentence("there is no output ", output, "; the model has ",
                              version.outputs.outputs(), " outputs"),
               {.value = output, .limit = version.outputs.outputs()});
  }
  Workspace& workspace = use.workspace();
  workspace.check(batch, version, settings_.non_finite, "scorer_lookup");
  const shardrec_dtype dtype = dtype_of(out);
  workspace.look_up(version, output,
                    core::any_matrix_view(out, "out", dtype, workspace.output_rows(version, output),
                                          version.columns(output)),
                    compute::element_of(dtype));
  return version.step;
}

int64_t Scorer::predict(const shardrec_tensor* dense, const embedding::BatchArguments& batch,
                        const shardrec_tensor* out) const {
  const Workspaces::Use use = workspaces_.enter();
  const Version& version = use.version();
  if (version.dense == nullptr || version.gemm == nullptr) {
    core::fail(SHARDREC_UNSUPPORTED, "there are no scores: " + version.why_no_scores);
  }
  Workspace& workspace = use.workspace();
  workspace.check(batch, version, settings_.non_finite, "scorer_predict");
  const int64_t rows = batch.batch_size;
  const core::Matrix input = dense::with_blas_stride(
      core::matrix_view(dense, "dense", rows, version.dense->dense_columns()), "dense");
  require_finite(input);
  const core::Matrix scores = scores_view(out, rows, version.dense->scores());
  const int64_t width = version.outputs.width;
  float* const pooled = workspace.pooled(rows * width);
  float* const scratch = workspace.floats(version.dense->scratch());
  workspace.look_up(version, 0, {.data = pooled, .rows = rows, .cols = width, .stride = width},
                    compute::Element::kFloat32);
  version.dense->predict(version.gemm->gemm(), input, {pooled, rows, width, width}, scores,
                         settings_.logits, scratch);
  return version.step;
}

}  // namespace shardrec::serving
