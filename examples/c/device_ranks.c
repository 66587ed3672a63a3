/* Two ranks, threads of this process, with a GPU each: tables sharded over both, layers on each, gradients of the
 * layers averaged between them. What a step computes stays on the devices, in the order of a stream of each thread;
 * the host copies ids and labels there, and asks for the loss now and then. NCCL carries what ranks exchange
 * where it is found and there are two devices; else they read each other's memory. It learns which users click.
 * Where there is no device, or no cuBLASLt for the layers, it says why. */
#include <pthread.h>
#include <shardrec/shardrec.h>
#include <stdint.h>
#include <stdio.h>

enum { RANKS = 2, USERS = 200, DIM = 8, HIDDEN = 16, BATCH = 64, IDS = 3, STEPS = 120, ASK = 40 };
/* The value of a cudaStream_t: cudaStreamPerThread, the default stream of the calling thread. A program with CUDA
 * kernels of its own gives the one that it enqueues them in. */
#define STREAM 2

typedef struct {
  shardrec_local *group;
  int32_t rank;
  int32_t device;
  int32_t over_nccl;       /* is that asked for? */
  double first_loss, loss; /* of this rank's samples */
  shardrec_status status;
} worker;

#define CHECK(call) \
  if ((status = (call)) != SHARDREC_OK) goto done

/* A tensor on the device, and where its elements are in one allocation. */
static shardrec_status place(shardrec_memory *memory, int64_t *next, shardrec_dtype dtype,
                             int64_t rows, int64_t columns, shardrec_tensor *out) {
  int64_t shape[2];
  shape[0] = rows, shape[1] = columns;
  const int64_t at = *next;
  const int64_t bytes = rows * columns * (dtype == SHARDREC_INT64 ? 8 : 4);
  *next = (at + bytes + 255) / 256 * 256; /* where any access is fast */
  return shardrec_memory_tensor(memory, at, dtype, dtype == SHARDREC_FLOAT32 ? 2 : 1, shape, out);
}

static uint32_t next_number(uint32_t *state, uint32_t below) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) % below;
}

/* Samples of three users, who click where most of them have an odd number. */
static void make_batch(uint32_t *state, int64_t *ids, float *labels) {
  for (int b = 0; b < BATCH; ++b) {
    uint32_t odd = 0;
    for (int i = 0; i < IDS; ++i) {
      const uint32_t user = next_number(state, USERS);
      ids[b * IDS + i] = user;
      odd += user % 2;
    }
    labels[b] = odd >= 2 ? 1 : 0;
  }
}

/* Options of tables, layers or a set of gradients: where they are, and in the order of which stream. */
static shardrec_status options_of(shardrec_options_kind kind, int32_t device,
                                  shardrec_options **out) {
  shardrec_status status;
  CHECK(shardrec_options_create(kind, out));
  if (kind != SHARDREC_OPTIONS_DDP) { /* a set is where its parameters are */
    CHECK(shardrec_options_set_i64(*out, SHARDREC_OPTION_DEVICE, device));
  }
  if (kind != SHARDREC_OPTIONS_COLLECTION) { /* a lookup has its stream by a call */
    CHECK(shardrec_options_set_i64(*out, SHARDREC_OPTION_STREAM, STREAM));
  }
done:
  return status;
}

static shardrec_status add_linear(shardrec_mlp *mlp, int64_t outputs, int32_t activation) {
  return shardrec_mlp_add(mlp, &(shardrec_layer){.struct_size = sizeof(shardrec_layer),
                                                 .kind = SHARDREC_LAYER_LINEAR,
                                                 .activation = activation,
                                                 .outputs = outputs});
}

static void *train(void *argument) {
  worker *me = argument;
  shardrec_status status = SHARDREC_OK;
  shardrec_comm *comm = NULL;
  shardrec_model *model = NULL;
  shardrec_plan *plan = NULL;
  shardrec_options *of_tables = NULL, *of_layers = NULL, *of_set = NULL;
  shardrec_collection *tables = NULL;
  shardrec_lookup *step = NULL;
  shardrec_mlp *layers = NULL;
  shardrec_ddp *set = NULL;
  shardrec_memory *memory = NULL;
  int64_t ids[BATCH * IDS];
  int32_t lengths[BATCH];
  float labels[BATCH];
  shardrec_tensor ids_here, lengths_here, labels_here;
  shardrec_tensor ids_there, lengths_there, labels_there, pooled, logits, d_logits, d_pooled;
  int64_t next = 0;
  uint32_t state = 7 + (uint32_t)me->rank; /* each rank has samples of its own */
  for (int b = 0; b < BATCH; ++b) lengths[b] = IDS;

  CHECK(shardrec_comm_create_local(me->group, me->rank, NULL, &comm));
  if (me->over_nccl) CHECK(shardrec_comm_set_f64(comm, SHARDREC_COMM_NCCL, 1));
  CHECK(shardrec_model_create(NULL, &model));
  CHECK(shardrec_model_add_table(model, "user", USERS, DIM, NULL, NULL));
  CHECK(shardrec_model_add_feature(model, 0, "users", SHARDREC_POOLING_SUM));
  CHECK(shardrec_plan_collective(comm, NULL, model, NULL, &plan));
  CHECK(options_of(SHARDREC_OPTIONS_COLLECTION, me->device, &of_tables));
  CHECK(shardrec_collection_create(comm, NULL, model, plan, of_tables, &tables));
  CHECK(shardrec_collection_set_learning_rate(tables, SHARDREC_ALL_TABLES, 0.1));
  CHECK(shardrec_lookup_create(tables, NULL, &step));
  CHECK(shardrec_lookup_set_stream(step, STREAM));

  CHECK(options_of(SHARDREC_OPTIONS_MLP, me->device, &of_layers));
  CHECK(shardrec_options_set_text(of_layers, SHARDREC_OPTION_OPTIMIZER, "adam"));
  CHECK(shardrec_options_set_f64(of_layers, SHARDREC_OPTION_LEARNING_RATE, 0.01));
  CHECK(shardrec_mlp_create(DIM, of_layers, &layers));
  CHECK(add_linear(layers, HIDDEN, SHARDREC_ACTIVATION_RELU));
  CHECK(add_linear(layers, 1, SHARDREC_ACTIVATION_NONE));
  CHECK(options_of(SHARDREC_OPTIONS_DDP, me->device, &of_set));
  CHECK(shardrec_ddp_create(comm, of_set, &set));
  CHECK(shardrec_ddp_add_mlp(set, "layers", layers, NULL));
  CHECK(shardrec_ddp_commit(set)); /* rank 0's parameters are those of all */

  CHECK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, me->device, 16384, NULL, &memory));
  CHECK(place(memory, &next, SHARDREC_INT64, BATCH * IDS, 1, &ids_there));
  CHECK(place(memory, &next, SHARDREC_INT32, BATCH, 1, &lengths_there));
  CHECK(place(memory, &next, SHARDREC_FLOAT32, BATCH, 1, &labels_there));
  CHECK(place(memory, &next, SHARDREC_FLOAT32, BATCH, DIM, &pooled));
  CHECK(place(memory, &next, SHARDREC_FLOAT32, BATCH, 1, &logits));
  CHECK(place(memory, &next, SHARDREC_FLOAT32, BATCH, 1, &d_logits));
  CHECK(place(memory, &next, SHARDREC_FLOAT32, BATCH, DIM, &d_pooled));
  CHECK(shardrec_tensor_vector(ids, SHARDREC_INT64, BATCH * IDS, &ids_here));
  CHECK(shardrec_tensor_vector(lengths, SHARDREC_INT32, BATCH, &lengths_here));
  CHECK(shardrec_tensor_matrix(labels, SHARDREC_FLOAT32, BATCH, 1, &labels_here));
  CHECK(shardrec_tensor_copy(&lengths_there, &lengths_here, STREAM));

  for (int s = 0; s < STEPS; ++s) {
    const int asks = s == 0 || (s + 1) % ASK == 0;
    make_batch(&state, ids, labels);
    CHECK(shardrec_tensor_copy(&ids_there, &ids_here, STREAM));
    CHECK(shardrec_tensor_copy(&labels_there, &labels_here, STREAM));
    CHECK(shardrec_lookup_begin(step, &(shardrec_batch){.struct_size = sizeof(shardrec_batch),
                                                        .batch_size = BATCH,
                                                        .values = &ids_there,
                                                        .lengths = &lengths_there}));
    CHECK(shardrec_lookup_forward(step, 0, &pooled));
    CHECK(shardrec_mlp_forward(layers, &pooled, &logits));
    /* Where nobody asks for the loss, the host does not wait for it. */
    CHECK(shardrec_bce_with_logits(layers, &logits, &labels_there, NULL, &d_logits,
                                   asks ? &me->loss : NULL));
    if (s == 0) me->first_loss = me->loss;
    CHECK(shardrec_ddp_begin(set, 1));
    CHECK(shardrec_mlp_backward(layers, &d_logits, &d_pooled)); /* gradients travel as they come */
    CHECK(shardrec_ddp_end(set));
    CHECK(shardrec_lookup_set_gradient(step, 0, &d_pooled));
    CHECK(shardrec_lookup_backward(step, SHARDREC_UPDATE_APPLY));
    CHECK(shardrec_ddp_wait(set)); /* gradients of the layers are the means over the ranks */
    CHECK(shardrec_mlp_step(layers));
    if (me->rank == 0 && asks) printf("step %d, loss %.4f\n", s + 1, me->loss);
  }
  CHECK(shardrec_ddp_check_equal(set));           /* every rank has the same bits */
  CHECK(shardrec_collection_wait_device(tables)); /* did the device fail in the last step? */
  CHECK(shardrec_comm_close(comm));
done:
  if (status != SHARDREC_OK) fprintf(stderr, "rank %d: %s\n", me->rank, shardrec_last_error());
  shardrec_ddp_destroy(&set), shardrec_mlp_destroy(&layers);
  shardrec_lookup_destroy(&step), shardrec_memory_destroy(&memory);
  shardrec_collection_destroy(&tables), shardrec_plan_destroy(&plan);
  shardrec_model_destroy(&model), shardrec_comm_destroy(&comm);
  shardrec_options_destroy(&of_tables), shardrec_options_destroy(&of_layers);
  shardrec_options_destroy(&of_set);
  me->status = status;
  return NULL;
}

/* 1 if it is there; else says why not. */
static int is_there(shardrec_capability kind, const char *name, const char *otherwise) {
  int32_t available = 0;
  char *reason = NULL;
  if (shardrec_available(kind, name, &available, &reason) != SHARDREC_OK) {
    printf("%s: %s\n", otherwise, shardrec_last_error());
    return 0;
  }
  if (!available) printf("%s: %s\n", otherwise, reason);
  if (reason != NULL) shardrec_text_free(reason);
  return available;
}

int main(void) {
  worker ranks[RANKS] = {{.rank = 0}, {.rank = 1}};
  pthread_t other;
  shardrec_local *group = NULL;
  setvbuf(stdout, NULL, _IOLBF, 0); /* two threads print */
  if (!is_there(SHARDREC_CAPABILITY_DEVICE, "cuda:0", "no device")) return 0;
  if (!is_there(SHARDREC_CAPABILITY_DENSE, "cublas", "no layers on a device")) return 0;
  if (is_there(SHARDREC_CAPABILITY_DEVICE, "cuda:1", "both ranks are on cuda:0")) {
    ranks[1].device = 1;
    ranks[0].over_nccl = ranks[1].over_nccl =
        is_there(SHARDREC_CAPABILITY_ENGINE, "nccl", "without NCCL");
  }
  if (shardrec_local_create(RANKS, RANKS, NULL, &group) != SHARDREC_OK) return 1;
  ranks[0].group = ranks[1].group = group;
  if (pthread_create(&other, NULL, train, &ranks[1]) != 0) return 1;
  train(&ranks[0]);
  pthread_join(other, NULL);
  shardrec_local_destroy(&group);
  if (ranks[0].status || ranks[1].status) return 1;
  printf("cuda:0 and cuda:%d%s: the loss went from %.3f to %.3f\n", ranks[1].device,
         ranks[0].over_nccl ? " over NCCL" : "", ranks[0].first_loss, ranks[0].loss);
  return ranks[0].loss > 0.7 * ranks[0].first_loss;
}
