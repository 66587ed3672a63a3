/* A scorer: read-only serving of a checkpoint, without a communicator and without optimizer states.
 *
 *   CHECK(shardrec_scorer_open("run", -1, NULL, NULL, &scorer));         // the newest checkpoint
 *   ... any number of threads ...
 *   CHECK(shardrec_scorer_predict(scorer, &batch, &dense, &out, NULL));
 *   ... when the training has committed again ...
 *   CHECK(shardrec_scorer_refresh(scorer, -1, NULL, &step));             // calls go on meanwhile
 *
 * Every call is answered from one checkpoint as a whole, the one that was open when it began.
 *
 * Tables lie in memory, in the checkpoint's files (MAPPED: processes that serve the same checkpoint
 * share the pages), or in memory in 8 bits per element (INT8), as the option SERVED_TABLES says. Of a delta
 * (shardrec_checkpoint_commit_delta) the whole checkpoint behind it is served with the rows that its deltas have
 * changed; tables with such rows are in memory then, also where MAPPED is asked for. INT8 tables take no more memory than
 * of a whole checkpoint, but for the rows that have changed, in their own dtype, while they are read; where deltas have
 * some columns of rows only, which no training of one plan writes, all rows of that table are read in it.
 *
 * The dense half, where the checkpoint has one, is a DLRM's: two stacks of layers, named by the options
 * BOTTOM_LAYERS and TOP_LAYERS, around a dot interaction (layers.h), whose vectors are the bottom stack's
 * output and the pooled features in the order of output 0:
 *
 *   scores = sigmoid(top(interaction(bottom(dense), pooled)))
 *
 * Numbers: lookups have the bits of shardrec_lookup_forward on one rank, and scores those of
 * shardrec_mlp_forward, shardrec_interaction_forward and shardrec_bce_with_logits for the same batch
 * size. INT8: row r is [codes: dim bytes][scale: float][offset: float] (FBGEMM's fused 8-bit rows),
 * element c is code[c] * scale + offset with scale = (most - least) / 255, offset = least of the row,
 * rounded to the nearest code, ties to even; so no further than scale / 2 from what was trained. A finite
 * row whose most - least is no finite float32 is not served so: open and refresh are UNSUPPORTED. Sums
 * are taken as sum(w * scale * code) + sum(w * offset), each in float32 in the order of the bag.
 *
 * Thread rule: shardrec_scorer_lookup and _predict may be called by any number of threads at once on
 * one handle. They compute on the calling thread, take no lock, and, once as many threads have been
 * inside at once with batches as large, allocate nothing; what OpenBLAS multiplies in (layers.h) is had when a
 * checkpoint is opened. So may _info and _model. Of
 * shardrec_scorer_refresh one call at a time, else BUSY.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_SCORER_H
#define SHARDREC_SCORER_H

#include "shardrec/batch.h"
#include "shardrec/control.h"
#include "shardrec/model.h"
#include "shardrec/options.h"
#include "shardrec/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shardrec_scorer shardrec_scorer;

/* Opens a checkpoint for serving. Every byte that is served is read and compared with its checksum:
 * a damaged checkpoint is refused.
 * directory: UTF-8, as shardrec_checkpoint_create was given it, or one that is a checkpoint itself.
 * step: that of the checkpoint, -1 for the newest. options: kind SCORER or NULL. control: NULL allowed;
 * counts bytes, cancels. out: owned by the caller.
 * With MAPPED tables the files must stay as they are while they are served: removing them is fine
 * (KEEP_LAST), truncating one in place ends the process with SIGBUS. No call of this library does that.
 * Blocking, any thread. Errors: INVALID_HANDLE (options, control), INVALID_ARGUMENT (an option; layers
 * that options name and that do not fit, the sentence says which columns), NOT_FOUND (the checkpoint,
 * the collection, layers that options name; a checkpoint of an earlier release, which holds no model),
 * CORRUPT_DATA, UNSUPPORTED (of a later release; with INT8 a row of too wide a range, whose table and
 * position the error has), IO_ERROR, CANCELLED, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_scorer_open(const char *directory, int64_t step,
                                                  SHARDREC_OPTIONS(SCORER)
                                                  const shardrec_options *options,
                                                  SHARDREC_NULLABLE shardrec_control *control,
                                                  shardrec_scorer **out);

/* Destroys the handle and nulls the caller's copy; never blocks. Calls in progress end as if it had not
 * been; the last one frees the tables. Since 0.1. */
SHARDREC_API void shardrec_scorer_destroy(SHARDREC_NULLABLE shardrec_scorer **scorer);

/* Serves another checkpoint of the directory from now on: step as shardrec_scorer_open. Where that is
 * the one that is open, it stays. Both are in memory until calls that began with the one before
 * have returned, which this call waits for. Where it is a delta behind the one that is open, however many there are in
 * between, only the rows that have changed since are read, and the dense half: calls read them beside the tables until
 * none of them reads the checkpoint before, then they are written into the tables; memory and time are in
 * proportion to them, with half a byte per row of the tables that have changed, and the manifests of these deltas. INT8
 * rows are quantised anew where they have changed. The whole checkpoint and its deltas are read where tables that are MAPPED
 * have changed, and where INT8 rows have changed in some columns only. Its tables must have the same names, dims, and
 * features as those that are served, and layers the same columns at both ends; rows and dtypes may differ.
 * After an error the one before is served on. control: as shardrec_scorer_open. out_step: the step that
 * is served now; may be NULL. Blocking. Errors: INVALID_HANDLE, CLOSED, BUSY (another refresh), and
 * those of shardrec_scorer_open; INVALID_ARGUMENT (another model). Since 0.1. */
SHARDREC_API shardrec_status shardrec_scorer_refresh(shardrec_scorer *scorer, int64_t step,
                                                     SHARDREC_NULLABLE shardrec_control *control,
                                                     SHARDREC_NULLABLE int64_t *out_step);

/* The model of the collection that is served: its features, in the order of batches, and tables.
 * out: a copy, owned by the caller. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_scorer_model(const shardrec_scorer *scorer,
                                                   shardrec_model **out);

/* What is served. */
typedef struct shardrec_served {
  int64_t struct_size;   /* sizeof(shardrec_served), set by the caller */
  int64_t step;          /* of the checkpoint */
  int64_t dense_columns; /* of the dense input; 0: no dense half that fits */
  int64_t scores;        /* per sample; 0: no dense half that fits */
} shardrec_served;

/* What is served now. out: its struct_size is set; the members that fit in it are written.
 * Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT. Since 0.1. */
SHARDREC_API shardrec_status shardrec_scorer_info(const shardrec_scorer *scorer,
                                                  shardrec_served *out);

/* Looks up a batch and writes one of its outputs.
 * output: 0, the pooled features, or 1 + k, the k-th sequence feature (lookup.h). batch: on the CPU,
 * values are not NULL. out: [batch_size, width] or, of a
 * sequence, [ids of the feature, dim]; FLOAT32, FLOAT16 or BFLOAT16 (rounded once, to nearest even),
 * unit column stride, any row stride >= columns. out_step: the step of the checkpoint that has answered;
 * may be NULL. Ids out of range: as their table's OUT_OF_RANGE says.
 * Errors: INVALID_HANDLE, CLOSED; NOT_FOUND (output), INVALID_ARGUMENT (out; batch NULL or of a size that
 * is none), UNSUPPORTED (members of batch that this release does not know are not zero); INVALID_BATCH,
 * with table, feature and position: nothing has been written; OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_scorer_lookup(const shardrec_scorer *scorer, int32_t output,
                                                    const shardrec_batch *batch,
                                                    SHARDREC_WRITTEN const shardrec_tensor *out,
                                                    SHARDREC_NULLABLE int64_t *out_step);

/* Scores a batch: probabilities, or logits with the option LOGITS.
 * batch: as shardrec_scorer_lookup. dense: [batch_size, dense columns] (shardrec_scorer_info), FLOAT32,
 * unit column stride. out: [batch_size, scores], FLOAT32, unit column stride, any row stride; of
 * one score also [batch_size]. out_step: as shardrec_scorer_lookup.
 * Errors: as shardrec_scorer_lookup; INVALID_ARGUMENT (option NON_FINITE ERROR, and dense is NaN or
 * infinite in row POSITION, column VALUE); UNSUPPORTED (no dense half that fits, or the GEMM plug-in is
 * missing: the sentence says why). Since 0.1. */
SHARDREC_API shardrec_status shardrec_scorer_predict(const shardrec_scorer *scorer,
                                                     const shardrec_batch *batch,
                                                     const shardrec_tensor *dense,
                                                     SHARDREC_WRITTEN const shardrec_tensor *out,
                                                     SHARDREC_NULLABLE int64_t *out_step);

#ifdef __cplusplus
}
#endif
#endif
