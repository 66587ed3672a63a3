/* misuse_host SCENARIO: one rank of three, started by `shardrec launch`, of which rank 1 does what
 * no rank should. Prints, a line each, "rank R: CALL STATUS FAILED_RANK | SENTENCE" of calls that fail
 * and, where training goes on, "rank R: digest BITS". Ends with 0 unless it could not be set up. */
#include <inttypes.h>
#include <shardrec/shardrec.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 100, DIM = 8, SAMPLES = 4, FEATURES = 2, STEPS = 4, FAILED_RANK = 1 };

typedef struct trainer {
  const char *scenario;
  int32_t rank;
  shardrec_comm *comm;
  shardrec_model *model;
  shardrec_plan *plan;
  shardrec_collection *tables;
  shardrec_lookup *lookup;
} trainer;

static int is(const trainer *me, const char *scenario) {
  return me->rank == FAILED_RANK && strcmp(me->scenario, scenario) == 0;
}

static shardrec_status tell(const trainer *me, const char *call, shardrec_status status) {
  int64_t failed_rank = -1;
  if (status == SHARDREC_OK) return status;
  shardrec_last_error_i64(SHARDREC_ERROR_RANK, &failed_rank);
  printf("rank %d: %s %s %" PRId64 " | %s\n", me->rank, call, shardrec_status_name(status),
         failed_rank, shardrec_last_error());
  return status;
}

static shardrec_status make_model(trainer *me) {
  const char *names[FEATURES] = {"first", "second"};
  shardrec_status status = shardrec_model_create(NULL, &me->model);
  for (int i = 0; status == SHARDREC_OK && i < FEATURES; ++i) {
    const int at = is(me, "other_order") ? FEATURES - 1 - i : i;
    status = shardrec_model_add_table(me->model, names[at], ROWS, DIM, NULL, NULL);
    if (status == SHARDREC_OK) {
      status = shardrec_model_add_feature(me->model, i, names[at], SHARDREC_POOLING_SUM);
    }
  }
  return status;
}

static shardrec_status make_plan(trainer *me) {
  shardrec_options *options = NULL;
  shardrec_topology *topology = NULL;
  const int64_t sharding =
      is(me, "other_plan") ? SHARDREC_SHARDING_TABLE_WISE : SHARDREC_SHARDING_ROW_WISE;
  if (strcmp(me->scenario, "other_plan") != 0) {
    return tell(me, "plan", shardrec_plan_collective(me->comm, NULL, me->model, NULL, &me->plan));
  }
  shardrec_status status = shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options);
  if (status == SHARDREC_OK) {
    status = shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, sharding);
  }
  if (status == SHARDREC_OK) status = shardrec_topology_create(3, 3, NULL, &topology);
  if (status == SHARDREC_OK) status = shardrec_plan_create(me->model, topology, options, &me->plan);
  shardrec_topology_destroy(&topology);
  shardrec_options_destroy(&options);
  return tell(me, "plan", status);
}

static shardrec_status take_step(trainer *me, int step) {
  int64_t ids[FEATURES * SAMPLES], lengths[FEATURES * SAMPLES];
  float out[SAMPLES * FEATURES * DIM];
  shardrec_tensor id_view, length_view, out_view;
  for (int i = 0; i < FEATURES * SAMPLES; ++i) {
    ids[i] = (7 * step + 3 * i + me->rank) % ROWS;
    lengths[i] = 1;
  }
  if (step == 1 && is(me, "bad_batch")) ids[5] = ROWS + 23;
  shardrec_tensor_vector(ids, SHARDREC_INT64, FEATURES * SAMPLES, &id_view);
  shardrec_tensor_vector(lengths, SHARDREC_INT64, FEATURES * SAMPLES, &length_view);
  shardrec_tensor_matrix(out, SHARDREC_FLOAT32, SAMPLES, FEATURES * DIM, &out_view);
  shardrec_status status = tell(
      me, "begin",
      shardrec_lookup_begin(me->lookup, &(shardrec_batch){.struct_size = sizeof(shardrec_batch),
                                                          .batch_size = SAMPLES,
                                                          .values = &id_view,
                                                          .lengths = &length_view}));
  if (status != SHARDREC_OK) return status;
  status = tell(me, "forward", shardrec_lookup_forward(me->lookup, 0, &out_view));
  if (status != SHARDREC_OK) return status;
  for (int i = 0; i < SAMPLES * FEATURES * DIM; ++i) out[i] -= 1;
  status = shardrec_lookup_set_gradient(me->lookup, 0, &out_view);
  if (status != SHARDREC_OK) return tell(me, "set_gradient", status);
  return tell(me, "backward", shardrec_lookup_backward(me->lookup, SHARDREC_UPDATE_APPLY));
}

static shardrec_status print_digest(const trainer *me) {
  uint64_t digest = 0;
  for (int32_t table = 0; table < FEATURES; ++table) {
    float rows[ROWS * DIM];
    shardrec_tensor view;
    shardrec_tensor_matrix(rows, SHARDREC_FLOAT32, ROWS, DIM, &view);
    const shardrec_status status = tell(
        me, "read",
        shardrec_collection_read_range(me->tables, table, SHARDREC_TABLE_WEIGHTS, 0, ROWS, &view));
    if (status != SHARDREC_OK) return status;
    digest = shardrec_hash64(digest, rows, (int64_t)sizeof rows);
  }
  printf("rank %d: digest %016" PRIx64 "\n", me->rank, digest);
  return SHARDREC_OK;
}

static void train(trainer *me) {
  for (int step = 0; step < STEPS; ++step) {
    if (step == STEPS - 1 && is(me, "ends_early")) return;
    if (step == STEPS - 1 && is(me, "closes_early")) break;
    const shardrec_status status = take_step(me, step);
    if (status == SHARDREC_INVALID_BATCH) continue;
    if (status != SHARDREC_OK) return;
  }
  if (!is(me, "closes_early") && print_digest(me) != SHARDREC_OK) return;
  tell(me, "close", shardrec_comm_close(me->comm));
}

static int live(trainer *me) {
  if (shardrec_comm_create_from_env(NULL, &me->comm) != SHARDREC_OK) return 1;
  shardrec_comm_rank(me->comm, &me->rank);
  shardrec_comm_set_f64(me->comm, SHARDREC_COMM_STEP_SECONDS, 3);
  shardrec_comm_set_f64(me->comm, SHARDREC_COMM_SETUP_SECONDS, 3);
  if (make_model(me) != SHARDREC_OK) return 1;
  if (make_plan(me) != SHARDREC_OK) return 0;
  if (tell(me, "collection",
           shardrec_collection_create(me->comm, NULL, me->model, me->plan, NULL, &me->tables)) !=
      SHARDREC_OK) {
    return 0;
  }
  if (shardrec_lookup_create(me->tables, NULL, &me->lookup) != SHARDREC_OK) return 1;
  train(me);
  return 0;
}

int main(int count, char **words) {
  trainer me;
  memset(&me, 0, sizeof me);
  me.rank = -1;
  me.scenario = count == 2 ? words[1] : "";
  const int status = live(&me);
  if (status != 0) fprintf(stderr, "misuse_host: %s\n", shardrec_last_error());
  shardrec_lookup_destroy(&me.lookup);
  shardrec_collection_destroy(&me.tables);
  shardrec_plan_destroy(&me.plan);
  shardrec_model_destroy(&me.model);
  shardrec_comm_destroy(&me.comm);
  return status;
}
