/* A table on a GPU, with the ids, outputs and gradients of its steps there too, for a program that has no
 * CUDA of its own: the library allocates and copies. It learns a number for each of 1,000 users from
 * samples with three of them, whose sum is known. Where there is no device it says why.
 *
 *   device_c [NUMBER]     the device, 0 where none is named
 *
 * A program with CUDA kernels of its own gives its tensors as they are (device_type SHARDREC_DEVICE_CUDA),
 * names its stream once (shardrec_lookup_set_stream), and enqueues its kernels there between the calls. */
#include <shardrec/shardrec.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { USERS = 1000, BATCH = 64, IDS = 3, STEPS = 400 };

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

int main(int argc, char **argv) {
  const int device = argc > 1 ? atoi(argv[1]) : 0;
  shardrec_status status = SHARDREC_OK;
  shardrec_local *group = NULL;
  shardrec_comm *comm = NULL;
  shardrec_model *model = NULL;
  shardrec_plan *plan = NULL;
  shardrec_options *options = NULL;
  shardrec_collection *tables = NULL;
  shardrec_lookup *step = NULL;
  shardrec_memory *memory = NULL;
  int64_t ids[BATCH * IDS];
  int32_t lengths[BATCH];
  float out[BATCH], gradient[BATCH], wanted[BATCH], loss = 0, first_loss = 0;
  shardrec_tensor ids_here, lengths_here, out_here, gradient_here;     /* of the host */
  shardrec_tensor ids_there, lengths_there, out_there, gradient_there; /* on the device */
  int64_t next = 0;
  uint32_t state = 1;
  char name[32];
  char *reason = NULL;
  int32_t available = 0;

  snprintf(name, sizeof name, "cuda:%d", device);
  CHECK(shardrec_available(SHARDREC_CAPABILITY_DEVICE, name, &available, &reason));
  if (!available) {
    printf("no device %s: %s\n", name, reason);
    shardrec_text_free(reason);
    return 0;
  }

  CHECK(shardrec_local_create(1, 1, NULL, &group));
  CHECK(shardrec_comm_create_local(group, 0, NULL, &comm));
  CHECK(shardrec_model_create(NULL, &model));
  CHECK(shardrec_model_add_table(model, "user", USERS, 1, NULL, NULL));
  CHECK(shardrec_model_add_feature(model, 0, "users", SHARDREC_POOLING_SUM));
  CHECK(shardrec_plan_collective(comm, NULL, model, NULL, &plan));
  CHECK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
  CHECK(shardrec_options_set_i64(options, SHARDREC_OPTION_DEVICE, device));
  CHECK(shardrec_collection_create(comm, NULL, model, plan, options, &tables));
  CHECK(shardrec_collection_set_learning_rate(tables, SHARDREC_ALL_TABLES, 0.1));
  CHECK(shardrec_lookup_create(tables, NULL, &step));

  CHECK(shardrec_memory_create(SHARDREC_DEVICE_CUDA, device, 8192, NULL, &memory));
  CHECK(place(memory, &next, SHARDREC_INT64, BATCH * IDS, 1, &ids_there));
  CHECK(place(memory, &next, SHARDREC_INT32, BATCH, 1, &lengths_there));
  CHECK(place(memory, &next, SHARDREC_FLOAT32, BATCH, 1, &out_there));
  CHECK(place(memory, &next, SHARDREC_FLOAT32, BATCH, 1, &gradient_there));
  CHECK(shardrec_tensor_vector(ids, SHARDREC_INT64, BATCH * IDS, &ids_here));
  CHECK(shardrec_tensor_vector(lengths, SHARDREC_INT32, BATCH, &lengths_here));
  CHECK(shardrec_tensor_matrix(out, SHARDREC_FLOAT32, BATCH, 1, &out_here));
  CHECK(shardrec_tensor_matrix(gradient, SHARDREC_FLOAT32, BATCH, 1, &gradient_here));

  for (int s = 0; s < STEPS; ++s) {
    for (int b = 0; b < BATCH; ++b) {
      lengths[b] = IDS;
      wanted[b] = 0;
      for (int i = 0; i < IDS; ++i) {
        const uint32_t user = next_number(&state, USERS);
        ids[b * IDS + i] = user;
        wanted[b] += (float)(user % 10); /* what is to be learned */
      }
    }
    /* Copies take place in the order of stream 0, which the lookup follows. */
    CHECK(shardrec_tensor_copy(&ids_there, &ids_here, 0));
    CHECK(shardrec_tensor_copy(&lengths_there, &lengths_here, 0));
    CHECK(shardrec_lookup_begin(step, &(shardrec_batch){.struct_size = sizeof(shardrec_batch),
                                                        .batch_size = BATCH,
                                                        .values = &ids_there,
                                                        .lengths = &lengths_there}));
    CHECK(shardrec_lookup_forward(step, 0, &out_there));
    CHECK(shardrec_tensor_copy(&out_here, &out_there, 0));
    loss = 0;
    for (int b = 0; b < BATCH; ++b) {
      const float error = out[b] - wanted[b];
      loss += error * error / BATCH;
      gradient[b] = error;
    }
    if (s == 0) first_loss = loss;
    CHECK(shardrec_tensor_copy(&gradient_there, &gradient_here, 0));
    CHECK(shardrec_lookup_set_gradient(step, 0, &gradient_there));
    CHECK(shardrec_lookup_backward(step, SHARDREC_UPDATE_APPLY)); /* enqueued, not waited for */
  }
  CHECK(shardrec_collection_wait_device(tables)); /* did the device fail in the last step? */
  printf("on %s the loss went from %.1f to %.4f\n", name, first_loss, loss);
  CHECK(shardrec_comm_close(comm));
done:
  if (status != SHARDREC_OK) fprintf(stderr, "%s\n", shardrec_last_error());
  if (reason != NULL) shardrec_text_free(reason);
  shardrec_lookup_destroy(&step), shardrec_memory_destroy(&memory);
  shardrec_collection_destroy(&tables), shardrec_options_destroy(&options);
  shardrec_plan_destroy(&plan), shardrec_model_destroy(&model);
  shardrec_comm_destroy(&comm), shardrec_local_destroy(&group);
  return status != SHARDREC_OK || loss > 0.1f * first_loss;
}
