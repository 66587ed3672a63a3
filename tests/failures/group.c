/* The life of one group, as this rank lives it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "sharded.h"

typedef struct group {
  const host *host;
  int generation, rank, size, troubled;
  const char *phase;
  int on_mesh; /* the last call was of a group of the mesh */
  ending how;
  shardrec_rendezvous *meeting; /* of the lowest rank */
  shardrec_comm *comm;
  shardrec_mesh *mesh;
  shardrec_model *model, *small_model;
  shardrec_plan *plan, *mesh_plan, *small_plan;
  shardrec_collection *tables, *replicas, *small_tables;
  shardrec_lookup *lookup, *replica_lookup;
  shardrec_ddp *ddp;
  sharded sharded; /* that has the dense weights in the place of ddp, where the host says so */
  float dense[MOST_WIDTH], dense_gradient[MOST_WIDTH];
  shardrec_tensor dense_here, dense_gradient_here; /* views of them */
  dense_memory on_device;                          /* what the set has of them, on a device */
  float out[BATCH * MOST_WIDTH], gradient[BATCH * MOST_WIDTH];
  int64_t width;
  batch batch;
  /* A second thread reads rows once a step. */
  pthread_t reader;
  int has_reader, asked, stop;
  sem_t ask, answer;
  ending reader_ended;
} group;

#define TRY(call) \
  if ((call) != 0) return -1

/* Of a group of the mesh, which may die before the communicator does. */
#define TRY_ON_MESH(call) \
  me->on_mesh = 1;        \
  TRY(call);              \
  me->on_mesh = 0

static void enter(group *me, const char *phase, int step) {
  me->phase = phase;
  enter_phase(me->host, me->troubled, phase, step);
}

/* The token travels as a file. */
static int pass_token(const group *me, char *token, size_t room) {
  char path[512], draft[520];
  snprintf(path, sizeof path, "%s/token.%d", me->host->folder, me->generation);
  if (me->rank == 0) {
    snprintf(draft, sizeof draft, "%s.new", path);
    FILE *file = fopen(draft, "w");
    if (file == NULL || fputs(token, file) < 0 || fclose(file) != 0) return -1;
    return rename(draft, path);
  }
  for (int i = 0; i < 6000; ++i) {
    FILE *file = fopen(path, "r");
    if (file != NULL) {
      const char *line = fgets(token, (int)room, file);
      fclose(file);
      return line == NULL ? -1 : 0;
    }
    rest(0.005);
  }
  return -1;
}

static int meet(group *me) {
  char token[600] = "";
  shardrec_options *options = NULL;
  /* A rank that has not come yet when it dies is one that never comes: others give it this long. */
  const int dies_in_create = me->generation == 1 && strcmp(me->host->trouble.phase, "create") == 0;
  const int by_mpi = me->host->engine == SHARDREC_ENGINE_MPI;
  if (!by_mpi) {
    if (me->rank == 0) {
      char *text = NULL;
      TRY(shardrec_rendezvous_create(NULL, &me->meeting));
      TRY(shardrec_rendezvous_token(me->meeting, &text));
      snprintf(token, sizeof token, "%s", text);
      shardrec_text_free(text);
    }
    if (pass_token(me, token, sizeof token) != 0) {
      say(me->host, "no token: %s", strerror(errno));
      _exit(4);
    }
  }
  TRY(shardrec_options_create(SHARDREC_OPTIONS_COMM, &options));
  if (dies_in_create) {
    shardrec_options_set_f64(options, SHARDREC_OPTION_COMM_SETUP_SECONDS, CREATE_SECONDS);
  }
  enter(me, "create", 0);
  const shardrec_status status =
      by_mpi
          ? shardrec_comm_create(SHARDREC_ENGINE_MPI, -1, -1, NULL, options, &me->comm)
          : shardrec_comm_create(me->host->engine, me->rank, me->size, token, options, &me->comm);
  shardrec_options_destroy(&options);
  if (status != SHARDREC_OK) return -1;
  if (me->host->limit > 0) {
    TRY(shardrec_comm_set_f64(me->comm, SHARDREC_COMM_STEP_SECONDS, me->host->limit));
  }
  return 0;
}

static void *read_rows(void *argument) {
  group *me = argument;
  float rows[8 * 4];
  shardrec_tensor view;
  shardrec_tensor_matrix(rows, SHARDREC_FLOAT32, 8, 4, &view);
  for (;;) {
    while (sem_wait(&me->ask) != 0) {
    }
    if (me->stop) return NULL;
    if (shardrec_collection_read_range(me->small_tables, 0, SHARDREC_TABLE_WEIGHTS, 0, 8, &view) !=
        SHARDREC_OK) {
      me->reader_ended = report_failure(me->host, "reader", "read");
    }
    sem_post(&me->answer);
  }
}

static int plan_tables(group *me) {
  shardrec_options *options = NULL;
  shardrec_topology *topology = NULL;
  const int32_t sharding = me->size % 2 == 0 ? 2 : me->size;
  TRY(make_model(&me->model));
  TRY(shardrec_model_create(NULL, &me->small_model));
  TRY(shardrec_model_add_table(me->small_model, "small", 8, 4, NULL, NULL));
  TRY(shardrec_model_add_feature(me->small_model, 0, "small", SHARDREC_POOLING_SUM));
  TRY(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
  /* Whole tables have the bits of replicated ones. */
  TRY(shardrec_options_set_i64(
      options, SHARDREC_OPTION_SHARDING,
      me->host->replicated ? SHARDREC_SHARDING_TABLE_WISE : SHARDREC_SHARDING_MIXED));
  enter(me, "plan", 0);
  const shardrec_status planned =
      shardrec_plan_collective(me->comm, NULL, me->model, options, &me->plan);
  if (planned == SHARDREC_OK) {
    TRY(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, SHARDREC_SHARDING_ROW_WISE));
    TRY(shardrec_topology_create(sharding, sharding, NULL, &topology));
    if (me->host->replicated) {
      TRY(shardrec_options_set_i64(options, SHARDREC_OPTION_REPLICATION,
                                   SHARDREC_REPLICATION_SAMPLES));
      TRY(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING,
                                   SHARDREC_SHARDING_DATA_PARALLEL));
    }
    TRY(shardrec_plan_create(me->model, topology, options, &me->mesh_plan));
    TRY(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, SHARDREC_SHARDING_ROW_WISE));
    shardrec_topology_destroy(&topology);
    TRY(shardrec_topology_create(me->size, me->size, NULL, &topology));
    TRY(shardrec_plan_create(me->small_model, topology, options, &me->small_plan));
    shardrec_topology_destroy(&topology);
  }
  shardrec_options_destroy(&options);
  if (planned != SHARDREC_OK) return -1;
  enter(me, "mesh", 0);
  TRY(shardrec_mesh_create(me->comm, sharding, NULL, &me->mesh));
  return 0;
}

/* One thread per collection: oneTBB keeps its workers, and how many it has started by the end of
 * the first group is up to chance. */
static int create_collections(group *me, const shardrec_options *options) {
  TRY(shardrec_collection_create(me->comm, NULL, me->model, me->plan, options, &me->tables));
  TRY(shardrec_collection_create(me->comm, me->mesh, me->model, me->mesh_plan, options,
                                 &me->replicas));
  TRY(shardrec_collection_create(me->comm, NULL, me->small_model, me->small_plan, options,
                                 &me->small_tables));
  return 0;
}

static void enter_of(void *of, const char *phase, int step) { enter(of, phase, step); }

/* The set, in the order of the calls of all ranks: it is NCCL that adds up, where there is NCCL. */
static int create_ddp(group *me) {
  if (me->host->sharded) {
    return make_sharded(&me->sharded, me->comm, (phases){enter_of, me}, me->dense, me->width);
  }
  shardrec_options *options = NULL;
  const int on_device = me->on_device.memory != NULL;
  TRY(shardrec_options_create(SHARDREC_OPTIONS_DDP, &options));
  if (me->host->engine == SHARDREC_ENGINE_NCCL) {
    TRY(shardrec_options_set_i64(options, SHARDREC_OPTION_DDP_REDUCTION,
                                 SHARDREC_DDP_REDUCTION_NCCL));
  }
  const shardrec_status created = shardrec_ddp_create(me->comm, options, &me->ddp);
  shardrec_options_destroy(&options);
  TRY(created);
  TRY(shardrec_ddp_add_parameter(
      me->ddp, "dense", on_device ? &me->on_device.weights : &me->dense_here,
      on_device ? &me->on_device.gradients : &me->dense_gradient_here, NULL));
  enter(me, "commit", 0);
  TRY(shardrec_ddp_commit(me->ddp));
  if (on_device) TRY(shardrec_tensor_copy(&me->dense_here, &me->on_device.weights, 0));
  return 0;
}

/* The gradients of all ranks; a set of sharded parameters takes its step too. */
static int reduce(group *me, int step) {
  if (me->host->sharded) return reduce_and_step(&me->sharded, step, me->dense_gradient);
  if (me->on_device.memory == NULL) return shardrec_ddp_all_reduce(me->ddp);
  TRY(shardrec_tensor_copy(&me->on_device.gradients, &me->dense_gradient_here, 0));
  TRY(shardrec_ddp_all_reduce(me->ddp));
  return shardrec_tensor_copy(&me->dense_gradient_here, &me->on_device.gradients, 0);
}

static int make_tables(group *me) {
  shardrec_options *options = NULL;
  TRY(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
  TRY(shardrec_options_set_i64(options, SHARDREC_OPTION_THREADS, 1));
  const int devices = me->host->devices;
  /* The process' own, whatever its rank: it keeps threads for each device that it has used. */
  const int device = devices > 0 ? me->host->number % devices : 0;
  if (devices > 0) TRY(shardrec_options_set_i64(options, SHARDREC_OPTION_DEVICE, device));
  enter(me, "collection", 0);
  const int created = create_collections(me, options);
  shardrec_options_destroy(&options);
  TRY(created);
  TRY(shardrec_lookup_create(me->tables, NULL, &me->lookup));
  TRY(shardrec_lookup_create(me->replicas, NULL, &me->replica_lookup));
  shardrec_model_size size = {.struct_size = sizeof size};
  TRY(shardrec_model_info(me->model, &size));
  me->width = size.width;
  for (int i = 0; i < me->width; ++i) me->dense[i] = (float)(me->rank + i % 5) * 0.125f;
  TRY(shardrec_tensor_vector(me->dense, SHARDREC_FLOAT32, me->width, &me->dense_here));
  TRY(shardrec_tensor_vector(me->dense_gradient, SHARDREC_FLOAT32, me->width,
                             &me->dense_gradient_here));
  if (devices > 0) {
    TRY(make_dense_memory(device, me->width, &me->on_device));
    TRY(shardrec_tensor_copy(&me->on_device.weights, &me->dense_here, 0));
  }
  TRY(create_ddp(me));
  if (pthread_create(&me->reader, NULL, read_rows, me) != 0) return -1;
  me->has_reader = 1;
  return 0;
}

/* Squared error of a linear function of the output; adds to the gradient of the dense weights. */
static void learn(group *me) {
  for (int b = 0; b < BATCH; ++b) {
    const float *row = me->out + b * me->width;
    float error = -me->batch.targets[b];
    for (int c = 0; c < me->width; ++c) error += row[c] * me->dense[c];
    error /= BATCH;
    for (int c = 0; c < me->width; ++c) {
      me->gradient[b * me->width + c] = error * me->dense[c];
      me->dense_gradient[c] += error * row[c];
    }
  }
}

static ending hear_reader(group *me) {
  while (me->asked && sem_wait(&me->answer) != 0) {
  }
  me->asked = 0;
  return me->reader_ended;
}

static int train(group *me, int steps) {
  shardrec_tensor out, gradient;
  const int overlaps = me->host->engine != SHARDREC_ENGINE_NCCL;
  TRY(shardrec_tensor_matrix(me->out, SHARDREC_FLOAT32, BATCH, me->width, &out));
  TRY(shardrec_tensor_matrix(me->gradient, SHARDREC_FLOAT32, BATCH, me->width, &gradient));
  for (int step = 0; step < steps; ++step) {
    TRY(make_batch(&me->batch, me->rank, step));
    enter(me, "begin", step);
    sem_post(&me->ask);
    me->asked = 1;
    TRY(shardrec_lookup_begin(me->lookup, &(shardrec_batch){.struct_size = sizeof(shardrec_batch),
                                                            .batch_size = BATCH,
                                                            .values = &me->batch.id_view,
                                                            .lengths = &me->batch.length_view}));
    TRY_ON_MESH(shardrec_lookup_begin(me->replica_lookup,
                                      &(shardrec_batch){.struct_size = sizeof(shardrec_batch),
                                                        .batch_size = BATCH,
                                                        .values = &me->batch.id_view,
                                                        .lengths = &me->batch.length_view}));
    enter(me, "forward", step); /* the inputs are on their way */
    memset(me->dense_gradient, 0, sizeof me->dense_gradient);
    if (me->host->sharded) TRY(gather_weights(&me->sharded, step, me->dense));
    TRY(shardrec_lookup_forward(me->lookup, 0, &out));
    learn(me);
    TRY(shardrec_lookup_set_gradient(me->lookup, 0, &gradient));
    TRY_ON_MESH(shardrec_lookup_forward(me->replica_lookup, 0, &out));
    learn(me);
    TRY(shardrec_lookup_set_gradient(me->replica_lookup, 0, &gradient));
    enter(me, "backward", step);
    TRY(shardrec_lookup_backward(me->lookup, SHARDREC_UPDATE_APPLY));
    TRY_ON_MESH(shardrec_lookup_backward(me->replica_lookup, SHARDREC_UPDATE_APPLY));
    enter(me, "reduce", step);
    TRY(reduce(me, step));
    for (int c = 0; !me->host->sharded && c < me->width; ++c)
      me->dense[c] -= 0.01f * me->dense_gradient[c];
    enter(me, "sync_wait", step);
    if (step > 0 && overlaps) {
      TRY_ON_MESH(shardrec_collection_sync_wait(me->replicas));
    }
    enter(me, "sync", step);
    TRY_ON_MESH(shardrec_collection_sync_replicas(me->replicas));
    enter(me, "sync_begin", step); /* its rows are on their way during the next step */
    if (step + 1 < steps && overlaps) {
      TRY_ON_MESH(shardrec_collection_sync_begin(me->replicas));
    }
    if (hear_reader(me).failed) return -2;
  }
  return 0;
}

static int finish(group *me) {
  uint64_t digest = (uint64_t)me->size, of_replicas = digest;
  TRY(digest_tables(me->tables, &digest));
  TRY_ON_MESH(digest_tables(me->replicas, &of_replicas));
  if (me->host->replicated && of_replicas != digest) {
    say(me->host, "tables that the mesh replicates are not those of all ranks without a mesh");
  }
  digest = shardrec_hash64(digest, &of_replicas, (int64_t)sizeof of_replicas);
  if (me->host->sharded) TRY(read_whole(&me->sharded, me->dense));
  digest = shardrec_hash64(digest, me->dense, (int64_t)sizeof me->dense);
  enter(me, "barrier", 0);
  TRY(shardrec_comm_barrier(me->comm));
  enter(me, "close", 0);
  TRY(shardrec_comm_close(me->comm));
  say(me->host, "digest %d %016" PRIx64, me->generation, digest);
  return 0;
}

/* Every later call says the same, at once. Where a deadline tells of a rank, as all do over MPI, what
 * is dead after a call on the mesh is that call's group, and its own names of ranks count. */
static void call_again(group *me) {
  const char *const names[] = {"status", "barrier", "all_reduce", "read", "begin", "on mesh"};
  const shardrec_status expected = me->how.status;
  const int by_deadline = expected == SHARDREC_TIMEOUT || me->host->engine == SHARDREC_ENGINE_MPI;
  const int mesh_only = me->on_mesh && by_deadline;
  float one = 1;
  shardrec_tensor view;
  shardrec_tensor_vector(&one, SHARDREC_FLOAT32, 1, &view);
  for (int i = mesh_only ? 5 : 0; i < (mesh_only ? 6 : 5); ++i) {
    const int64_t start = nanoseconds();
    shardrec_status status = expected;
    int64_t rank = -1;
    if (i == 0) status = shardrec_comm_status(me->comm);
    if (i == 1) status = shardrec_comm_barrier(me->comm);
    if (i == 2) status = shardrec_comm_all_reduce(me->comm, &view, SHARDREC_REDUCTION_SUM);
    if (i == 3 && me->tables == NULL) continue;
    if (i == 3)
      status = shardrec_collection_read_range(me->tables, 0, SHARDREC_TABLE_WEIGHTS, 0, 0, NULL);
    if (i == 4 && (me->lookup == NULL || strcmp(me->phase, "forward") == 0)) continue;
    if (i == 4) {
      status =
          shardrec_lookup_begin(me->lookup, &(shardrec_batch){.struct_size = sizeof(shardrec_batch),
                                                              .batch_size = BATCH,
                                                              .values = &me->batch.id_view,
                                                              .lengths = &me->batch.length_view});
      if (status == SHARDREC_INVALID_STATE) continue; /* it had begun */
    }
    if (i == 5) {
      status =
          strcmp(me->phase, "sync") == 0         ? shardrec_collection_sync_replicas(me->replicas)
          : strcmp(me->phase, "sync_begin") == 0 ? shardrec_collection_sync_begin(me->replicas)
          : strcmp(me->phase, "sync_wait") == 0
              ? shardrec_collection_sync_wait(me->replicas)
              : shardrec_collection_read_range(me->replicas, 0, SHARDREC_TABLE_WEIGHTS, 0, 0, NULL);
    }
    shardrec_last_error_i64(SHARDREC_ERROR_RANK, &rank);
    if (status != expected || rank != me->how.failed_rank || nanoseconds() - start > 500000000) {
      say(me->host, "later %s gave %s, rank %" PRId64 ", after %" PRId64 " ns: %s", names[i],
          shardrec_status_name(status), rank, nanoseconds() - start, shardrec_last_error());
    }
  }
}

static void stop_reader(group *me) {
  if (!me->has_reader) return;
  const ending heard = hear_reader(me);
  if (!me->how.failed) me->how = heard;
  me->stop = 1;
  sem_post(&me->ask);
  pthread_join(me->reader, NULL);
}

static void destroy(group *me) {
  const int64_t start = nanoseconds();
  shardrec_lookup_destroy(&me->lookup);
  shardrec_lookup_destroy(&me->replica_lookup);
  shardrec_ddp_destroy(&me->ddp);
  shardrec_fsdp_destroy(&me->sharded.set);
  shardrec_memory_destroy(&me->on_device.memory);
  shardrec_collection_destroy(&me->tables);
  shardrec_collection_destroy(&me->replicas);
  shardrec_collection_destroy(&me->small_tables);
  shardrec_mesh_destroy(&me->mesh);
  shardrec_plan_destroy(&me->plan);
  shardrec_plan_destroy(&me->mesh_plan);
  shardrec_plan_destroy(&me->small_plan);
  shardrec_model_destroy(&me->model);
  shardrec_model_destroy(&me->small_model);
  shardrec_comm_destroy(&me->comm);
  shardrec_rendezvous_destroy(&me->meeting);
  say(me->host, "destroyed %d %" PRId64, me->generation, nanoseconds() - start);
}

/* A group that could not form: its meeting is there until the others have heard so, or whoever
 * comes late would hear only that nothing listens any more. */
static void wait_for_others(const group *me) {
  char path[512];
  for (int number = 0; number < me->size; ++number) {
    if (number == me->rank || number == me->host->trouble.rank) continue;
    snprintf(path, sizeof path, "%s/gave_up.%d", me->host->folder, number);
    for (int i = 0; i < 500 && access(path, F_OK) != 0; ++i) rest(0.01);
  }
}

static void give_up(const group *me) {
  char path[512];
  snprintf(path, sizeof path, "%s/gave_up.%d", me->host->folder, me->rank);
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
  if (me->meeting != NULL && me->comm == NULL) wait_for_others(me);
}

static int live_well(group *me, int steps) {
  TRY(meet(me));
  TRY(plan_tables(me));
  TRY(make_tables(me));
  const int trained = train(me, steps);
  return trained != 0 ? trained : finish(me);
}

ending live(const host *process, int generation, int rank, int size, int steps, int troubled) {
  group *me = calloc(1, sizeof *me);
  if (me == NULL) _exit(5);
  me->host = process;
  me->generation = generation;
  me->rank = rank;
  me->size = size;
  me->troubled = troubled;
  me->phase = "start";
  sem_init(&me->ask, 0, 0);
  sem_init(&me->answer, 0, 0);
  const int lived = live_well(me, steps);
  if (lived == -1) me->how = report_failure(process, "main", me->phase);
  stop_reader(me);
  if (lived != 0 && generation == 1) give_up(me);
  if (lived != 0 && me->comm != NULL) {
    call_again(me);
    check_failed_set(process, &me->sharded, &me->how);
  }
  enter(me, "destroy", 0);
  destroy(me);
  sem_destroy(&me->ask);
  sem_destroy(&me->answer);
  const ending how = me->how;
  free(me);
  return how;
}
