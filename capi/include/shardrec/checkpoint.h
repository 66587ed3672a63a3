/* Checkpoints: one commit of a whole model.
 *
 * A handle stands for a directory of checkpoints, the root, and for what of a job goes into them:
 * collections, stacks of layers, the parameters of a DDP handle, tensors of the host (optimizer
 * states, the position in the data, settings). A commit makes all of it visible at once, on all
 * ranks, or nothing: a process killed at any instant leaves the checkpoint before or the new one.
 *
 *   ROOT/step_000000000042/   one directory per commit: safetensors files and manifest.json
 *   ROOT/LATEST               names the newest; written last
 *
 * A training that can go on where it stopped:
 *
 *   CHECK(shardrec_checkpoint_create(comm, "run", NULL, &checkpoint));
 *   status = shardrec_checkpoint_open(checkpoint, -1);             // NOT_FOUND: a fresh start
 *   ... make the collection and layers, or take them from the checkpoint (_model, _plan, _mlp) ...
 *   CHECK(shardrec_checkpoint_add_collection(checkpoint, "tables", tables));
 *   CHECK(shardrec_checkpoint_add_mlp(checkpoint, "bottom", bottom));
 *   if (status == SHARDREC_OK) CHECK(shardrec_checkpoint_load(checkpoint, NULL));
 *   while (...) {
 *     ... train ...
 *     CHECK(shardrec_checkpoint_set_tensor(checkpoint, "position", &position));
 *     CHECK(shardrec_checkpoint_commit(checkpoint, step, NULL));
 *   }
 *
 * A root belongs to one run, from its first commit on. A handle that has not opened a checkpoint of
 * that run cannot commit to it. Of two jobs that go on from one checkpoint the first to commit goes
 * on, the other one is refused until it opens what is there; nobody removes what another run wrote.
 * A directory that holds a manifest itself is opened as its own only checkpoint. Release 0.1 wrote such ones,
 * of one collection, which has the name "" there.
 *
 * All ranks must see the directory as the same files; that is checked before a commit counts.
 * Files are read without trust: sizes before memory, every checksum, no code.
 * The format: impl/checkpoint/FORMAT.md.
 *
 * Thread rule: one thread at a time per handle, else BUSY. Collective calls are made by all ranks
 * of the communicator, in the same order. What one of them is refused for, but for its checkpoint handle,
 * all get: no rank waits for another.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_CHECKPOINT_H
#define SHARDREC_CHECKPOINT_H

#include "shardrec/collection.h"
#include "shardrec/control.h"
#include "shardrec/ddp.h"
#include "shardrec/fsdp.h"
#include "shardrec/layers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shardrec_checkpoint shardrec_checkpoint;

/* Makes a handle for the checkpoints below a directory. Reads and writes nothing yet.
 * comm: the ranks that commit, open and load together; for collections on a mesh the communicator
 * that the mesh was made of. directory: UTF-8, the same on all ranks; made by the first commit.
 * options: kind CHECKPOINT (KEEP_LAST, MOST_DELTAS, DELTA_STATES) or NULL. out: owned by the caller; keeps what it
 * needs of comm.
 * Not collective, but all ranks of comm create their handles on it in the same order.
 * Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_checkpoint_create(shardrec_comm *comm, const char *directory,
                                                        SHARDREC_OPTIONS(CHECKPOINT)
                                                        const shardrec_options *options,
                                                        shardrec_checkpoint **out);

/* Destroys the handle and nulls the caller's copy. Not collective, never blocks; files stay.
 * Since 0.1. */
SHARDREC_API void shardrec_checkpoint_destroy(SHARDREC_NULLABLE shardrec_checkpoint **checkpoint);

/* Adds a collection (weights, optimizer states, step count, learning rates and frozen tables that
 * were set by calls; its model and plan), a stack of layers (parameters, optimizer states, step
 * count, a learning rate that was set), or the parameters of a DDP handle (likewise, where it has an
 * optimizer; then after its commit). What is added is written
 * by every later commit and filled by load. name: UTF-8, at most 255 bytes, no '/', unique among all
 * that is added or set; the same on all ranks. The handles stay the caller's and must not be
 * destroyed before the last commit or load. A collection must be made on the handle's communicator or
 * on a mesh of it. Layers and DDP parameters are the same on all ranks; commit checks that.
 * Not collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT (name, another
 * communicator), OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_checkpoint_add_collection(shardrec_checkpoint *checkpoint,
                                                                const char *name,
                                                                shardrec_collection *collection);
SHARDREC_API shardrec_status shardrec_checkpoint_add_mlp(shardrec_checkpoint *checkpoint,
                                                         const char *name, shardrec_mlp *mlp);
SHARDREC_API shardrec_status shardrec_checkpoint_add_ddp(shardrec_checkpoint *checkpoint,
                                                         const char *name, shardrec_ddp *ddp);

/* The same of sharded parameters, made on the handle's communicator, after their commit and between their steps.
 * They are saved whole, as shardrec_checkpoint_add_ddp saves parameters with these names: sets of either kind
 * load what either has saved, in FLOAT32 with the same names and shapes, over any number of ranks and with any
 * strategy. A commit or load gathers them, and takes the memory of all values and states on each rank while it
 * lasts; shardrec_checkpoint_commit_begin takes it twice, and keeps one until shardrec_checkpoint_commit_wait.
 * Errors: as shardrec_checkpoint_add_ddp.
 * Since 0.2. */
SHARDREC_API shardrec_status shardrec_checkpoint_add_fsdp(shardrec_checkpoint *checkpoint,
                                                          const char *name, shardrec_fsdp *fsdp);

/* Sets a tensor of this rank that the next commits write, in place of one of that name that was set
 * before: optimizer states of the host, the position in its data, settings as bytes (UINT8).
 * Each rank may set tensors of its own, of any dtype and shape, or none; load does not touch them:
 * shardrec_checkpoint_get_tensor reads those of any rank. tensor: compact, copied; NULL takes the
 * name out again. name: as shardrec_checkpoint_add_collection.
 * Not collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, UNSUPPORTED (device),
 * NOT_FOUND (NULL for a name that was not set), OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status
shardrec_checkpoint_set_tensor(shardrec_checkpoint *checkpoint, const char *name,
                               SHARDREC_NULLABLE const shardrec_tensor *tensor);

/* Writes a checkpoint of all that was added and set, and makes it the newest. step: >= 0, a number
 * of the host's that names it, the same on all ranks; a checkpoint of the same run and step is
 * replaced once the new one is there. With KEEP_LAST older checkpoints of this run are then removed.
 * Gradients that were accumulated and not yet applied are not saved. Tables on a mesh are written by
 * the first replica, states that replicas share (REPLICA_SYNC SHARDED) by those that have them; those that are cut must
 * have been averaged since their last step (INVALID_STATE).
 * control: NULL allowed; counts this rank's bytes, cancels. Temporary memory: about 5 MiB.
 * Collective, blocking (setup deadline). After an error there is no new checkpoint and the one
 * before is as it was; only where a disk fails in the last moment and does not let that be undone
 * (IO_ERROR) the new one may stay, whole. Errors: INVALID_HANDLE, CLOSED (also: what was added is
 * destroyed), BUSY, INVALID_ARGUMENT (step), INVALID_STATE (nothing was added or set; the directory
 * holds checkpoints of a run that this handle has not opened; another job commits there now, or has
 * committed since this handle's last open or commit), IO_ERROR (on any rank: all get it, with rank
 * and path; also where a rank does not see the same directory), DISAGREEMENT (directory, names, layers
 * or DDP parameters differ between ranks), CANCELLED, OUT_OF_MEMORY, MISMATCH (also: the steps differ),
 * PEER_FAILED, TIMEOUT, ABORTED (these three: the checkpoint may be there or not, whole). Since 0.1. */
SHARDREC_API shardrec_status shardrec_checkpoint_commit(
    shardrec_checkpoint *checkpoint, int64_t step, SHARDREC_NULLABLE shardrec_control *control);

/* Writes a delta: of tables the rows, with their optimizer states, that have changed since the last commit of this
 * handle (shardrec_collection_mark says what has); layers, DDP parameters and tensors whole. It is a checkpoint as any
 * other: it becomes the newest at once, on all ranks, or is not there; open, load, verify and scorers take it, and read
 * the whole checkpoint that it is a change of, and all deltas in between, with their checksums. KEEP_LAST leaves
 * those where a checkpoint that stays is a change of them. With DELTA_STATES 0 a delta is for scorers, which read no
 * states: it leaves them out, and is so much smaller. A training does not go on from it, but from the whole checkpoint
 * behind it: shardrec_checkpoint_load refuses it where an optimizer has states, unless
 * shardrec_checkpoint_load_partial is told otherwise. Layers and DDP parameters keep their states in all deltas.
 * The commit is whole where this handle does not know the changes: in the first call of this function, in the first one
 * behind open or a load, where other collections have been added since, and behind MOST_DELTAS deltas; commit and
 * commit_begin write a whole one, which later deltas are changes of. One load is as a commit, so that the next delta is
 * a change of what was loaded: shardrec_checkpoint_load of the newest checkpoint of a run that has deltas in the
 * directory, under any plan and number of ranks, where the collections that were added are those of the checkpoint,
 * with the same tables and ROW_STATISTICS in the same order. From the first call or such a load on, until the handle
 * is destroyed, a mark of each collection notes the changes (memory: shardrec_collection_mark); another load releases
 * it, and the next commit of any kind makes one again. Temporary memory: another mark of each collection, and about
 * 14 MiB.
 * out_delta: 1 where changes alone were written, else 0; the same on all ranks. All else, and errors: as
 * shardrec_checkpoint_commit; also NOT_FOUND (the last commit is not in the directory any more: commit writes a whole
 * one), DISAGREEMENT (DELTA_STATES). Since 0.2. */
SHARDREC_API shardrec_status shardrec_checkpoint_commit_delta(
    shardrec_checkpoint *checkpoint, int64_t step, SHARDREC_NULLABLE shardrec_control *control,
    SHARDREC_FLAG int32_t *out_delta);

/* Begins a commit whose files a thread of the library writes while the caller goes on;
 * shardrec_checkpoint_commit_wait ends it. They are, byte for byte, those that shardrec_checkpoint_commit
 * would have written in place of this call. Layers, parameters and tensors are copied here; rows of tables
 * are copied when they are about to change, each once, and only until they are written, so that a step
 * takes somewhat longer meanwhile. Tables on a device are copied to the host's memory here.
 * Until the commit is over, all that was added may be used, changed and destroyed (steps, writing of rows,
 * sync of replicas, learning rates, step numbers), and names may be added and set for later commits; but
 * INVALID_STATE are other commits, open, load and load_partial of this handle, and, by other handles too, loads and
 * commits in the background of its collections. Destroying the checkpoint handle gives the commit up: what
 * was written is removed, without waiting for it; until that is done other commits to the directory are
 * INVALID_STATE.
 * step, and what must be so: as shardrec_checkpoint_commit. control: NULL allowed; counts this rank's
 * bytes and cancels until the commit is over. Temporary memory: layers, parameters, tensors, a bit per row, and
 * rows that change before they are written, at most the tables (counted by SHARDREC_STAT_BYTES_BUFFERS);
 * where a row cannot be copied the commit fails (OUT_OF_MEMORY from commit_wait), and not the step.
 * Collective, blocking (setup deadline) until the copies are made. After an error no commit is under way.
 * Errors: as shardrec_checkpoint_commit. Since 0.2. */
SHARDREC_API shardrec_status shardrec_checkpoint_commit_begin(
    shardrec_checkpoint *checkpoint, int64_t step, SHARDREC_NULLABLE shardrec_control *control);

/* Begins a delta that is written so: shardrec_checkpoint_commit_delta, in the way of shardrec_checkpoint_commit_begin;
 * shardrec_checkpoint_commit_wait ends it. The files have the bytes that commit_delta would have written in place of
 * this call, and the commit is whole where that would be. Of tables only the rows that the delta has are copied: on the
 * host those that change before they are written, on a device all of them, here. What changes behind this call is in
 * the next delta; where the commit fails or is given up, the next one has the changes of both.
 * out_delta: as of shardrec_checkpoint_commit_delta, known here already. Temporary memory: as
 * shardrec_checkpoint_commit_begin, of the rows of the delta, and as shardrec_checkpoint_commit_delta.
 * Collective, blocking (setup deadline) until the copies are made. After an error no commit is under way.
 * Errors: as shardrec_checkpoint_commit_delta. Since 0.2. */
SHARDREC_API shardrec_status shardrec_checkpoint_commit_delta_begin(
    shardrec_checkpoint *checkpoint, int64_t step, SHARDREC_NULLABLE shardrec_control *control,
    SHARDREC_FLAG int32_t *out_delta);

/* Waits for the end of a commit that was begun, and makes it the newest checkpoint. timeout_ms: how long
 * this rank waits for its own files; 0: it asks only; negative: until they are written. Ranks may give
 * different ones. out_done: 1 when the checkpoint is there, 0 when files of some rank are not yet written, the
 * same on all ranks: then this is called again. May be called by another thread than the one that trains.
 * Collective; peers wait for each other, at most until the setup deadline. After an error the commit is
 * over, and as shardrec_checkpoint_commit says of errors; what was added can be used as before.
 * Errors: as shardrec_checkpoint_commit, whichever rank failed to write its files; INVALID_STATE (no commit is
 * under way), INVALID_ARGUMENT (out_done; the commit goes on). Since 0.2. */
SHARDREC_API shardrec_status shardrec_checkpoint_commit_wait(shardrec_checkpoint *checkpoint,
                                                             int32_t timeout_ms,
                                                             SHARDREC_FLAG int32_t *out_done);

/* Chooses a checkpoint for load, get_tensor, model, plan, mlp, verify and contents_json, and takes
 * part in its run: commits go on in it. step: -1 for the newest. Reads and checks the manifest only. A
 * commit does not change which checkpoint is open, but may remove it (KEEP_LAST). Collective,
 * blocking (setup deadline). After an error the checkpoint that was open before stays open.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_ARGUMENT, NOT_FOUND (no checkpoint, no such step; what a delta is a
 * change of is not there), CORRUPT_DATA (also: what a delta is a change of is another checkpoint), UNSUPPORTED (of a
 * later release), IO_ERROR (also: a rank sees other files than rank 0), DISAGREEMENT (ranks name different
 * directories), OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_checkpoint_open(shardrec_checkpoint *checkpoint,
                                                      int64_t step);

/* The checkpoint that is open. */
typedef struct shardrec_opened {
  int64_t struct_size; /* sizeof(shardrec_opened), set by the caller */
  int64_t step;        /* as shardrec_checkpoint_commit was given it */
  int64_t commit;      /* its number in its run, from 1; 0 where it is of none */
  int64_t bytes;       /* of its files, the manifest aside */
  int32_t format;      /* of its files (impl/checkpoint/FORMAT.md) */
  int32_t ranks;       /* that wrote it */
  int32_t collections; /* number of collections in it */
  int32_t layers;      /* number of stacks of layers */
  int32_t parameters;  /* number of sets of DDP parameters */
  int32_t tensors;     /* number of tensors that ranks had set */
} shardrec_opened;

/* What is open. out: its struct_size is set; the members that fit in it are written.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (none is open), INVALID_ARGUMENT. Since 0.2. */
SHARDREC_API shardrec_status shardrec_checkpoint_info(const shardrec_checkpoint *checkpoint,
                                                      shardrec_opened *out);

/* Fills all that was added from the open checkpoint, whatever plan, number of ranks and replicas
 * wrote it. Names, shapes, dtypes and optimizers must agree; what the checkpoint holds beside is
 * left out. Tables are read once, by all ranks together, and sent to those that hold them; every
 * byte is verified as it is read. Of a delta the whole checkpoint behind it is read so, and then the deltas in their
 * order, each by all ranks that hold rows and columns of what it has: as many bytes as the chain has, those of deltas
 * up to once for each rank where tables are replicated or cut otherwise than they were saved. Layers and DDP
 * parameters change last, after all is read.
 * A load that fails before it has written to a table changes nothing. One that fails later (a
 * damaged or unreadable block, a cancel, a peer) leaves the collections that it had begun to fill
 * refusing what reads or changes their tables, commits among it, with INVALID_STATE, until a load
 * succeeds; layers and DDP parameters are as before. Accumulated gradients of the tables are dropped, and
 * so is a batch between forward and backward: backward, accumulate and send_gradients of it are
 * INVALID_STATE. control: as commit. Collective, blocking (setup deadline). Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE
 * (none is open, nothing was added, some rank is between send_gradients and backward, between
 * backward_begin and backward_wait, or between sync_begin and sync_wait of a collection's replicas), NOT_FOUND (a
 * name, table or parameter that the checkpoint has not), INVALID_ARGUMENT (another shape, dtype or
 * optimizer), CORRUPT_DATA (names the tensor), UNSUPPORTED (SHARD statistics of other column cuts),
 * IO_ERROR, CANCELLED, OUT_OF_MEMORY, MISMATCH, PEER_FAILED, TIMEOUT, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_checkpoint_load(shardrec_checkpoint *checkpoint,
                                                      SHARDREC_NULLABLE shardrec_control *control);

/* Loads into what may differ from what was saved: a warm start. As shardrec_checkpoint_load, and as strict,
 * but for what the document says; without "extra", what the checkpoint holds beside is an error, too. Its
 * fields, of which all but "version" may be left out, with the values that they take, the default first:
 *   "version"               1
 *   "missing"               "error"; "keep": what the checkpoint has not stays as it is
 *   "extra"                 "error"; "ignore": what of the checkpoint is matched with none of what was
 *                           added (tensors of the host are no such thing)
 *   "load"                  "all"; "listed": what the lists below do not name stays as it is
 *   "rows"                  "same"; "more": a table may have more rows than in the checkpoint, whose rows
 *                           become its first ones, and the others stay as they are; "fewer": it may have
 *                           fewer, and is filled by the first rows of the checkpoint; "any": both
 *   "dtype"                 "same"; "convert": weights become the table's dtype, rounded to nearest, ties to
 *                           even; finite numbers beyond float16's range become its largest ones
 *   "state"                 "load"; "base": where the checkpoint is a delta without states (DELTA_STATES), those
 *                           of the newest checkpoint that it is a change of and that has them: older than the
 *                           weights; else as "load"; "reset": the optimizer's states become 0, as in a new table;
 *                           "keep": they stay. With the latter two the optimizer may be another one, and learning
 *                           rate and frozen flag stay as they are
 *   "step"                  "load"; "keep": the collection's count of updates stays as it is
 *   "collections"           array of: "name"; "from": its name in the checkpoint, where that is another one;
 *                           "load": "all", "listed" (of its tables, those of the array "tables") or "none";
 *                           "rows", "dtype", "state" and "step", in place of those above; and
 *     "tables"              array of: "name", "from", "load": "all" or "none", "rows", "dtype", "state"
 *   "layers", "parameters"  arrays of: "name", "from", "load": "all" or "none". Layers and sets of DDP
 *                           parameters are loaded whole, with their states and counts, or stay as they are
 * The columns of a table must agree; what "from" names must be in the checkpoint; several tables may be
 * filled from one. The count of updates is one number of a collection, by which the bias corrections of
 * ADAM and LAMB go: rows whose states are 0 are then updated as rows that are met at that step for the
 * first time. A new training with old weights resets all states and keeps the step.
 *
 * json: UTF-8, the same on all ranks. control: as commit. out_text: a report, JSON, the same on ranks that
 * add the same in the same order:
 *   "version"                     integer: 1
 *   "directory"                   text: path of the checkpoint
 *   "step"                        integer: of the checkpoint
 *   "collections[].name", "collections[].from"                  text: as it was added; in the checkpoint
 *   "collections[].step"          integer: its updates after the load
 *   "collections[].step_loaded"   boolean: are they those of the checkpoint?
 *   "tables[].collection", "tables[].name", "tables[].from"     text: of a table that was loaded
 *   "tables[].rows"               integer: that were loaded
 *   "tables[].new_rows"           integer: of the table behind them, which have stayed as they were
 *   "tables[].dropped_rows"       integer: of the checkpoint behind them, for which the table has no place
 *   "tables[].dtype", "tables[].from_dtype"                     text
 *   "tables[].saturated"          integer: numbers that were beyond float16's range, of a whole checkpoint and of each
 *                                 of its deltas that was read
 *   "tables[].state"              text: "loaded", "reset", "kept"; "base": loaded from an older checkpoint than the
 *                                 weights; "none": the optimizer has none
 *   "layers[].name", "layers[].from"                            text
 *   "parameters[]"                as "layers[]": sets of DDP
 *   "missing[].kind", "missing[].name"                          text: "collection", "table", "layers" or
 *                                 "parameters" that the checkpoint has not
 *   "missing[].collection"        optional text: of a table
 *   "left_out[]"                  as "missing[]": what stayed as it was because the document says so
 *   "extra[]"                     as "missing[]": what of the checkpoint was matched with none
 * UTF-8, freed by shardrec_text_free. Collective, blocking (setup deadline). After an error: as
 * shardrec_checkpoint_load; what the document leaves as it is has not changed. Errors: as
 * shardrec_checkpoint_load; also INVALID_ARGUMENT (the document, with the place in it), NOT_FOUND (something
 * is extra), DISAGREEMENT (the documents differ), INVALID_STATE (a collection would be loaded in part that
 * a load has left filled in part, or whose cut tables have not been averaged since their last step).
 * Since 0.2. */
SHARDREC_API shardrec_status
shardrec_checkpoint_load_partial(shardrec_checkpoint *checkpoint, const char *json,
                                 SHARDREC_NULLABLE shardrec_control *control, char **out_text);

/* The model / the plan of a collection in the open checkpoint, and a stack of layers and optimizer as
 * one was when it was saved, with new values (load fills them). options of the stack: kind MLP or
 * NULL; its optimizer keys are replaced by those of the checkpoint. out: owned by the caller.
 * Not collective. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (none is open), NOT_FOUND (the
 * name; a checkpoint of an earlier release holds no model and plan), INVALID_ARGUMENT, CORRUPT_DATA,
 * UNSUPPORTED (of a later release), OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_checkpoint_model(shardrec_checkpoint *checkpoint,
                                                       const char *name, shardrec_model **out);
SHARDREC_API shardrec_status shardrec_checkpoint_plan(shardrec_checkpoint *checkpoint,
                                                      const char *name, shardrec_plan **out);
SHARDREC_API shardrec_status shardrec_checkpoint_mlp(shardrec_checkpoint *checkpoint,
                                                     const char *name,
                                                     SHARDREC_OPTIONS(MLP)
                                                     const shardrec_options *options,
                                                     shardrec_mlp **out);

/* A tensor of the host in a checkpoint. */
typedef struct shardrec_saved_tensor {
  int64_t struct_size;    /* sizeof(shardrec_saved_tensor), set by the caller */
  int64_t bytes;          /* of its elements */
  shardrec_tensor tensor; /* dtype, shape and strides of a compact tensor on the CPU; data NULL */
} shardrec_saved_tensor;

/* Describes a tensor that rank `rank` had set in the open checkpoint. out: its struct_size is set; the
 * members that fit in it are written. Errors: INVALID_HANDLE, CLOSED, BUSY, INVALID_STATE (none is open),
 * NOT_FOUND (name or rank), INVALID_ARGUMENT. Since 0.2. */
SHARDREC_API shardrec_status shardrec_checkpoint_tensor_info(shardrec_checkpoint *checkpoint,
                                                             const char *name, int32_t rank,
                                                             shardrec_saved_tensor *out);

/* Reads such a tensor into out, which is compact and has its dtype and shape. Nothing is written
 * unless the checksum matches. Not collective. Errors: as shardrec_checkpoint_tensor_info; also
 * CORRUPT_DATA, IO_ERROR, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status
shardrec_checkpoint_get_tensor(shardrec_checkpoint *checkpoint, const char *name, int32_t rank,
                               SHARDREC_WRITTEN const shardrec_tensor *out);

/* Reads the whole open checkpoint and compares every checksum; the ranks share the work.
 * control: as commit. Collective, blocking (setup deadline). Errors: as shardrec_checkpoint_load.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_checkpoint_verify(
    shardrec_checkpoint *checkpoint, SHARDREC_NULLABLE shardrec_control *control);

/* What the open checkpoint holds, as JSON. Tensors: dtypes as options take them, checksums (XXH3-64, of a
 * box one per block) in hexadecimal digits, bytes without what surrounds them in the file.
 *   "version"                     integer: 1
 *   "directory"                   text: path of the checkpoint
 *   "format"                      integer: of the checkpoint's files (impl/checkpoint/FORMAT.md)
 *   "step", "ranks"               integer: its step; how many ranks wrote it
 *   "base.directory"              optional text: of a delta, the directory beside it that it is a change of
 *   "base.step", "base.commit"    optional integer: of that one
 *   "base.deltas"                 optional integer: how many deltas, this one included, follow the whole checkpoint
 *   "base.states"                 optional boolean: has this delta the optimizers' states of the rows that it has?
 *   "collections[].name"          text
 *   "collections[].step"          integer: updates
 *   "collections[].tables[].name"                           text
 *   "collections[].tables[].rows", "collections[].tables[].dim"         integer
 *   "collections[].tables[].dtype", "collections[].tables[].optimizer"  text
 *   "boxes[].collection", "boxes[].table"                   text
 *   "boxes[].part"                text: "weights", or "state/" and the name of an optimizer's state
 *   "boxes[].row", "boxes[].rows", "boxes[].col", "boxes[].cols"        integer: its cells
 *   "boxes[].changed_rows"        optional integer: of a delta, how many of the rows it has
 *   "boxes[].row_bytes"           optional integer: of a delta, bytes of a row
 *   "boxes[].dtype", "boxes[].file"                         text
 *   "boxes[].bytes"               integer
 *   "boxes[].checksums"           array of texts
 *   "layers[].name", "layers[].tensors[].name"              text: of the stack; of a parameter or a state
 *   "layers[].tensors[].dtype", "layers[].tensors[].file", "layers[].tensors[].checksum"  text
 *   "layers[].tensors[].shape"    array of integers
 *   "layers[].tensors[].bytes"    integer
 *   "parameters[]"                as "layers[]": sets of DDP
 *   "tensors[].name"              text: of the host's
 *   "tensors[].rank"              integer: that set it
 *   "tensors[].dtype", "tensors[].file", "tensors[].checksum"           text
 *   "tensors[].shape"             array of integers
 *   "tensors[].bytes"             integer
 * out_text: UTF-8, freed by shardrec_text_free. Not collective. Errors: INVALID_HANDLE, CLOSED, BUSY,
 * INVALID_STATE (none is open), INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_checkpoint_contents_json(shardrec_checkpoint *checkpoint,
                                                               char **out_text);

/* The checkpoints below a directory, as JSON, in the order in which they were committed.
 *   "version"                     integer: 1
 *   "latest"                      integer or null: the step that LATEST names
 *   "checkpoints[].step"          integer
 *   "checkpoints[].directory"     text: its name below the directory; "" for one that is the directory
 *   "checkpoints[].bytes"         integer: of its files
 *   "checkpoints[].commit"        integer: number of the commit in its run
 *   "checkpoints[].base"          optional integer: of a delta, the commit that it is a change of
 *   "checkpoints[].states"        boolean: false of a delta that leaves optimizers' states out (DELTA_STATES)
 * Reads manifests only; what is no checkpoint is left out. out_text: UTF-8, freed by shardrec_text_free.
 * Any thread. Errors: INVALID_ARGUMENT, NOT_FOUND (no such directory), IO_ERROR, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_checkpoint_list_json(const char *directory, char **out_text);

#ifdef __cplusplus
}
#endif
#endif
