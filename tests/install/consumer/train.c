/* A program outside the tree: trains two steps on one rank and on two ranks that are threads, and
 * checks the numbers. Tables start at 0 and every gradient is 1, so with SGD the rows of the batch
 * are -learning rate after one step and twice that after two, however many ranks there are. */
#include <pthread.h>
#include <shardrec/shardrec.h>
#include <stdio.h>

enum { kRows = 943, kDim = 8, kBatch = 3, kSteps = 2, kMostRanks = 2 };
static const double kLearningRate = 0.25;

#define CHECK(call)                                                                      \
  do {                                                                                   \
    status = (call);                                                                     \
    if (status != SHARDREC_OK) {                                                         \
      fprintf(stderr, "%s: status %d: %s\n", #call, (int)status, shardrec_last_error()); \
      goto done;                                                                         \
    }                                                                                    \
  } while (0)

typedef struct rank_of_group {
  shardrec_local *group;
  int32_t rank;
  shardrec_status status;
  int wrong; /* numbers that were not as expected */
} rank_of_group;

static shardrec_status make_model(shardrec_model **model) {
  shardrec_status status = SHARDREC_OK;
  shardrec_options *zeros = NULL, *sgd = NULL;
  int32_t user = 0;
  CHECK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, &zeros));
  CHECK(shardrec_options_set_i64(zeros, SHARDREC_OPTION_INIT, SHARDREC_INIT_ZEROS));
  CHECK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &sgd));
  CHECK(shardrec_options_set_f64(sgd, SHARDREC_OPTION_LEARNING_RATE, kLearningRate));
  CHECK(shardrec_model_create(NULL, model));
  CHECK(shardrec_model_add_table(*model, "user", kRows, kDim, zeros, &user));
  CHECK(shardrec_model_add_feature(*model, user, "user_id", SHARDREC_POOLING_SUM));
  CHECK(shardrec_model_set_optimizer(*model, SHARDREC_ALL_TABLES, sgd));
done:
  shardrec_options_destroy(&zeros);
  shardrec_options_destroy(&sgd);
  return status;
}

static void *train(void *argument) {
  rank_of_group *self = argument;
  shardrec_status status = SHARDREC_OK;
  shardrec_comm *comm = NULL;
  shardrec_model *model = NULL;
  shardrec_plan *plan = NULL;
  shardrec_collection *tables = NULL;
  shardrec_lookup *step = NULL;
  int64_t ids[kBatch] = {0, 471, kRows - 1};
  int64_t one_each[kBatch] = {1, 1, 1};
  float output[kBatch * kDim], ones[kBatch * kDim];
  shardrec_tensor values, lengths, out, gradient;
  int i, k;

  for (i = 0; i < kBatch * kDim; ++i) ones[i] = 1;
  CHECK(shardrec_tensor_vector(ids, SHARDREC_INT64, kBatch, &values));
  CHECK(shardrec_tensor_vector(one_each, SHARDREC_INT64, kBatch, &lengths));
  CHECK(shardrec_tensor_matrix(output, SHARDREC_FLOAT32, kBatch, kDim, &out));
  CHECK(shardrec_tensor_matrix(ones, SHARDREC_FLOAT32, kBatch, kDim, &gradient));

  CHECK(shardrec_comm_create_local(self->group, self->rank, NULL, &comm));
  CHECK(make_model(&model));
  CHECK(shardrec_plan_collective(comm, NULL, model, NULL, &plan));
  CHECK(shardrec_collection_create(comm, NULL, model, plan, NULL, &tables));
  CHECK(shardrec_lookup_create(tables, NULL, &step));
  for (k = 0; k <= kSteps; ++k) {
    CHECK(shardrec_lookup_begin(step, &(shardrec_batch){.struct_size = sizeof(shardrec_batch),
                                                        .batch_size = kBatch,
                                                        .values = &values,
                                                        .lengths = &lengths}));
    CHECK(shardrec_lookup_forward(step, 0, &out));
    for (i = 0; i < kBatch * kDim; ++i) {
      if (output[i] != (float)(-kLearningRate * k)) ++self->wrong;
    }
    if (k == kSteps) break; /* the last forward only looks */
    CHECK(shardrec_lookup_set_gradient(step, 0, &gradient));
    CHECK(shardrec_lookup_backward(step, SHARDREC_UPDATE_APPLY));
  }
  CHECK(shardrec_comm_close(comm));
done:
  shardrec_lookup_destroy(&step);
  shardrec_collection_destroy(&tables);
  shardrec_plan_destroy(&plan);
  shardrec_model_destroy(&model);
  shardrec_comm_destroy(&comm);
  self->status = status;
  return NULL;
}

static int train_on(int32_t ranks) {
  shardrec_status status = SHARDREC_OK;
  shardrec_local *group = NULL;
  pthread_t threads[kMostRanks];
  rank_of_group members[kMostRanks];
  int failed = 0;
  int32_t r;
  CHECK(shardrec_local_create(ranks, ranks, NULL, &group));
  for (r = 0; r < ranks; ++r) {
    members[r].group = group;
    members[r].rank = r;
    members[r].status = SHARDREC_OK;
    members[r].wrong = 0;
    if (pthread_create(&threads[r], NULL, train, &members[r]) != 0) return 1;
  }
  for (r = 0; r < ranks; ++r) {
    pthread_join(threads[r], NULL);
    if (members[r].status != SHARDREC_OK || members[r].wrong != 0) {
      fprintf(stderr, "rank %d of %d: status %d, %d wrong numbers\n", (int)r, (int)ranks,
              (int)members[r].status, members[r].wrong);
      failed = 1;
    }
  }
done:
  shardrec_local_destroy(&group);
  return failed || status != SHARDREC_OK;
}

int main(void) {
  int64_t live = -1;
  if (train_on(1) != 0 || train_on(2) != 0) return 1;
  if (shardrec_live_objects(&live) != SHARDREC_OK || live != 0) {
    fprintf(stderr, "%ld objects are still alive\n", (long)live);
    return 1;
  }
  puts("trained two steps on one rank and on two");
  return 0;
}
