/* Data-parallel dense parameters (DDP): the same values on all ranks, gradients averaged over the
 * ranks while backward still computes others, and an optimizer where the host has none.
 *
 *   add_parameter ..., commit
 *   each step:   begin, then for each layer as backward goes: mark_ready; end, [other work,] wait, step
 *   or at once:  all_reduce
 *
 * Gradients travel in buckets of one dtype: the last parameter added comes first, a bucket is full from
 * DDP_FIRST_BUCKET_BYTES and then DDP_BUCKET_BYTES on (Li et al., VLDB 2020). A bucket is sent when all
 * its parameters are ready, strictly in one order, so that ranks need not agree in which order layers
 * become ready. Sums are a pairwise tree over the rank number in float32 (float64 for FLOAT64): every
 * rank gets the same bits, on every engine, whatever was ready when.
 *
 * A thread of the library sends, adds up and writes buckets during backward; the last bucket is sent
 * by end and taken by wait. A set of one bucket, and a rank that has one processor (option DDP_THREAD),
 * has no such thread: end sends all, which travels while the host does other work before wait.
 * Steps without sync (begin, sync 0) send nothing: the host adds to the gradients, and the next step
 * with sync reduces the sum (gradient accumulation).
 *
 * Devices: all parameters of a set are on the CPU or on one CUDA device, the same kind on all ranks.
 * On a device, gradients are read behind what the caller's stream (option STREAM; of a stack: its own)
 * holds when they are marked, sums have the bits of the CPU's, and nothing is copied to the host but
 * between processes whose engine is not nccl and which do not read each other's devices (capi/GPU.md); wait
 * returns when gradients are written. What else is done
 * to them is enqueued: behind what the stream holds, before what the caller puts there next.
 * commit, broadcast, join, check_equal and checkpoints copy values and states through the host; a
 * checkpoint inside a step is INVALID_STATE there.
 *
 * Failures: a rank that does not come ends the wait of the others with PEER_FAILED or TIMEOUT, and the
 * communicator. A handle that is destroyed inside a step with sync does that too.
 *
 * Thread rule: mark_ready and mark_unused from any thread, several at once; all others one thread at a
 * time per handle, else BUSY. A steady step allocates nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_DDP_H
#define SHARDREC_DDP_H

#include "shardrec/comm.h"
#include "shardrec/layers.h"
#include "shardrec/options.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shardrec_ddp shardrec_ddp;

/* What shardrec_ddp_clip_gradients bounds. */
typedef enum shardrec_clip {
  SHARDREC_CLIP_L2 = 0,       /* the root of the sum of all squares, summed in float64 */
  SHARDREC_CLIP_INFINITY = 1, /* the largest magnitude, by scaling all gradients */
  SHARDREC_CLIP_VALUE = 2,    /* each element by itself */
  SHARDREC_CLIP_FORCE_32 = 0x7fffffff
} shardrec_clip;

/* Makes an empty set of parameters. options: kind DDP or NULL. out: owned by the caller. Not
 * collective. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_create(shardrec_comm *comm,
                                                 SHARDREC_OPTIONS(DDP)
                                                 const shardrec_options *options,
                                                 shardrec_ddp **out);

/* Destroys the handle and nulls the caller's copy; the parameters stay the host's, views of gradients
 * and states end. Inside a step with sync the communicator fails: PEER_FAILED on the others. Of a set on a
 * device between processes it may wait as shardrec_collection_destroy does. Since 0.1. */
SHARDREC_API void shardrec_ddp_destroy(SHARDREC_NULLABLE shardrec_ddp **ddp);

/* Adds a parameter: a compact tensor of FLOAT32, FLOAT64, FLOAT16 or BFLOAT16 on the CPU or a CUDA device,
 * whose memory stays the host's and in place until the handle is destroyed. It is written by commit,
 * broadcast, join and step only.
 * gradient: of the same shape and dtype on the same device, likewise in place; read and written between its
 *   mark_ready and wait. NULL: memory of the library, on that device (shardrec_ddp_gradient), or of
 *   shardrec_ddp_set_flat_gradient.
 * name: UTF-8, not empty, unique. out_index: counts from 0; may be NULL. Not collective.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (after commit), INVALID_ARGUMENT, UNSUPPORTED
 * (dtype; another device than that of the parameters before), OUT_OF_MEMORY. Since 0.1; CUDA devices
 * since 0.2. */
SHARDREC_API shardrec_status shardrec_ddp_add_parameter(
    shardrec_ddp *ddp, const char *name,
    SHARDREC_WRITTEN SHARDREC_KEPT const shardrec_tensor *parameter,
    SHARDREC_NULLABLE SHARDREC_WRITTEN SHARDREC_KEPT const shardrec_tensor *gradient,
    SHARDREC_NULLABLE int32_t *out_index);

/* Adds all parameters of a stack as "<name>.layer.<l>.weight" and ".bias". From then on
 * shardrec_mlp_backward marks them ready, layer by layer, in steps that have begun; backward a second
 * time in a step with sync is INVALID_STATE there. No layer is added to the stack afterwards; it may
 * be destroyed before the set. A stack is in one set at a time. out_first: index of its first
 * parameter; may be NULL. Not collective. Errors: as shardrec_ddp_add_parameter; INVALID_STATE (no
 * layer; in another set already). Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_add_mlp(shardrec_ddp *ddp, const char *name,
                                                  shardrec_mlp *mlp,
                                                  SHARDREC_NULLABLE int32_t *out_first);

/* The gradients of all parameters that are added without one lie one behind the other in this tensor,
 * in the order of adding: compact, of their dtype and device, as many elements as they have together
 * (checked by commit). Its memory stays the host's and in place until the handle is destroyed. Before commit; not
 * collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT, UNSUPPORTED.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_set_flat_gradient(
    shardrec_ddp *ddp, SHARDREC_WRITTEN SHARDREC_KEPT const shardrec_tensor *gradients);

/* Gives the set an optimizer, for shardrec_ddp_step or the option DDP_STEP_IN_BACKWARD. All parameters
 * must be FLOAT32, and no name begins with "optimizer." (checked by commit). options: kind OPTIMIZER
 * (SGD, MOMENTUM_SGD, ADAGRAD, ADAM, LAMB with one trust ratio per parameter; formulas:
 * shardrec_mlp_create; AdamW is ADAM with WEIGHT_DECAY_MODE DECOUPLE), read now; NULL: SGD. Layers of
 * stacks that were added are stepped by it too: do not call shardrec_mlp_step then. Before commit; not
 * collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT, UNSUPPORTED. Since
 * 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_set_optimizer(shardrec_ddp *ddp,
                                                        SHARDREC_OPTIONS(OPTIMIZER)
                                                        const shardrec_options *options);

/* Checks that all ranks added the same parameters (count, names, dtypes, shapes) with the same options
 * and optimizer, makes the buckets (memory for one more copy of the gradients, at DDP_COMPRESSION's
 * size) and the library's gradients (zero), then copies rank 0's values to all (option DDP_BROADCAST).
 * Collective, blocking (setup deadline).
 * Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_STATE (twice: only this rank; no parameters: on all ranks
 * alike), INVALID_ARGUMENT and UNSUPPORTED (of the optimizer and the flat gradient, a hook of a set on a
 * device; only this rank), UNSUPPORTED (DDP_REDUCTION NCCL where NCCL cannot reduce; on all ranks alike, and
 * the communicator lives on), UNSUPPORTED and DEVICE_ERROR (the device, plug-ins), which end the communicator;
 * DISAGREEMENT (names rank and parameter, the same on all ranks); OUT_OF_MEMORY, MISMATCH, PEER_FAILED,
 * TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_commit(shardrec_ddp *ddp);

/* A view of a parameter's gradient, where the parameter is, valid until the handle is destroyed; after commit.
 * Errors: INVALID_HANDLE, CLOSED, INVALID_STATE, NOT_FOUND, INVALID_ARGUMENT. Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_gradient(const shardrec_ddp *ddp, int32_t index,
                                                   shardrec_tensor *out);

/* The bucket that a parameter is in, from 0 in the order of sending; with DDP_ORDER RECORDED another
 * one from the second step on. Errors: as shardrec_ddp_gradient. Any thread, but not during begin.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_bucket_of(const shardrec_ddp *ddp, int32_t index,
                                                    int32_t *out);

/* Begins a step. sync 1: its gradients are reduced; 0: nothing is sent, and what was marked ready counts
 * as used in the next step with sync. The same on all ranks. Not blocking, but once: with DDP_ORDER
 * RECORDED the second step with sync begins with an exchange.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no commit; inside a step), INVALID_ARGUMENT,
 * OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_begin(shardrec_ddp *ddp, SHARDREC_FLAG int32_t sync);

/* The gradients of parameters [first, first + count) are whole, on a device behind what the caller's stream
 * holds now: from now to wait the host leaves them alone. Does not block: below a microsecond, but for one
 * that wakes the thread which sends a bucket, and on a device, where an event is recorded, and for
 * parameters of a stack a call of the stack is waited for. Any thread. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT,
 * INVALID_STATE (before begin, after end, a second time in a step with sync: names the parameter;
 * those before it in the range are marked). Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_mark_ready(shardrec_ddp *ddp, int32_t first,
                                                     int32_t count);

/* This rank's batch does not use parameters [first, first + count): zeros are sent, unless a step
 * without sync before has used them. With DDP_UNUSED MARK or ZERO; those not marked when the step ends
 * are unused likewise. Errors: as shardrec_ddp_mark_ready; INVALID_STATE with DDP_UNUSED ERROR.
 * Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_mark_unused(shardrec_ddp *ddp, int32_t first,
                                                      int32_t count);

/* Ends the host's part of a step: no parameter is marked any more, and what is left is sent. Waits for nobody
 * but for a peer that has not taken the gradients of the step before yet; on a device between processes
 * without NCCL, where it is end that sends (DDP_THREAD), for the device, whose messages leave by the host, or
 * by CUDA IPC for peers' copies of the step before.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no begin). Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_end(shardrec_ddp *ddp);

/* Waits until all gradients of the step are reduced and written. Collective, blocking; after a step
 * without sync it returns at once and may be left out.
 * Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_STATE: no end, only this rank; or, on all ranks alike, a
 * rank had not marked a parameter that it had to (DDP_UNUSED ERROR), named in the sentence, RANK and
 * POSITION: buckets without it are reduced, the others as they were; the communicator lives on.
 * INVALID_BATCH, on all ranks alike: option NON_FINITE ERROR, and a reduced gradient is NaN or infinite;
 * the sentence names the parameter, which is POSITION, VALUE its element. With SKIP this returns OK,
 * shardrec_ddp_step then does nothing, and "non_finite_steps" of the statistics counts. MISMATCH,
 * OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED; what a hook returned. Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_wait(shardrec_ddp *ddp);

/* A whole step with sync: begin, all parameters ready, end, wait. Collective, blocking. Errors: as these.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_all_reduce(shardrec_ddp *ddp);

/* For a rank without more batches: takes part in the others' steps with zeros, until all ranks have
 * joined. The mean is over all ranks or those that have not joined (option DDP_JOIN_DIVISOR). Then the
 * values and optimizer states of the rank with most steps (of several, the lowest) are copied to all.
 * Collective, blocking; each step of the others counts anew for the deadline. Errors: as
 * shardrec_ddp_wait, shardrec_ddp_broadcast. Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_join(shardrec_ddp *ddp);

/* Sets all gradients to zero; between steps. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_zero_gradients(shardrec_ddp *ddp);

/* Bounds the gradients of all parameters, of any dtype; the same on every rank without an exchange, for
 * gradients are reduced. Results are rounded to nearest in the gradient's dtype.
 * CLIP_L2, CLIP_INFINITY: all are multiplied by min(1, bound / (norm + 1e-6)), as PyTorch's
 *   clip_grad_norm_. The factor is float32 (float64 for FLOAT64 gradients).
 * CLIP_VALUE: each becomes the nearest number in [-bound, bound], as clip_grad_value_; NaN stays.
 * bound: finite, >= 0. out_norm: the norm before, with CLIP_VALUE the infinity norm; may be NULL. A norm
 * that is NaN or infinite is returned with OK and scales nothing, and shardrec_ddp_step takes the
 * gradients as they are: look at it, or set the option NON_FINITE, by which shardrec_ddp_wait refuses
 * such gradients. After wait. Errors: INVALID_HANDLE, CLOSED, BUSY,
 * INVALID_ARGUMENT, INVALID_STATE (inside a step; DDP_STEP_IN_BACKWARD). Since 0.2. */
SHARDREC_API shardrec_status shardrec_ddp_clip_gradients(shardrec_ddp *ddp, shardrec_clip clip,
                                                         double bound,
                                                         SHARDREC_NULLABLE double *out_norm);

/* One optimizer step on all parameters with their gradients, which stay as they are. After wait. Not
 * collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no optimizer; inside a step;
 * DDP_STEP_IN_BACKWARD). Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_step(shardrec_ddp *ddp);

/* Sets the learning rate from the next step on; the same on all ranks. Errors: INVALID_HANDLE, CLOSED,
 * BUSY, INVALID_ARGUMENT, INVALID_STATE (no optimizer; inside a step). Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_set_learning_rate(shardrec_ddp *ddp,
                                                            double learning_rate);

/* A view of an optimizer state of a parameter, FLOAT32, where and shaped as it, valid until the handle is
 * destroyed; after commit. state: MOMENTUM_SGD 0 the momentum; ADAGRAD 0 the sum; ADAM and LAMB 0 the
 * mean, 1 the mean of squares. Checkpoints have them, and the number of steps.
 * Errors: INVALID_HANDLE, CLOSED, INVALID_STATE, NOT_FOUND, INVALID_ARGUMENT. Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_state(const shardrec_ddp *ddp, int32_t index,
                                                int32_t state, shardrec_tensor *out);

/* Compares values and optimizer states over the ranks, by a hash of 64 bits each. Collective, blocking;
 * between steps. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, DISAGREEMENT (names the first
 * parameter and rank that differ from rank 0, the same on all ranks), OUT_OF_MEMORY, MISMATCH,
 * PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_check_equal(shardrec_ddp *ddp);

/* Copies values, optimizer states and the number of steps of rank root to all. Collective, blocking
 * (setup deadline); between steps. Errors: as shardrec_ddp_check_equal, but DISAGREEMENT;
 * INVALID_ARGUMENT (root; only this rank). Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_broadcast(shardrec_ddp *ddp, int32_t root);

/* What has happened since commit, as JSON; sums over the steps with sync. Buckets are in their order.
 *   "version"                     integer: 1
 *   "ranks", "parameters"         integer: how many there are
 *   "steps", "steps_without_sync", "non_finite_steps"    integer: how many have ended
 *   "exchange_seconds"            number: from the first bucket's sending to the last one's end
 *   "waited_seconds"              number: inside shardrec_ddp_wait
 *   "hidden_seconds"              number: of the exchange, while the host did something else
 *   "buckets[].dtype"             text: "float32", for example
 *   "buckets[].parameters", "buckets[].elements"         integer: how many are in it
 *   "buckets[].bytes_sent"        integer: to all peers; with DDP_REDUCTION NCCL the heads of messages, and
 *                                 what was given to NCCL, once
 *   "buckets[].seconds"           number: from sending to the end; on a device, until what writes the
 *                                 gradients is enqueued, as in the sums of all buckets above
 *   "buckets[].saturated"         integer: numbers beyond float16's range that DDP_COMPRESSION FLOAT16 made
 *                                 +-65504 on this rank
 * Between steps. out_text: freed by the caller
 * with shardrec_text_free. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_ddp_statistics_json(shardrec_ddp *ddp, char **out_text);

#ifdef __cplusplus
}
#endif
#endif
