/* A model: the embedding tables, the features that are looked up in them, and how they are trained.
 *
 * All ranks make the same model. It is read during the calls it is passed to.
 * Thread rule: one thread at a time per handle, else BUSY.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_MODEL_H
#define SHARDREC_MODEL_H

#include "shardrec/options.h"
#include "shardrec/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shardrec_model shardrec_model;

/* How the rows of a bag become one vector. w is the id's weight, 1 where a batch has no weights. */
typedef enum shardrec_pooling {
  SHARDREC_POOLING_SUM = 0,  /* sum of w * row */
  SHARDREC_POOLING_MEAN = 1, /* sum of w * row, divided by the bag's length; an empty bag is 0 */
  SHARDREC_POOLING_NONE = 2, /* a sequence: one row per id, in an output of its own; weights do not count */
  SHARDREC_POOLING_FORCE_32 = 0x7fffffff
} shardrec_pooling;

/* Makes an empty model. options: NULL (no kind of options is for models yet). out: owned by the
 * caller. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_model_create(SHARDREC_OPTIONS(NONE)
                                                   const shardrec_options *options,
                                                   shardrec_model **out);

/* Destroys the handle and nulls the caller's copy. Since 0.1. */
SHARDREC_API void shardrec_model_destroy(SHARDREC_NULLABLE shardrec_model **model);

/* Adds a table of rows x dim elements.
 * name: UTF-8, not empty, unique. rows in [1, 2^40], dim in [1, 65536]. options: kind TABLE or NULL.
 * out_table: its index, 0 for the first one added; may be NULL.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, UNSUPPORTED (dtype), OUT_OF_MEMORY.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_model_add_table(shardrec_model *model, const char *name,
                                                      int64_t rows, int64_t dim,
                                                      SHARDREC_OPTIONS(TABLE)
                                                      const shardrec_options *options,
                                                      SHARDREC_NULLABLE int32_t *out_table);

/* Adds a feature that is looked up in `table`; several features may share one. Its index is the
 * number of features added before it, and batches list the features in that order.
 * name: UTF-8, not empty, unique among features. Pooled and sequence features may share a table: a
 * step updates each row once, by the sum of all its gradients.
 * Errors: as shardrec_model_add_table. Since 0.1. */
SHARDREC_API shardrec_status shardrec_model_add_feature(shardrec_model *model, int32_t table,
                                                        const char *name, shardrec_pooling pooling);

/* In place of a table's index: all tables. */
#define SHARDREC_ALL_TABLES (-1)

/* Sets the optimizer of a table, in place of the model's, or with SHARDREC_ALL_TABLES the model's: that of
 * all tables that have none of their own. options: kind OPTIMIZER; NULL: of a table the model's again, of
 * the model SGD with its defaults. With g the gradient of a touched row (summed over the global batch), D the dim,
 * lr the learning rate, lam the weight decay, k the number of this update (the collection's step + 1),
 * b1 and b2 the betas; squares, roots and products by element, sums and norms over the row:
 *   SGD              w -= lr * g; L2: w -= lr * (g + lam * w); DECOUPLE: w = w * (1 - lr * lam) - lr
 * * g
 *   ADAGRAD          h += e^2, e = g (+ lam * w for L2); w = c * w - lr * e / (sqrt(h) + eps);
 *                    c = 1, 1 - lr * lam (DECOUPLE). h: "sum" (Duchi et al. 2011)
 *   ROWWISE_ADAGRAD  h += sum(e^2) / D, e = g (+ lam * w for L2); r = lr / (sqrt(h / s) + eps);
 *                    w = c * w - r * g; c = 1, 1 - r * lam (L2), 1 - lr * lam (DECOUPLE). h: "sum", one
 *                    a row (as in FBGEMM); s: MOMENTUM_SCALE
 *   ADAM             m = b1 * m + (1 - b1) * g; v = b2 * v + (1 - b2) * g^2; M = m / (1 - b1^k);
 *                    V = v / (1 - b2^k); w -= lr * (M / (sqrt(V) + eps) + lam * w). m: "exp_avg",
 *                    v: "exp_avg_sq" (Kingma and Ba 2015; decay of Loshchilov and Hutter 2019)
 *   PARTIAL_ROWWISE_ADAM  as ADAM, v one a row: v = b2 * v + (1 - b2) * sum(g^2) / D
 *   LAMB             r = M / (sqrt(V) + eps) + lam * w; w -= lr * q * r; q = norm(w) / norm(r), 1 where
 *                    either is 0. m, v as ADAM (You et al. 2020)
 *   PARTIAL_ROWWISE_LAMB  as LAMB, v one a row as in PARTIAL_ROWWISE_ADAM
 *   LARS_SGD         a = lr * eta * norm(w) / (norm(g) + lam * norm(w)), lr where norm(w) or the
 *                    denominator is 0; m = momentum * m + a * (g + lam * w); w -= m.
 *                    m: "momentum_buffer" (You et al. 2017)
 * WEIGHT_DECAY_MODE: SGD, ADAGRAD and ROWWISE_ADAGRAD take NONE, L2 and DECOUPLE; ADAM, LAMB and their
 * partial forms NONE and DECOUPLE; LARS_SGD NONE and L2; NONE means lam = 0; any other pair is
 * UNSUPPORTED, as is MOMENTUM_SGD, which layers and DDP parameters have. MAX_NORM: after the step, and
 * after rounding to the table's dtype, w is scaled by MAX_NORM / norm(w) where norm(w) is above it. Rows
 * that no id touched do not change, and a touched row whose gradient is 0 is stepped. Arithmetic and states
 * are float32. MOMENTUM_SCALE: of R replicas on a mesh, each sees gradients that are divided by the size of its
 * sharding group, not by W, so that h of a row that few samples touch grows R times as fast as on one group of W
 * ranks, and steps shrink by sqrt(R); s = R takes that back (2D sparse parallelism, arXiv 2508.03854). A
 * row that all samples touch needs none: s between 1 and R, by table. Above 1 with another optimizer:
 * UNSUPPORTED. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (table), INVALID_ARGUMENT, UNSUPPORTED.
 * Since 0.2. */
SHARDREC_API shardrec_status shardrec_model_set_optimizer(shardrec_model *model, int32_t table,
                                                          SHARDREC_OPTIONS(OPTIMIZER)
                                                          const shardrec_options *options);

/* What a model holds. */
typedef struct shardrec_model_size {
  int64_t struct_size; /* sizeof(shardrec_model_size), set by the caller */
  int32_t tables;      /* number of tables */
  int32_t features;    /* number of features */
  int32_t sequences;   /* how many of the features are sequences (POOLING_NONE) */
  int32_t reserved;    /* 0 */
  int64_t width;       /* columns of output 0: the sum of the dims of all pooled features */
} shardrec_model_size;

/* How many tables and features the model has. out: its struct_size is set; the members that fit in it are
 * written. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT. Since 0.2. */
SHARDREC_API shardrec_status shardrec_model_info(const shardrec_model *model,
                                                 shardrec_model_size *out);

/* A table of a model. */
typedef struct shardrec_table {
  int64_t struct_size;          /* sizeof(shardrec_table), set by the caller */
  int64_t rows;                 /* number of rows */
  int64_t dim;                  /* elements of a row */
  shardrec_dtype dtype;         /* of its weights */
  shardrec_optimizer optimizer; /* its own, else the model's */
  double learning_rate;         /* that its optimizer begins with */
  int32_t states;               /* states of its optimizer, 0 to 2: parts of shardrec_table_part */
  int32_t features;             /* number of features that are looked up in it */
} shardrec_table;

/* A table and its name. table: its index, from 0. out: its struct_size is set; the members that fit in it
 * are written. out_name: freed by the caller with shardrec_text_free; may be NULL.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND (table), INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.2. */
SHARDREC_API shardrec_status shardrec_model_table(const shardrec_model *model, int32_t table,
                                                  shardrec_table *out,
                                                  SHARDREC_NULLABLE char **out_name);

/* A feature of a model, and where lookups write it. Output 0 holds the pooled features: tables as added,
 * within a table its features as added. */
typedef struct shardrec_feature {
  int64_t struct_size;      /* sizeof(shardrec_feature), set by the caller */
  int32_t table;            /* index of the table that it is looked up in */
  shardrec_pooling pooling; /* how the rows of a bag become one vector */
  int32_t output;           /* 0, or 1 + k for the k-th sequence feature in model order */
  int32_t reserved;         /* 0 */
  int64_t column;           /* its first column of that output; 0 for a sequence */
  int64_t columns;          /* its number of columns: the table's dim */
  int64_t width;            /* columns of that output, those of other features included */
} shardrec_feature;

/* A feature and its name. feature: its index, from 0. out, out_name: as shardrec_model_table.
 * Errors: as shardrec_model_table; NOT_FOUND (feature). Since 0.2. */
SHARDREC_API shardrec_status shardrec_model_feature(const shardrec_model *model, int32_t feature,
                                                    shardrec_feature *out,
                                                    SHARDREC_NULLABLE char **out_name);

/* The model as JSON, all keys spelled out:
 *   {"format": "shardrec-model-1",
 *    "optimizer": {"type": "rowwise_adagrad", "learning_rate": 0.1, "eps": 1e-08, ...},
 *    "tables": [{"name": "user", "rows": 943, "dim": 64, "dtype": "float32", "init": "uniform", ...}],
 *    "features": [{"name": "user_id", "table": "user", "pooling": "sum"}]}
 * The keys of an optimizer, their values and their defaults are those of options of kind OPTIMIZER ("type"
 * is OPTIMIZER), those of a table, but for its name, rows and dim, of options of kind TABLE.
 *   "format"                        text: "shardrec-model-1"
 *   "optimizer.type"                text
 *   "optimizer.learning_rate", "optimizer.eps", "optimizer.weight_decay"    number
 *   "optimizer.weight_decay_mode"   text
 *   "optimizer.max_gradient", "optimizer.beta1", "optimizer.beta2"          number
 *   "optimizer.momentum", "optimizer.eta", "optimizer.max_norm"             number
 *   "optimizer.momentum_scale"      optional number: left out where it is 1
 *   "optimizer.row_statistics"      text
 *   "tables[].name"                 text
 *   "tables[].rows", "tables[].dim"                                         integer
 *   "tables[].dtype", "tables[].init", "tables[].rounding", "tables[].out_of_range"    text
 *   "tables[].init_min", "tables[].init_max"    optional number: left out at their defaults
 *   "tables[].allowed_sharding"     optional array of texts: kinds of sharding; left out: all
 *   "tables[].allowed_ranks"        optional text: "0-3, 7"; left out: all
 *   "tables[].min_columns"          optional integer: left out: 1
 *   "tables[].optimizer"            optional, as "optimizer": left out where it is the model's
 *   "features[].name", "features[].table"       text: its name, and that of its table
 *   "features[].pooling"            text: "sum", "mean" or "none"
 * Enumerators are written as shardrec_options_set_text takes them. Tables and features stand in the
 * order of their indices.
 * out_text: freed by the caller. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_model_to_json(const shardrec_model *model, char **out_text);

/* Makes a model from such JSON. Needed are "format", "tables", of a table its name, rows and dim, of a
 * feature its name and table; what else is left out has its default ("pooling": "sum"). Unknown keys
 * and keys that stand twice are refused, and so is a format of a later version. out: owned by the caller.
 * Errors: INVALID_ARGUMENT (the sentence says where), UNSUPPORTED, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_model_from_json(const char *json, shardrec_model **out);

#ifdef __cplusplus
}
#endif
#endif
