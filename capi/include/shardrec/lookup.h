/* A lookup: a slot for one batch on its way through a collection.
 *
 *   begin -> forward -> set_gradient -> backward      a training step
 *   ... set_gradient -> send_gradients -> backward    the same, with gradients that travel early
 *   ... set_gradient -> backward_begin -> backward_wait   the same, on a thread of the library
 *   ... set_gradient -> backward(ACCUMULATE)          gradients for a later step
 *   begin -> forward                                  evaluation: no table changes
 *   begin -> forward -> backward(SKIP)                a step that no rank applies
 *
 * Two lookups overlap: begin of the next batch may be called while this one's dense work runs;
 * begin reads no weights. A forward before the previous batch's backward reads the weights without
 * it. All ranks make the same calls in the same order; batches may differ in size and be empty.
 *
 * A bad batch never stops the others: begin accepts it, and forward returns INVALID_BATCH on every
 * rank, naming rank, table, feature and position. The lookup is then idle, nothing has changed, and
 * training goes on with the next batch.
 *
 * Of a collection on a device (option DEVICE), values, lengths, weights, inverse, outputs, gradients and
 * those of weights may each be on that device or on the CPU; all else, offsets and batch sizes among it,
 * is on the CPU. Tensors on the device are read and written in the order of the lookup's stream
 * (shardrec_lookup_set_stream), and calls return before that has happened: what the caller enqueues there
 * afterwards finds the output written, and may overwrite what a call was given ("read before it returns"
 * below) - ids after begin, gradients after set_gradient or, with BORROW, both after backward. The host
 * waits in begin, forward and backward for sizes, checks and other ranks only, and where these are other
 * processes for the messages to them, which are copied. Of tensors on the CPU calls return when they are
 * through with them. An error on the device shows in that call or a later one
 * (shardrec_collection_wait_device waits for it) as DEVICE_ERROR: a batch that begin says it could not read
 * was not begun, and in forward or in the middle of an exchange the communicator ends.
 *
 * Destroying a lookup between begin and forward, between send_gradients and backward, or between
 * backward_begin and backward_wait, gives peers that wait for it PEER_FAILED at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_LOOKUP_H
#define SHARDREC_LOOKUP_H

#include "shardrec/batch.h"
#include "shardrec/collection.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shardrec_lookup shardrec_lookup;

/* Makes a lookup. All ranks make their lookups in the same order; at most as many as the option
 * LOOKUPS says (default 2). Not blocking. options: kind LOOKUP or NULL. out: owned by the caller;
 * keeps the collection's tables alive.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (too many), OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_lookup_create(shardrec_collection *collection,
                                                    SHARDREC_OPTIONS(LOOKUP)
                                                    const shardrec_options *options,
                                                    shardrec_lookup **out);

/* Destroys the handle and nulls the caller's copy. Not collective. Never blocks, but on a collection on a
 * device: it returns when what was enqueued there is over, and as CUDA gives pinned memory back only then,
 * when the devices of the process have nothing to do; and between backward_begin and backward_wait: it
 * returns when what this rank computes of the step is over. With the last lookup of a destroyed collection it
 * waits as shardrec_collection_destroy does. Since 0.1. */
SHARDREC_API void shardrec_lookup_destroy(SHARDREC_NULLABLE shardrec_lookup **lookup);

/* From the next call on, tensors on the device of the collection are read and written in the order of
 * this stream. stream: the value of a cudaStream_t of that device, which is not being captured; it must
 * live until the next call of this function, or until the lookup is destroyed. 0 (default): the legacy
 * default stream. Of a collection on the CPU it is not looked at. Not collective, not blocking. Errors:
 * INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (no stream of the device, as far as CUDA can tell),
 * DEVICE_ERROR. Since 0.1. */
SHARDREC_API shardrec_status shardrec_lookup_set_stream(shardrec_lookup *lookup, int64_t stream);

/* What a batch does to the tables when it ends (shardrec_lookup_backward). */
typedef enum shardrec_update {
  SHARDREC_UPDATE_APPLY = 0, /* one optimizer step with its gradients and those that were kept */
  SHARDREC_UPDATE_ACCUMULATE = 1, /* its gradients are kept for the next step that is applied */
  SHARDREC_UPDATE_SKIP = 2,       /* no rank applies a step */
  SHARDREC_UPDATE_FORCE_32 = 0x7fffffff
} shardrec_update;

/* Starts the exchange of a batch's ids. The ids are read before it returns (unless BORROW); ranks may mix
 * lengths, offsets, and batch sizes of features. A rank whose batch has no values takes part in steps all
 * the same.
 * Collective, not blocking: takes part in the order of calls, waits for nobody. On an idle or
 * evaluated lookup it returns an error only for INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (batch NULL or
 * of a size that is none: nothing was begun), UNSUPPORTED (members that this release does not know are not
 * zero: likewise), OUT_OF_MEMORY and a dead communicator; every defect of the batch is this rank's verdict,
 * told by forward. INVALID_STATE when the lookup has begun and not forwarded. Since 0.2. */
SHARDREC_API shardrec_status shardrec_lookup_begin(shardrec_lookup *lookup,
                                                   const shardrec_batch *batch);

/* Rows and columns of an output of the batch that has begun; either out may be NULL. Output 0, the
 * pooled features: [batch_size, width] (shardrec_model_info). Output 1 + k, the k-th sequence feature
 * (pooling NONE) in model order: [ids of the feature in this rank's batch, dim], in the batch's order. 0 rows when this rank's batch is one that forward will refuse.
 * Not collective; may wait for a device. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no begin),
 * NOT_FOUND (output), OUT_OF_MEMORY, DEVICE_ERROR. Since 0.1. */
SHARDREC_API shardrec_status shardrec_lookup_output_shape(const shardrec_lookup *lookup,
                                                          int32_t output,
                                                          SHARDREC_NULLABLE int64_t *out_rows,
                                                          SHARDREC_NULLABLE int64_t *out_columns);

/* Finishes the exchange, looks up and writes an output.
 * output: 0 or that of a sequence feature (shardrec_lookup_output_shape). out: of that shape, FLOAT32
 *   or what the collection's option OUTPUT_DTYPE says, unit column stride, any row stride >= columns.
 * The first call after begin, for whichever output, is collective and blocking. Others, and asking
 * again, copy an output, up to the next call that exchanges anything on the collection (INVALID_STATE
 * afterwards).
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no begin), NOT_FOUND (output), INVALID_ARGUMENT for
 * out (these only on this rank; nothing was exchanged: call again with what is right); INVALID_BATCH (see
 * above); DISAGREEMENT (lookups of the ranks differ in WEIGHT_GRADIENT), OUT_OF_MEMORY, MISMATCH,
 * PEER_FAILED, TIMEOUT, ABORTED. After INVALID_ARGUMENT out is as it
 * was; after any other error it may be written in part, since this rank's own rows are looked up
 * while the others' are under way. Since 0.1. */
SHARDREC_API shardrec_status shardrec_lookup_forward(shardrec_lookup *lookup, int32_t output,
                                                     SHARDREC_WRITTEN const shardrec_tensor *out);

/* 1 when no rank has more data (all gave values NULL), else 0; valid after forward, and the same on all
 * ranks (on a mesh without replicated tables, of the own sharding group): the end of an epoch when ranks
 * have different numbers of batches. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT. Since 0.1. */
SHARDREC_API shardrec_status shardrec_lookup_all_done(const shardrec_lookup *lookup,
                                                      SHARDREC_FLAG int32_t *out);

/* Gives the gradient of this rank's loss with respect to an output, shaped and typed as in forward.
 * It is read before the call returns (unless BORROW). Not collective. May be called again before
 * backward; the last one counts. All outputs with elements need one: give zeros where the loss does
 * not depend on it.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no forward), NOT_FOUND (output),
 * INVALID_ARGUMENT (the gradient given before, if any, stays), OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_lookup_set_gradient(shardrec_lookup *lookup, int32_t output,
                                                          const shardrec_tensor *gradient);

/* Sends this rank's gradients now, so that they travel while the host computes what the tables do not
 * need, such as the backward of its bottom layers. backward then does the rest of the
 * step: the same bits as without this call. A rank may call it or not, whatever the others do.
 * update: APPLY or ACCUMULATE, as backward will be given; it is sent along, and a backward with another
 *   one is INVALID_STATE (nothing has changed: call it with this one).
 * The step has the learning rates and frozen tables of now: what is set before backward counts from
 * the next step on. The gradient of an output that is missing is told by backward, as without this
 * call. Gradients that are BORROWed must stay, unchanged, until backward has returned,
 * or the lookup is destroyed: other ranks may read them in the meantime.
 * Up to backward, this lookup takes no begin, set_gradient or send_gradients, and on its collection
 * nothing else that looks up or changes tables is exchanged (forward, backward, send_gradients of
 * another lookup, reads and writes of rows, shardrec_collection_sync_replicas, _sync_begin, _sync_wait,
 * _check_replicas and _replica_fill): INVALID_STATE, nothing has changed. begin and set_gradient of other lookups are
 * fine. Not collective, but takes part in the order of calls as backward would. Not blocking: waits for
 * nobody. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no forward; see above),
 * INVALID_ARGUMENT, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, MISMATCH, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_lookup_send_gradients(shardrec_lookup *lookup,
                                                            shardrec_update update);

/* Ends the batch: exchanges the gradients and does with them what update says. The lookup is then idle.
 * All ranks give the same update, but that one SKIP is enough: with any other mixture the step is
 * INVALID_BATCH on all ranks and changes nothing, what is kept included.
 *
 * APPLY: one optimizer step on every row that some rank's batch touched, by the sum of its gradients and
 * of those that were kept.
 * Scaling: gradient / divisor (option GRADIENT_DIVISOR), clamped to MAX_GRADIENT, for MEAN divided by
 * the bag's length, times the id's weight. A row that several features touch, pooled or sequences, is
 * updated once, by the sum. A rank without the gradient of an output that has elements (set_gradient
 * was not called), or, with the option NON_FINITE ERROR, with a NaN or an infinity in one, makes this
 * INVALID_BATCH on all ranks.
 *
 * ACCUMULATE: the gradients are kept. The next step that is applied, of any lookup of the collection,
 * adds its own and applies the sum (not divided by the number of lookups); gradients were scaled and clamped
 * lookup by lookup. Summed row by row in the order of the calls: the same bits under every plan. Lookups
 * between see the weights as they are. Of a table that is frozen now (shardrec_collection_set_frozen)
 * nothing is kept: its gradients of this lookup are dropped for good.
 *
 * SKIP: no rank applies or keeps anything, and this returns OK on all of them: shardrec_collection_step tells.
 * No gradient is needed. With the option NON_FINITE SKIP a rank whose gradients hold a NaN or an infinity does this
 * in place of what its update says. On a mesh the sharding groups then wait for each other in this call: a step that
 * one group skips or refuses (INVALID_BATCH) is not applied by the others either, which return OK. On a mesh with
 * replicated tables all its ranks take the step together, as those of one group do: what one skips or refuses, all skip
 * or refuse, and training settings are the same on all of them. A rank without data takes part with an empty batch; for
 * a sharding group that does not take part, the others wait until their deadline (TIMEOUT, naming a rank of it and the
 * call). With the option SYNC_EVERY of the collection an update may end with a sync of the replicas
 * (shardrec_collection_create).
 *
 * Collective, blocking. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (update), INVALID_STATE (no
 * forward; another update than send_gradients was given: these only on this rank; tables that were loaded or
 * filled since, on all ranks alike: the batch is over, and nothing was exchanged), INVALID_BATCH, DISAGREEMENT
 * (SYNC_EVERY), OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_lookup_backward(shardrec_lookup *lookup,
                                                      shardrec_update update);

/* backward in two halves: the step is taken on a thread of the lookup's own, while the host computes what the
 * tables do not need, such as the backward of its bottom layers, their DDP and their step. The same bits as
 * backward; a rank may call this or backward, whatever the others do. The work uses the threads of the
 * collection (its option THREADS). update: as backward.
 * From here to backward_wait of this lookup, all other calls on the collection and its lookups that are not
 * said to be for any thread are INVALID_STATE, and so are commits, loads and syncs of the collection; nothing
 * has changed. Gradients that are BORROWed must stay, unchanged, until backward_wait has returned.
 * Not collective, but takes part in the order of calls as backward would. Not blocking: waits for nobody. Errors:
 * INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (update), INVALID_STATE (as backward), OUT_OF_MEMORY (also where the
 * system starts no more threads: the gradients are sent then, and backward may be called), PEER_FAILED, TIMEOUT,
 * MISMATCH, ABORTED. After an error nothing is to be waited for. Since 0.2. */
SHARDREC_API shardrec_status shardrec_lookup_backward_begin(shardrec_lookup *lookup,
                                                            shardrec_update update);

/* Waits for the step that backward_begin has started, and returns what backward would: the lookup is then idle.
 * Collective, blocking; on any thread. Errors: INVALID_HANDLE, CLOSED, BUSY (another thread waits), INVALID_STATE
 * (no backward_begin), and those of backward. Since 0.2. */
SHARDREC_API shardrec_status shardrec_lookup_backward_wait(shardrec_lookup *lookup);

/* The gradients of the loss of this rank's samples with respect to the weights of its ids: for an id
 * of a bag, the sum over columns of its row, as it was just before the step of this backward, times
 * the output gradient of the bag, divided by the bag's length for MEAN; neither divided by
 * GRADIENT_DIVISOR nor clamped. 0 for ids of sequences and for ids that were dropped. A batch without
 * weights has them too (as if all were 1). Given to lookups made with the option WEIGHT_GRADIENT;
 * after backward, up to the next begin.
 * out: [ids], FLOAT32, compact, in the order of values, on the CPU (or a device, see above). Not
 * collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT. Since 0.1. */
SHARDREC_API shardrec_status shardrec_lookup_weight_gradient(
    const shardrec_lookup *lookup, SHARDREC_WRITTEN const shardrec_tensor *out);

#ifdef __cplusplus
}
#endif
#endif
