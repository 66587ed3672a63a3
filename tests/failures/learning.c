/* What the ranks learn. */
#include <stdlib.h>

#include "host.h"

typedef struct shape {
  const char *name;
  int64_t rows, dim;
  shardrec_pooling pooling;
} shape;

/* In the order of the kinds of sharding that a mixed plan gives them. */
static const shape kShapes[TABLES] = {{"by table", 500, 16, SHARDREC_POOLING_SUM},
                                      {"by rows", 4000, 16, SHARDREC_POOLING_SUM},
                                      {"by columns", 700, 32, SHARDREC_POOLING_MEAN},
                                      {"by rows of a node", 900, 8, SHARDREC_POOLING_SUM},
                                      {"by columns of a node", 300, 12, SHARDREC_POOLING_SUM},
                                      {"grid", 600, 20, SHARDREC_POOLING_MEAN},
                                      {"on all", 60, 8, SHARDREC_POOLING_SUM}};

shardrec_status make_model(shardrec_model **out) {
  shardrec_options *options = NULL;
  shardrec_status status = shardrec_model_create(NULL, out);
  for (int i = 0; status == SHARDREC_OK && i < TABLES; ++i) {
    int32_t table = 0;
    status = shardrec_model_add_table(*out, kShapes[i].name, kShapes[i].rows, kShapes[i].dim, NULL,
                                      &table);
    if (status == SHARDREC_OK) {
      status = shardrec_model_add_feature(*out, table, kShapes[i].name, kShapes[i].pooling);
    }
  }
  if (status == SHARDREC_OK) status = shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options);
  if (status == SHARDREC_OK) {
    status = shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER,
                                      SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD);
  }
  if (status == SHARDREC_OK)
    status = shardrec_model_set_optimizer(*out, SHARDREC_ALL_TABLES, options);
  shardrec_options_destroy(&options);
  return status;
}

shardrec_status make_batch(batch *out, int rank, int step) {
  uint64_t state = 1 + (uint64_t)rank * 1000003 + (uint64_t)step * 7919;
  int64_t ids = 0;
  for (int table = 0; table < TABLES; ++table) {
    for (int sample = 0; sample < BATCH; ++sample) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const int64_t length = (int64_t)((state >> 33) % (MOST_BAG + 1));
      out->lengths[table * BATCH + sample] = length;
      for (int64_t i = 0; i < length; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        out->ids[ids++] = (int64_t)((state >> 33) % (uint64_t)kShapes[table].rows);
      }
    }
  }
  for (int sample = 0; sample < BATCH; ++sample) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    out->targets[sample] = (float)((state >> 33) % 3) - 1;
  }
  const shardrec_status status =
      shardrec_tensor_vector(out->ids, SHARDREC_INT64, ids, &out->id_view);
  if (status != SHARDREC_OK) return status;
  return shardrec_tensor_vector(out->lengths, SHARDREC_INT64, TABLES * BATCH, &out->length_view);
}

shardrec_status digest_tables(shardrec_collection *tables, uint64_t *digest) {
  shardrec_status status = SHARDREC_OK;
  for (int i = 0; status == SHARDREC_OK && i < TABLES; ++i) {
    const int64_t count = kShapes[i].rows * kShapes[i].dim;
    float *rows = malloc((size_t)count * sizeof *rows);
    shardrec_tensor view;
    if (rows == NULL) return SHARDREC_OUT_OF_MEMORY;
    status = shardrec_tensor_matrix(rows, SHARDREC_FLOAT32, kShapes[i].rows, kShapes[i].dim, &view);
    if (status == SHARDREC_OK) {
      status = shardrec_collection_read_range(tables, i, SHARDREC_TABLE_WEIGHTS, 0, kShapes[i].rows,
                                              &view);
    }
    *digest = shardrec_hash64(*digest, rows, count * (int64_t)sizeof *rows);
    free(rows);
  }
  return status;
}
