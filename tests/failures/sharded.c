#include "sharded.h"

#include <inttypes.h>
#include <string.h>

#define TRY(call)                                     \
  do {                                                \
    const shardrec_status its_status = (call);        \
    if (its_status != SHARDREC_OK) return its_status; \
  } while (0)

static void enter(const sharded *me, const char *phase, int step) {
  me->phases.enter(me->phases.of, phase, step);
}

static shardrec_status vector_of(float *data, int64_t count, shardrec_tensor *out) {
  return shardrec_tensor_vector(data, SHARDREC_FLOAT32, count, out);
}

shardrec_status make_sharded(sharded *me, shardrec_comm *comm, phases told, float *weights,
                             int64_t count) {
  static const char *const kUnits[UNITS] = {"lower", "upper"};
  shardrec_options *options = NULL;
  me->phases = told;
  me->sizes[0] = count / 3;
  me->sizes[1] = count - me->sizes[0];
  TRY(shardrec_fsdp_create(comm, NULL, NULL, &me->set));
  for (int32_t u = 0; u < UNITS; ++u) {
    TRY(shardrec_fsdp_add_unit(me->set, kUnits[u], NULL));
    TRY(shardrec_fsdp_add_parameter(me->set, u, kUnits[u], me->sizes[u], 0, NULL));
  }
  /* Its step is collective. */
  TRY(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
  shardrec_status status =
      shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER, SHARDREC_OPTIMIZER_LAMB);
  if (status == SHARDREC_OK) status = shardrec_fsdp_set_optimizer(me->set, options);
  shardrec_options_destroy(&options);
  TRY(status);
  enter(me, "fsdp_commit", 0);
  TRY(shardrec_fsdp_commit(me->set));
  enter(me, "set_full", 0);
  for (int32_t u = 0; u < UNITS; ++u) {
    shardrec_tensor view;
    TRY(vector_of(weights, me->sizes[u], &view));
    TRY(shardrec_fsdp_set_full(me->set, u, SHARDREC_FSDP_VALUES, &view, 0));
    weights += me->sizes[u];
  }
  return SHARDREC_OK;
}

shardrec_status gather_weights(sharded *me, int step, float *weights) {
  TRY(shardrec_fsdp_begin(me->set, 1));
  enter(me, "unshard", step);
  for (int32_t u = 0; u < UNITS; ++u) {
    shardrec_tensor view;
    TRY(shardrec_fsdp_unshard(me->set, u));
    TRY(shardrec_fsdp_wait_unshard(me->set, u));
    TRY(shardrec_fsdp_parameter(me->set, u, &view));
    memcpy(weights, view.data, (size_t)me->sizes[u] * sizeof *weights);
    TRY(shardrec_fsdp_reshard(me->set, u));
    weights += me->sizes[u];
  }
  return SHARDREC_OK;
}

/* Of this rank, one behind the other. */
static shardrec_status copy_shards(sharded *me, float *out) {
  for (int32_t u = 0; u < UNITS; ++u) {
    shardrec_tensor view;
    int64_t offset = 0;
    TRY(shardrec_fsdp_shard(me->set, u, SHARDREC_FSDP_VALUES, &offset, &view));
    if (view.shape[0] > 0) memcpy(out, view.data, (size_t)view.shape[0] * sizeof *out);
    out += view.shape[0];
  }
  return SHARDREC_OK;
}

shardrec_status reduce_and_step(sharded *me, int step, const float *gradient) {
  enter(me, "mark_ready", step);
  for (int32_t u = UNITS - 1; u >= 0; --u) {
    shardrec_tensor view;
    const float *const its = gradient + (u == 0 ? 0 : me->sizes[0]);
    TRY(shardrec_fsdp_unshard(me->set, u));
    TRY(shardrec_fsdp_wait_unshard(me->set, u));
    TRY(shardrec_fsdp_gradient(me->set, u, &view));
    for (int64_t i = 0; i < me->sizes[u]; ++i) ((float *)view.data)[i] += its[i];
    TRY(shardrec_fsdp_mark_ready(me->set, u));
  }
  TRY(shardrec_fsdp_end(me->set));
  enter(me, "fsdp_wait", step);
  TRY(shardrec_fsdp_wait(me->set));
  TRY(copy_shards(me, me->before));
  me->has_before = 1;
  me->has_after = 0;
  enter(me, "fsdp_step", step);
  TRY(shardrec_fsdp_clip_gradients(me->set, SHARDREC_CLIP_L2, 0.5, NULL));
  TRY(shardrec_fsdp_step(me->set));
  TRY(copy_shards(me, me->after));
  me->has_after = 1;
  return shardrec_fsdp_zero_gradients(me->set);
}

shardrec_status read_whole(sharded *me, float *weights) {
  enter(me, "full", 0);
  for (int32_t u = 0; u < UNITS; ++u) {
    shardrec_tensor view;
    TRY(vector_of(weights, me->sizes[u], &view));
    TRY(shardrec_fsdp_full(me->set, u, SHARDREC_FSDP_VALUES, &view));
    weights += me->sizes[u];
  }
  return SHARDREC_OK;
}

void check_failed_set(const host *process, sharded *me, const ending *how) {
  float left[MOST_WIDTH] = {0};
  int64_t rank = -1;
  if (me->set == NULL || !me->has_before) return;
  const shardrec_status status = copy_shards(me, left);
  if (status != SHARDREC_OK) {
    say(process, "a shard after the failure is %s: %s", shardrec_status_name(status),
        shardrec_last_error());
    return;
  }
  const float *const expected = me->has_after ? me->after : me->before;
  if (memcmp(left, expected, sizeof left) != 0) {
    say(process, "shards after the failure are not those that a step left");
  }
  const int64_t start = nanoseconds();
  const shardrec_status again = shardrec_fsdp_check_equal(me->set);
  shardrec_last_error_i64(SHARDREC_ERROR_RANK, &rank);
  if (again != how->status || rank != how->failed_rank || nanoseconds() - start > 500000000) {
    say(process, "later check_equal gave %s, rank %" PRId64 ": %s", shardrec_status_name(again),
        rank, shardrec_last_error());
  }
}
