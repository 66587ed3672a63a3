/* A first program: two ranks, threads of this process, share an embedding table and train it until
 * the numbers of each user's row add up to 1. */
#include <pthread.h>
#include <shardrec/shardrec.h>
#include <stdio.h>

enum { RANKS = 2, BATCH = 4, DIM = 8, STEPS = 20 };

typedef struct {
  shardrec_local *group;
  int32_t rank;
  float loss; /* of the last step */
  shardrec_status status;
} worker;

#define CHECK(call) \
  if ((status = (call)) != SHARDREC_OK) goto done

static void *train(void *argument) {
  worker *me = argument;
  shardrec_status status = SHARDREC_OK;
  shardrec_comm *comm = NULL;
  shardrec_model *model = NULL;
  shardrec_plan *plan = NULL;
  shardrec_collection *tables = NULL;
  shardrec_lookup *step = NULL;
  int32_t user = 0;
  int64_t lengths[BATCH] = {1, 1, 1, 1}; /* four bags of one id */
  int64_t ids[BATCH] = {0, 11, 222, 900 + me->rank};
  float out[BATCH * DIM], gradient[BATCH * DIM];
  shardrec_tensor id_view, length_view, out_view, gradient_view;
  CHECK(shardrec_tensor_vector(ids, SHARDREC_INT64, BATCH, &id_view));
  CHECK(shardrec_tensor_vector(lengths, SHARDREC_INT64, BATCH, &length_view));
  CHECK(shardrec_tensor_matrix(out, SHARDREC_FLOAT32, BATCH, DIM, &out_view));
  CHECK(shardrec_tensor_matrix(gradient, SHARDREC_FLOAT32, BATCH, DIM, &gradient_view));
  CHECK(shardrec_comm_create_local(me->group, me->rank, NULL, &comm));
  CHECK(shardrec_model_create(NULL, &model));
  CHECK(shardrec_model_add_table(model, "user", 1000, DIM, NULL, &user));
  CHECK(shardrec_model_add_feature(model, user, "user_id", SHARDREC_POOLING_SUM));
  CHECK(shardrec_plan_collective(comm, NULL, model, NULL, &plan)); /* which rows live where */
  CHECK(shardrec_collection_create(comm, NULL, model, plan, NULL, &tables));
  CHECK(shardrec_collection_set_learning_rate(tables, SHARDREC_ALL_TABLES, 0.1));
  CHECK(shardrec_lookup_create(tables, NULL, &step));
  for (int s = 0; s < STEPS; ++s) {
    CHECK(shardrec_lookup_begin(step, &(shardrec_batch){.struct_size = sizeof(shardrec_batch),
                                                        .batch_size = BATCH,
                                                        .values = &id_view,
                                                        .lengths = &length_view}));
    CHECK(shardrec_lookup_forward(step, 0, &out_view)); /* out: [BATCH, DIM] */
    me->loss = 0;
    for (int b = 0; b < BATCH; ++b) {
      float error = -1;
      for (int c = 0; c < DIM; ++c) error += out[b * DIM + c];
      me->loss += error * error / BATCH;
      for (int c = 0; c < DIM; ++c) gradient[b * DIM + c] = 2 * error / BATCH;
    }
    CHECK(shardrec_lookup_set_gradient(step, 0, &gradient_view));
    CHECK(shardrec_lookup_backward(step,
                                   SHARDREC_UPDATE_APPLY)); /* exchanges gradients, updates rows */
  }
  CHECK(shardrec_comm_close(comm));
done:
  if (status != SHARDREC_OK) fprintf(stderr, "%s\n", shardrec_last_error());
  shardrec_lookup_destroy(&step), shardrec_collection_destroy(&tables);
  shardrec_plan_destroy(&plan), shardrec_model_destroy(&model), shardrec_comm_destroy(&comm);
  me->status = status;
  return NULL;
}

int main(void) {
  worker ranks[RANKS] = {{NULL, 0, 0, SHARDREC_OK}, {NULL, 1, 0, SHARDREC_OK}};
  pthread_t other;
  shardrec_local *group = NULL;
  if (shardrec_local_create(RANKS, RANKS, NULL, &group) != SHARDREC_OK) return 1;
  ranks[0].group = ranks[1].group = group;
  if (pthread_create(&other, NULL, train, &ranks[1]) != 0) return 1;
  train(&ranks[0]);
  pthread_join(other, NULL);
  shardrec_local_destroy(&group);
  printf("last losses: %g, %g\n", ranks[0].loss, ranks[1].loss);
  return ranks[0].status || ranks[1].status || ranks[0].loss > 0.01f || ranks[1].loss > 0.01f;
}
