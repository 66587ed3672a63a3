/* Ranks as processes: each finds its place in its environment, trains its share of the batches and
 * leaves in order.
 *
 *   shardrec launch --nproc 2 -- processes_c
 *
 * The same program runs on several hosts: comm.h lists the variables, README.md what sets them. */
#include <shardrec/shardrec.h>
#include <stdio.h>

enum { BATCH = 4, DIM = 8, STEPS = 20 };

#define CHECK(call) \
  if ((status = (call)) != SHARDREC_OK) goto done

int main(void) {
  shardrec_status status = SHARDREC_OK;
  shardrec_comm *comm = NULL;
  shardrec_model *model = NULL;
  shardrec_plan *plan = NULL;
  shardrec_collection *tables = NULL;
  shardrec_lookup *step = NULL;
  int32_t rank = -1, ranks = 0, user = 0;
  int64_t lengths[BATCH] = {1, 1, 1, 1}; /* four bags of one id */
  int64_t ids[BATCH];
  float out[BATCH * DIM], gradient[BATCH * DIM];
  double loss = 0; /* of all ranks, in the last step */
  shardrec_tensor id_view, length_view, out_view, gradient_view, loss_view;
  CHECK(shardrec_tensor_vector(ids, SHARDREC_INT64, BATCH, &id_view));
  CHECK(shardrec_tensor_vector(lengths, SHARDREC_INT64, BATCH, &length_view));
  CHECK(shardrec_tensor_vector(&loss, SHARDREC_FLOAT64, 1, &loss_view));
  CHECK(shardrec_tensor_matrix(out, SHARDREC_FLOAT32, BATCH, DIM, &out_view));
  CHECK(shardrec_tensor_matrix(gradient, SHARDREC_FLOAT32, BATCH, DIM, &gradient_view));

  CHECK(shardrec_comm_create_from_env(NULL, &comm)); /* returns when all ranks have come */
  CHECK(shardrec_comm_rank(comm, &rank));
  CHECK(shardrec_comm_size(comm, &ranks));
  for (int b = 0; b < BATCH; ++b) ids[b] = (100 * b + rank) % 1000; /* this rank's data */
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
    loss = 0;
    for (int b = 0; b < BATCH; ++b) {
      float error = -1;
      for (int c = 0; c < DIM; ++c) error += out[b * DIM + c];
      loss += error * error / BATCH / ranks;
      for (int c = 0; c < DIM; ++c) gradient[b * DIM + c] = 2 * error / BATCH;
    }
    CHECK(shardrec_lookup_set_gradient(step, 0, &gradient_view));
    CHECK(shardrec_lookup_backward(step,
                                   SHARDREC_UPDATE_APPLY)); /* exchanges gradients, updates rows */
  }
  CHECK(shardrec_comm_all_reduce(comm, &loss_view, SHARDREC_REDUCTION_SUM));
  if (rank == 0) printf("%d ranks, last loss: %g\n", ranks, loss);
  CHECK(shardrec_comm_close(comm)); /* returns when all ranks are done */
done:
  if (status != SHARDREC_OK) fprintf(stderr, "rank %d: %s\n", rank, shardrec_last_error());
  shardrec_lookup_destroy(&step);
  shardrec_collection_destroy(&tables);
  shardrec_plan_destroy(&plan);
  shardrec_model_destroy(&model);
  shardrec_comm_destroy(
      &comm); /* without the close before it, the others get PEER_FAILED at once */
  return status != SHARDREC_OK || loss > 0.01;
}
