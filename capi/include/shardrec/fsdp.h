/* Fully sharded dense parameters (FSDP): each rank keeps a part of every parameter, with its gradient and
 * optimizer states; whole parameters are gathered while they are used (Zhao et al., VLDB 2023).
 *
 *   add_unit, add_parameter ..., add_mlp ..., set_optimizer, commit; set_full or shard: initial values
 *   each step:  begin
 *               forward, for each unit:   unshard, wait_unshard, [parameter: compute,] reshard
 *               backward, units reversed: unshard, wait_unshard, [gradient: add to it,] mark_ready
 *               end, wait, [clip_gradients,] step, zero_gradients
 * Stacks of the library's layers (add_mlp) make the calls of a unit themselves.
 *
 * A unit is parameters that are gathered and reduced together: a layer, or a few. They lie one behind the
 * other in FLOAT32, each from a multiple of 32 elements on, padded and cut into one shard of equal size a
 * rank; a shard may hold no parameter. A parameter that several layers share is added once, and all layers
 * that use it are in its unit. Memory of a rank with M elements, F ranks in a sharding group, an optimizer
 * of s states and the largest unit of U elements: 4 M (2 + s) / F bytes, FSDP_HELD_UNITS + FSDP_PREFETCH
 * buffers of U parameters and two (one without prefetch) of U gradients, made by commit; beside it what
 * the engine keeps of messages.
 *
 * Strategies (option FSDP_STRATEGY):
 *   FULL_SHARD     shards over all ranks; parameters are gathered for forward and for backward
 *   SHARD_GRAD_OP  the same, but a unit that was gathered stays until its gradients are ready: a buffer for
 *                  each unit
 *   HYBRID_SHARD   shards over the ranks of a sharding group of a mesh; the sums of a group are added up
 *                  over the replica group
 *   NO_SHARD       each rank has all: as shardrec_ddp
 *
 * Sums are a pairwise tree over the rank number in float32, inside the sharding group first and then over
 * the replicas. With FULL_SHARD, SHARD_GRAD_OP and NO_SHARD in FLOAT32, gradients and what SGD, AdaGrad and
 * Adam make of them have the bits of shardrec_ddp on every engine; LAMB's norms are sums of other parts,
 * which differ by rounding, as the norm of clip_gradients does.
 *
 * Order: all ranks make the same calls of units in the same order, in steps with the same sync, else
 * MISMATCH on the ranks concerned, which names the units, or TIMEOUT. The order of unshard is kept: in the
 * next step, units are gathered before the host asks for them, FSDP_PREFETCH of them ahead; a step that ends
 * before that order does has gathered as many in vain. Gradients are reduced in the reverse of the order in
 * which a step unsharded its units first; units that it unshards first after a mark_ready, as a second tower
 * that is trained behind the first one, come behind those before it.
 *
 * There is no thread of the library: calls post messages, which the engine carries while the host
 * computes, and take what has come.
 *
 * Devices: with the options DEVICE and FSDP_OFFLOAD, full parameters and full gradients are on a CUDA device: the
 * buffers above are there, and once more in the host's memory, which shards are gathered into and reduced from.
 * Shards, their gradients and states are in the host's memory, and the CPU adds up and steps, with the same bits.
 * The option STREAM names the caller's stream: parameters are on the device behind what it holds when wait_unshard
 * has returned, gradients of a unit are what it holds when mark_ready is called, and what it holds when reshard is
 * called reads the parameters. mark_ready does not wait for the unit's own gradients, but for those of the unit that
 * was marked before it; end does for all. A stack (add_mlp) is on the same DEVICE. Each rank may name another
 * device; FSDP_OFFLOAD is the same on all. Ranks send from the host's memory, over NCCL too. Where the device fails,
 * calls of a step are DEVICE_ERROR, and the communicator ends.
 *
 * Failures: a rank that does not come ends the wait of the others with PEER_FAILED or TIMEOUT, and the
 * communicator. A handle that is destroyed inside a step does that too. With HYBRID_SHARD, what fails between
 * the ranks of a group is told to them with their numbers in this group; the ranks of other groups get
 * PEER_FAILED with the number, in the communicator, of a rank that was told, and without the cause. When the
 * communicator has ended, also inside a step, calls that the step would refuse say what ended it, and
 * shardrec_fsdp_shard still gives what this rank has: values as they were before a step or are after it; LAMB's
 * states may have moved in a step that failed.
 *
 * Thread rule: one thread at a time per handle, else BUSY. A steady step allocates nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_FSDP_H
#define SHARDREC_FSDP_H

#include "shardrec/comm.h"
#include "shardrec/ddp.h"
#include "shardrec/layers.h"
#include "shardrec/mesh.h"
#include "shardrec/options.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shardrec_fsdp shardrec_fsdp;

/* What shardrec_fsdp_shard, _full and _set_full are of. */
typedef enum shardrec_fsdp_array {
  SHARDREC_FSDP_VALUES = 0,
  SHARDREC_FSDP_GRADIENT = 1,
  SHARDREC_FSDP_STATE = 2, /* SHARDREC_FSDP_STATE + s: state s of the optimizer, as shardrec_ddp_state
                              numbers them */
  SHARDREC_FSDP_ARRAY_FORCE_32 = 0x7fffffff
} shardrec_fsdp_array;

/* Makes an empty set. mesh: of comm, for HYBRID_SHARD, else NULL. options: kind FSDP or NULL. out: owned by
 * the caller. Not collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (a mesh without
 * HYBRID_SHARD, or the reverse; FSDP_OFFLOAD without DEVICE; no such device), UNSUPPORTED (dtypes; DEVICE without
 * FSDP_OFFLOAD, or without its plug-in), OUT_OF_MEMORY, DEVICE_ERROR. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_create(shardrec_comm *comm,
                                                  SHARDREC_NULLABLE shardrec_mesh *mesh,
                                                  SHARDREC_OPTIONS(FSDP)
                                                  const shardrec_options *options,
                                                  shardrec_fsdp **out);

/* Destroys the handle and nulls the caller's copy; views end. Inside a step the communicator fails:
 * PEER_FAILED on the others. Since 0.2. */
SHARDREC_API void shardrec_fsdp_destroy(SHARDREC_NULLABLE shardrec_fsdp **fsdp);

/* Adds a unit. name: UTF-8, not empty, unique. out_unit: counts from 0; may be NULL. Not collective.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (after commit), INVALID_ARGUMENT, OUT_OF_MEMORY.
 * Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_add_unit(shardrec_fsdp *fsdp, const char *name,
                                                    SHARDREC_NULLABLE int32_t *out_unit);

/* Adds a FLOAT32 parameter to a unit: its shape alone; commit makes the memory of this rank's part, which is
 * zero. rows: 0 or more; columns: 0: the shape is [rows], else it is [rows, columns]. A set has at most 2^48
 * elements, those of each parameter rounded up to a multiple of 32. One of more dimensions is given as a matrix
 * with the same elements, row-major. name: UTF-8, not empty, unique in the set. out_index: counts from 0 over all
 * units; may be NULL. Not collective. Errors: as shardrec_fsdp_add_unit; NOT_FOUND (unit). Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_add_parameter(shardrec_fsdp *fsdp, int32_t unit,
                                                         const char *name, int64_t rows,
                                                         int64_t columns,
                                                         SHARDREC_NULLABLE int32_t *out_index);

/* Adds the layers of a stack as units: a unit is the next layers of it until they have unit_elements elements
 * (1: each layer with parameters), named "<name>.layer.0" or "<name>.layer.0-2", with parameters
 * "<name>.layer.0.weight" and so on. commit gives them the values that the stack of rank 0 has; from then on they are
 * the set's, and the stack's own memory is given back: views of it read zeros. shardrec_mlp_forward unshards,
 * computes and reshards one unit after the other, and shardrec_mlp_backward unshards them in reverse and marks them
 * ready. Both are calls of a step of the set, between begin and end, under its thread rule, with errors of unshard,
 * wait_unshard, reshard, gradient and mark_ready too; a second backward in a step with sync is INVALID_STATE.
 * Gradients have the bits that the stack has in a shardrec_ddp. INVALID_STATE are shardrec_mlp_parameter, _state,
 * _zero_gradients, _step and LEARNING_RATE of _set_f64: use shard, full, set_full, zero_gradients, step and
 * set_learning_rate of the set, whose steps shardrec_mlp_info does not count. The set keeps the stack; when the set
 * is destroyed, forward and backward are CLOSED. In a checkpoint (shardrec_checkpoint_add_mlp) it is a whole stack,
 * with the set's optimizer. A stack in 16 bits on the CPU rounds the weights of a unit while it is computed; in
 * FLOAT16 its loss scale follows its own gradients, and steps are refused or skipped by the set, on all ranks alike.
 * out_first: the index of its first parameter; may be NULL. Not collective.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT; INVALID_STATE (after commit; no parameter in the stack; it
 * is in a set already); UNSUPPORTED (a stack whose DEVICE is not the set's, in 16 bits on a device, in FLOAT16 with
 * NON_FINITE ALLOW of the set, or with ACCUMULATE_GRADIENTS; FSDP_PARAMETER_DTYPE that is not FLOAT32);
 * OUT_OF_MEMORY. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_add_mlp(shardrec_fsdp *fsdp, const char *name,
                                                   shardrec_mlp *mlp, int64_t unit_elements,
                                                   SHARDREC_NULLABLE int32_t *out_first);

/* Gives the set an optimizer, as shardrec_ddp_set_optimizer; its states are sharded as the parameters are.
 * Before commit; not collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE, INVALID_ARGUMENT,
 * UNSUPPORTED. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_set_optimizer(shardrec_fsdp *fsdp,
                                                         SHARDREC_OPTIONS(OPTIMIZER)
                                                         const shardrec_options *options);

/* Checks that all ranks added the same units and parameters (count, names, shapes) with the same options
 * and optimizer, then makes all memory; values are zero. Collective, blocking (setup deadline).
 * Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_STATE (twice: only this rank; no parameters: on all ranks
 * alike), INVALID_ARGUMENT (a name that begins with "optimizer." in a set with an optimizer; only this
 * rank); DISAGREEMENT (names rank and parameter or option, the same on all ranks; the communicator lives
 * on); OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_commit(shardrec_fsdp *fsdp);

/* Begins a step; gathers of the units that the last step asked for first leave. sync 1: gradients are
 * reduced; 0: no gradient is sent: full gradients are kept, in memory of their own for each unit whose
 * gradient is asked for, and the next step with sync reduces the sum; also for evaluation. The same on
 * all ranks, else MISMATCH where they exchange something next. Waits for nobody but for a peer that has not
 * taken what this rank sent in the step before.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no commit; inside a step), INVALID_ARGUMENT,
 * OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_begin(shardrec_fsdp *fsdp, SHARDREC_FLAG int32_t sync);

/* Asks for the full parameters of a unit: what other ranks have of them leaves there, unless it was prefetched.
 * Does not wait, but where the buffer that it takes is still being filled for a unit that this step does not use,
 * where 12 units are on their way, and for a peer that is so many gathers behind. Errors: INVALID_HANDLE, CLOSED,
 * BUSY, NOT_FOUND; INVALID_STATE, only this rank, nothing has changed: no step; unsharded already; all buffers
 * are held by units that were not resharded, which the sentence names; OUT_OF_MEMORY, MISMATCH, PEER_FAILED,
 * TIMEOUT, ABORTED. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_unshard(shardrec_fsdp *fsdp, int32_t unit);

/* Waits until the full parameters of a unit are there. Blocking. Errors: as shardrec_fsdp_unshard;
 * INVALID_STATE (it is not unsharded); MISMATCH: another rank unsharded another unit here; the sentence names
 * both. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_wait_unshard(shardrec_fsdp *fsdp, int32_t unit);

/* A view of a full parameter, in the dtype of FSDP_PARAMETER_DTYPE, valid until its unit is resharded or marked
 * ready; read only, on the DEVICE in the order of STREAM. After wait_unshard. Errors: INVALID_HANDLE, CLOSED,
 * NOT_FOUND, INVALID_STATE, INVALID_ARGUMENT. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_parameter(shardrec_fsdp *fsdp, int32_t index,
                                                     shardrec_tensor *out);

/* The host no longer reads the full parameters of a unit: their buffer is free for another one. Waits for them
 * where wait_unshard was not called. Errors: as
 * shardrec_fsdp_wait_unshard. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_reshard(shardrec_fsdp *fsdp, int32_t unit);

/* A view of the full gradient of a parameter on this rank, in the dtype of its values, valid until its unit is
 * marked ready, without sync until the step ends; on the DEVICE in the order of STREAM. It holds zeros, or what steps
 * without sync have added: add to it. Of a unit that was unsharded in this step. May wait for the reduction of
 * another unit. A unit that is asked for while all buffers have gradients of units that are reduced after it gets
 * memory of its own. Errors: INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND, INVALID_ARGUMENT, OUT_OF_MEMORY; INVALID_STATE,
 * only this rank: no step; the unit was not unsharded in it; it is marked ready; the parameter is a stack's;
 * MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_gradient(shardrec_fsdp *fsdp, int32_t index,
                                                    shardrec_tensor *out);

/* The gradients of a unit are whole: it is resharded, and with sync their reduction begins, in the order that the
 * head of this file says. Gradients that nothing was added to are zeros. May wait as shardrec_fsdp_gradient and
 * shardrec_fsdp_reshard do. Errors: as there; INVALID_STATE (a second time in a step with sync). Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_mark_ready(shardrec_fsdp *fsdp, int32_t unit);

/* Ends the host's part of a step. Waits for units that were prefetched and not asked for. Errors: INVALID_HANDLE,
 * CLOSED, BUSY; INVALID_STATE: no begin; a unit is unsharded: reshard it and call again; MISMATCH, PEER_FAILED,
 * TIMEOUT, ABORTED. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_end(shardrec_fsdp *fsdp);

/* Waits until all gradients are reduced: the mean over all ranks (options DDP_AVERAGE, DDP_FACTOR) is added
 * to the gradient of each rank's shard, or takes its place where zero_gradients was called since. A unit that
 * the step did not unshard is left alone. Collective, blocking; after a step without sync it returns at once.
 * Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_STATE: no end, only this rank; or, on all ranks alike, a rank
 * had not marked a unit ready that this step unsharded: RANK, POSITION (the unit), and the sentence names it;
 * the gradient of its shards is as it was, what steps without sync have kept of it is forgotten, others are
 * reduced, and the communicator lives on; INVALID_BATCH, on all ranks alike: option NON_FINITE ERROR, and the
 * gradient of a shard is NaN or infinite: the sentence names the parameter, which is POSITION, VALUE its first
 * such element, RANK a rank that has it in its shard. With SKIP this returns OK, shardrec_fsdp_step then does
 * nothing, and "non_finite_steps" of the statistics counts. With either, ranks exchange what they have found
 * in each step with sync. MISMATCH, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_wait(shardrec_fsdp *fsdp);

/* Sets the gradients of this rank's shards to zero, and forgets those that steps without sync have kept.
 * Between steps. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_zero_gradients(shardrec_fsdp *fsdp);

/* As shardrec_ddp_clip_gradients, of the whole gradients: what shards have is added up, or compared, over the
 * sharding group, so that all ranks scale alike. Collective over the sharding group, blocking. Between steps.
 * A norm that is NaN or infinite scales nothing: see the option NON_FINITE.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, INVALID_STATE, MISMATCH, PEER_FAILED, TIMEOUT,
 * ABORTED. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_clip_gradients(shardrec_fsdp *fsdp, shardrec_clip clip,
                                                          double bound,
                                                          SHARDREC_NULLABLE double *out_norm);

/* One optimizer step on this rank's shards with their gradients, which stay as they are. Waits until peers have
 * read the shards in the step before; with LAMB collective over the sharding group. Does nothing after a
 * shardrec_fsdp_wait that the option NON_FINITE SKIP skips. Between steps. Errors:
 * INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (no optimizer; inside a step), PEER_FAILED, TIMEOUT, ABORTED.
 * Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_step(shardrec_fsdp *fsdp);

/* Sets the learning rate from the next step on; the same on all ranks. Errors: as
 * shardrec_ddp_set_learning_rate. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_set_learning_rate(shardrec_fsdp *fsdp,
                                                             double learning_rate);

/* A view of what this rank has of a parameter: FLOAT32, one dimension, perhaps empty. array: a
 * shardrec_fsdp_array, or SHARDREC_FSDP_STATE + s. out_offset: of its first element in the parameter, row-major.
 * Initial values that no rank has as a whole are written so. Between steps; valid until the handle is destroyed, but
 * values may be written only until the next step begins: ask again then. Waits until peers have read values in the
 * step before. When the communicator has ended: see the head of this file. Errors: INVALID_HANDLE, CLOSED, BUSY,
 * NOT_FOUND, INVALID_STATE, INVALID_ARGUMENT, PEER_FAILED, TIMEOUT, ABORTED. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_shard(shardrec_fsdp *fsdp, int32_t index, int32_t array,
                                                 int64_t *out_offset, shardrec_tensor *out);

/* Gathers a whole parameter, its gradient or a state into out: compact, FLOAT32, on the CPU, as many elements as
 * the parameter. Collective over the sharding group, blocking (setup deadline); between steps. What is refused
 * for out, index or array is told to this rank only: others wait for its call. Errors: INVALID_HANDLE, CLOSED,
 * BUSY, NOT_FOUND, INVALID_STATE, INVALID_ARGUMENT, MISMATCH, OUT_OF_MEMORY, PEER_FAILED, TIMEOUT, ABORTED. Since
 * 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_full(shardrec_fsdp *fsdp, int32_t index, int32_t array,
                                                SHARDREC_WRITTEN const shardrec_tensor *out);

/* Sets a whole parameter, its gradient or a state. root -1: each rank takes its part of its own tensor, which
 * is the same on all ranks; not collective. root in [0, ranks): rank root's tensor is sent to all, and the
 * tensors of the others are not looked at; collective over all ranks, blocking (setup deadline). tensor: compact,
 * FLOAT32, on the CPU, as many elements as the parameter. Between steps. What is refused for tensor, index, array
 * or root is told to this rank only, and nothing has changed: others wait for its call. Errors: as
 * shardrec_fsdp_full. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_set_full(shardrec_fsdp *fsdp, int32_t index,
                                                    int32_t array, const shardrec_tensor *tensor,
                                                    int32_t root);

/* Compares values and states of the ranks that have the same shard (HYBRID_SHARD, NO_SHARD), by a hash of 64
 * bits each. Collective, blocking; between steps. Errors: as shardrec_ddp_check_equal. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_check_equal(shardrec_fsdp *fsdp);

/* What the set holds on this rank and what has happened since commit, as JSON.
 *   "version"                       integer: 1
 *   "ranks", "sharding_ranks"       integer: of the communicator, of a sharding group
 *   "units", "parameters"           integer: how many there are
 *   "steps", "steps_without_sync"   integer: how many have ended
 *   "non_finite_steps"              integer: those that the option NON_FINITE refused or skipped
 *   "value_bytes", "gradient_bytes", "state_bytes"  integer: of the shards
 *   "full_parameter_bytes"          integer: buffers of full parameters
 *   "full_gradient_bytes"           integer: buffers of full gradients, and of their messages and sums
 *   "kept_gradient_bytes"           integer: the same of steps without sync
 *   "device_bytes"                  integer: buffers of full parameters and gradients on the DEVICE
 *   "message_bytes"                 integer: shards in 16 bits
 *   "gathers", "prefetched"         integer: units that were gathered, of those: before the host asked
 *   "gather_bytes_sent"             integer: to all peers
 *   "reduction_bytes_sent"          integer: to all peers
 *   "unshard_waited_seconds"        number: for parameters, in wait_unshard, reshard and mark_ready
 *   "gradient_waited_seconds"       number: in shardrec_fsdp_wait, and for buffers of gradients
 * Between steps. out_text: freed by the caller with shardrec_text_free. Errors: INVALID_HANDLE, CLOSED, BUSY,
 * INVALID_STATE, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.2. */
SHARDREC_API shardrec_status shardrec_fsdp_statistics_json(shardrec_fsdp *fsdp, char **out_text);

#ifdef __cplusplus
}
#endif
#endif
