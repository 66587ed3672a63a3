#include "steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shardrec/shardrec.h"

enum { DIM = 16, ROWS = 1000, DENSE = 4 };

struct overhead_training {
  overhead_kind kind;
  int tables;
  int64_t batch;
  int64_t width;  /* columns of the interaction's output */
  int64_t number; /* of the step */
  shardrec_local *group;
  shardrec_comm *comm;
  shardrec_model *model;
  shardrec_plan *plan;
  shardrec_collection *collection;
  shardrec_lookup *lookup;
  shardrec_mlp *bottom, *top;
  shardrec_interaction *cross;
  shardrec_ddp *ddp;
  shardrec_metrics *metrics;
  int64_t *ids, *lengths, *hashes;
  float *pooled, *input, *dense, *crossed, *logits, *labels, *predicted, *logits_gradient,
      *crossed_gradient, *dense_gradient, *pooled_gradient;
};

#define TRY(call)                                              \
  if ((call) != SHARDREC_OK) {                                 \
    fprintf(stderr, "%s: %s\n", #call, shardrec_last_error()); \
    return 1;                                                  \
  }

static shardrec_tensor ids_of(int64_t *data, int64_t length) {
  shardrec_tensor out;
  shardrec_tensor_vector(data, SHARDREC_INT64, length, &out);
  return out;
}

static shardrec_tensor floats(float *data, int64_t rows, int64_t columns) {
  shardrec_tensor out;
  shardrec_tensor_matrix(data, SHARDREC_FLOAT32, rows, columns, &out);
  return out;
}

/* Zeros that begin at a line of the cache, as those of the hosts' own allocation helpers. */
static void *aligned(int64_t bytes) {
  const size_t size = ((size_t)bytes / 64 + 1) * 64;
  return memset(aligned_alloc(64, size), 0, size);
}

static shardrec_status add_linear(shardrec_mlp *mlp, int64_t outputs,
                                  shardrec_activation activation) {
  const shardrec_layer layer = {
      .struct_size = sizeof layer, .activation = activation, .outputs = outputs};
  return shardrec_mlp_add(mlp, &layer);
}

static int open_layers(overhead_training *t) {
  TRY(shardrec_interaction_create(t->tables, DIM, NULL, &t->cross));
  TRY(shardrec_interaction_outputs(t->cross, &t->width));
  TRY(shardrec_mlp_create(DENSE, NULL, &t->bottom));
  TRY(add_linear(t->bottom, DIM, SHARDREC_ACTIVATION_RELU));
  TRY(shardrec_mlp_create(t->width, NULL, &t->top));
  TRY(add_linear(t->top, 1, SHARDREC_ACTIVATION_NONE));
  TRY(shardrec_ddp_create(t->comm, NULL, &t->ddp));
  TRY(shardrec_ddp_add_mlp(t->ddp, "bottom", t->bottom, NULL));
  TRY(shardrec_ddp_add_mlp(t->ddp, "top", t->top, NULL));
  TRY(shardrec_ddp_commit(t->ddp));
  TRY(shardrec_metrics_create(t->comm, NULL, &t->metrics));
  return 0;
}

static int open_tables(overhead_training *t) {
  char name[16];
  shardrec_options *options = NULL;
  TRY(shardrec_local_create(1, 1, NULL, &t->group));
  TRY(shardrec_comm_create_local(t->group, 0, NULL, &t->comm));
  TRY(shardrec_model_create(NULL, &t->model));
  for (int i = 0; i < t->tables; ++i) {
    int32_t table = 0;
    snprintf(name, sizeof name, "t%d", i);
    TRY(shardrec_model_add_table(t->model, name, ROWS, DIM, NULL, &table));
    TRY(shardrec_model_add_feature(t->model, table, name, SHARDREC_POOLING_SUM));
  }
  TRY(shardrec_plan_collective(t->comm, NULL, t->model, NULL, &t->plan));
  TRY(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
  TRY(shardrec_options_set_i64(options, SHARDREC_OPTION_THREADS, 1));
  TRY(shardrec_collection_create(t->comm, NULL, t->model, t->plan, options, &t->collection));
  shardrec_options_destroy(&options);
  TRY(shardrec_lookup_create(t->collection, NULL, &t->lookup));
  return 0;
}

overhead_training *overhead_open(int kind, int tables, int64_t batch) {
  overhead_training *t = calloc(1, sizeof *t);
  t->tables = tables;
  t->batch = batch;
  t->kind = (overhead_kind)kind;
  if ((kind != OVERHEAD_HASH && open_tables(t) != 0) ||
      (kind == OVERHEAD_WHOLE && open_layers(t) != 0)) {
    overhead_close(t);
    return NULL;
  }
  t->ids = aligned(tables * batch * (int64_t)sizeof *t->ids);
  t->lengths = aligned(tables * batch * (int64_t)sizeof *t->lengths);
  t->hashes = aligned(tables * batch * (int64_t)sizeof *t->hashes);
  for (int64_t i = 0; i < tables * batch; ++i) {
    t->ids[i] = i * 7 % ROWS;
    t->lengths[i] = 1;
  }
  const int64_t of_pooled = (int64_t)tables * DIM;
  const int64_t columns[] = {of_pooled, DENSE, DIM, t->width, 1, 1, 1, 1, t->width, DIM, of_pooled};
  float **buffers[] = {&t->pooled,         &t->input,           &t->dense,
                       &t->crossed,        &t->logits,          &t->labels,
                       &t->predicted,      &t->logits_gradient, &t->crossed_gradient,
                       &t->dense_gradient, &t->pooled_gradient};
  for (int i = 0; i < 11; ++i) *buffers[i] = aligned(batch * columns[i] * (int64_t)sizeof(float));
  return t;
}

void overhead_close(overhead_training *t) {
  if (t == NULL) return;
  shardrec_lookup_destroy(&t->lookup);
  shardrec_collection_destroy(&t->collection);
  shardrec_plan_destroy(&t->plan);
  shardrec_model_destroy(&t->model);
  shardrec_metrics_destroy(&t->metrics);
  shardrec_ddp_destroy(&t->ddp);
  shardrec_mlp_destroy(&t->bottom);
  shardrec_mlp_destroy(&t->top);
  shardrec_interaction_destroy(&t->cross);
  shardrec_comm_destroy(&t->comm);
  shardrec_local_destroy(&t->group);
  void *memory[] = {t->ids,
                    t->lengths,
                    t->hashes,
                    t->pooled,
                    t->input,
                    t->dense,
                    t->crossed,
                    t->logits,
                    t->labels,
                    t->predicted,
                    t->logits_gradient,
                    t->crossed_gradient,
                    t->dense_gradient,
                    t->pooled_gradient,
                    t};
  for (int i = 0; i < 15; ++i) free(memory[i]);
}

static int table_step(overhead_training *t) {
  const shardrec_tensor ids = ids_of(t->ids, t->tables * t->batch),
                        lengths = ids_of(t->lengths, t->tables * t->batch);
  const shardrec_tensor pooled = floats(t->pooled, t->batch, (int64_t)t->tables * DIM);
  TRY(shardrec_lookup_begin(t->lookup, &(shardrec_batch){.struct_size = sizeof(shardrec_batch),
                                                         .batch_size = t->batch,
                                                         .values = &ids,
                                                         .lengths = &lengths}));
  TRY(shardrec_lookup_forward(t->lookup, 0, &pooled));
  TRY(shardrec_lookup_set_gradient(t->lookup, 0, &pooled));
  TRY(shardrec_lookup_backward(t->lookup, SHARDREC_UPDATE_APPLY));
  return 0;
}

static int whole_step(overhead_training *t) {
  const int64_t size = t->batch - t->number++ % 8;
  int32_t done = 0;
  double loss = 0;
  const shardrec_tensor ids = ids_of(t->ids, t->tables * size),
                        lengths = ids_of(t->lengths, t->tables * size);
  const shardrec_tensor pooled = floats(t->pooled, size, (int64_t)t->tables * DIM),
                        input = floats(t->input, size, DENSE);
  const shardrec_tensor dense = floats(t->dense, size, DIM),
                        crossed = floats(t->crossed, size, t->width);
  const shardrec_tensor logits = floats(t->logits, size, 1), labels = floats(t->labels, size, 1);
  const shardrec_tensor predicted = floats(t->predicted, size, 1),
                        logits_gradient = floats(t->logits_gradient, size, 1);
  const shardrec_tensor crossed_gradient = floats(t->crossed_gradient, size, t->width);
  const shardrec_tensor dense_gradient = floats(t->dense_gradient, size, DIM);
  const shardrec_tensor pooled_gradient =
      floats(t->pooled_gradient, size, (int64_t)t->tables * DIM);
  TRY(shardrec_lookup_begin(t->lookup, &(shardrec_batch){.struct_size = sizeof(shardrec_batch),
                                                         .batch_size = size,
                                                         .values = &ids,
                                                         .lengths = &lengths}));
  TRY(shardrec_mlp_forward(t->bottom, &input, &dense));
  TRY(shardrec_lookup_forward(t->lookup, 0, &pooled));
  TRY(shardrec_lookup_all_done(t->lookup, &done));
  TRY(shardrec_interaction_forward(t->cross, &dense, &pooled, &crossed));
  TRY(shardrec_mlp_forward(t->top, &crossed, &logits));
  TRY(shardrec_bce_with_logits(NULL, &logits, &labels, &predicted, &logits_gradient, &loss));
  TRY(shardrec_ddp_begin(t->ddp, 1));
  TRY(shardrec_mlp_backward(t->top, &logits_gradient, &crossed_gradient));
  TRY(shardrec_interaction_backward(t->cross, &crossed_gradient, &dense_gradient,
                                    &pooled_gradient));
  TRY(shardrec_lookup_set_gradient(t->lookup, 0, &pooled_gradient));
  TRY(shardrec_lookup_send_gradients(t->lookup, SHARDREC_UPDATE_APPLY));
  TRY(shardrec_mlp_backward(t->bottom, &dense_gradient, NULL));
  TRY(shardrec_ddp_end(t->ddp));
  TRY(shardrec_lookup_backward(t->lookup, SHARDREC_UPDATE_APPLY));
  TRY(shardrec_ddp_wait(t->ddp));
  TRY(shardrec_mlp_step(t->bottom));
  TRY(shardrec_mlp_step(t->top));
  TRY(shardrec_metrics_update(t->metrics, &predicted, &labels));
  return 0;
}

static int hash_step(overhead_training *t) {
  const shardrec_tensor ids = ids_of(t->ids, t->tables * t->batch),
                        hashes = ids_of(t->hashes, t->tables * t->batch);
  TRY(shardrec_hash64_ids(1, &ids, ROWS, &hashes));
  return 0;
}

int overhead_steps(overhead_training *t, int64_t count) {
  static int (*const steps[])(overhead_training *) = {table_step, whole_step, hash_step};
  while (count-- > 0) {
    if (steps[t->kind](t) != 0) return 1;
  }
  return 0;
}
