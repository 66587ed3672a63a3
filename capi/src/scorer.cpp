#include "shardrec/scorer.h"

#include <memory>
#include <string>

#include "compute/cpu/kernels/dispatch.h"
#include "guard.h"
#include "objects/control_object.h"
#include "objects/model_object.h"
#include "options.h"
#include "serving/scorer.h"
#include "structs.h"

namespace shardrec::capi {

template <>
struct Handle<shardrec_scorer> {
  using Object = serving::Scorer;
  static constexpr Kind kKind = Kind::kScorer;
};

namespace {

serving::Settings settings_from(const Options& options) {
  const auto non_finite = options.choice<shardrec_non_finite>(SHARDREC_OPTION_NON_FINITE);
  if (non_finite == SHARDREC_NON_FINITE_SKIP) {
    refuse_value("option NON_FINITE of a scorer", int64_t{non_finite},
                 "SHARDREC_NON_FINITE_ALLOW (0) or _ERROR (1)");
  }
  return {.tables = options.choice<shardrec_served_tables>(SHARDREC_OPTION_SERVED_TABLES),
          .collection = options.text(SHARDREC_OPTION_SERVED_COLLECTION),
          .bottom = options.text(SHARDREC_OPTION_BOTTOM_LAYERS),
          .top = options.text(SHARDREC_OPTION_TOP_LAYERS),
          .logits = options.i64(SHARDREC_OPTION_LOGITS) != 0,
          .non_finite = non_finite};
}

shardrec_batch batch_from(const shardrec_batch* given) {
  const shardrec_batch batch = read_struct(given, "batch");
  if (batch.batch_sizes != nullptr || batch.inverse != nullptr) {
    core::fail(
        SHARDREC_UNSUPPORTED,
        "the batch has batch_sizes or inverse, which a scorer does not take; NULL is accepted");
  }
  return batch;
}

int64_t require_step(int64_t step) {
  if (step < -1) refuse_value("step", step, "-1 (the newest), or the step of a checkpoint,");
  return step;
}

}  // namespace
}  // namespace shardrec::capi

using namespace shardrec::capi;
namespace plan = shardrec::plan;
namespace serving = shardrec::serving;

shardrec_status shardrec_scorer_open(const char* directory, int64_t step,
                                     const shardrec_options* options, shardrec_control* control,
                                     shardrec_scorer** out) {
  return guard([&] {
    require_out(out, "out");
    shardrec::compute::require_cpu_target();
    const Options values = read_options(options, SHARDREC_OPTIONS_SCORER);
    const auto progress = shared_control(control);
    create(out, std::make_shared<serving::Scorer>(std::string(require_text(directory, "directory")),
                                                  require_step(step), settings_from(values),
                                                  progress.get()));
  });
}

void shardrec_scorer_destroy(shardrec_scorer** scorer) { destroy(scorer); }

shardrec_status shardrec_scorer_refresh(shardrec_scorer* scorer, int64_t step,
                                        shardrec_control* control, int64_t* out_step) {
  return guard([&] {
    const auto use = enter(scorer, Access::kExclusive);
    const auto progress = shared_control(control);
    const int64_t served = use->refresh(require_step(step), progress.get());
    if (out_step != nullptr) *out_step = served;
  });
}

shardrec_status shardrec_scorer_model(const shardrec_scorer* scorer, shardrec_model** out) {
  return guard([&] {
    const auto use = enter(scorer, Access::kShared);
    require_out(out, "out");
    create(out, std::make_shared<plan::Model>(use->model()));
  });
}

shardrec_status shardrec_scorer_info(const shardrec_scorer* scorer, shardrec_served* out) {
  return guard([&] {
    const serving::Info info = enter(scorer, Access::kShared)->info();
    write_struct(out, "out",
                 shardrec_served{.struct_size = sizeof(shardrec_served),
                                 .step = info.step,
                                 .dense_columns = info.dense_columns,
                                 .scores = info.scores});
  });
}

shardrec_status shardrec_scorer_lookup(const shardrec_scorer* scorer, int32_t output,
                                       const shardrec_batch* batch, const shardrec_tensor* out,
                                       int64_t* out_step) {
  return guard([&] {
    const int64_t step = enter(scorer, Access::kShared)->look_up(output, batch_from(batch), out);
    if (out_step != nullptr) *out_step = step;
  });
}

shardrec_status shardrec_scorer_predict(const shardrec_scorer* scorer, const shardrec_batch* batch,
                                        const shardrec_tensor* dense, const shardrec_tensor* out,
                                        int64_t* out_step) {
  return guard([&] {
    const int64_t step = enter(scorer, Access::kShared)->predict(dense, batch_from(batch), out);
    if (out_step != nullptr) *out_step = step;
  });
}
