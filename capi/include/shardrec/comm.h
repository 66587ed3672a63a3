/* Groups of ranks and a rank's membership of one.
 *
 * A collective call is one that all ranks of the communicator make, in the same order. Calls that
 * do not match end with MISMATCH on the ranks concerned, naming both; a rank that never comes ends
 * the others' call with TIMEOUT; a rank that is gone, with PEER_FAILED. After either the
 * communicator is dead: every later collective call on it returns the same status at once, and
 * everything made on it can still be destroyed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_COMM_H
#define SHARDREC_COMM_H

#include "shardrec/options.h"
#include "shardrec/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What carries messages between processes: a plug-in, loaded when it is first asked for.
 * Over GLOO, processes of one machine (same boot, network and process namespaces) read messages of
 * 1 MiB and more in each other's memory, by process_vm_readv(2), where the system lets them (same
 * user; Yama's ptrace_scope 0); all others go through TCP, and so do all where it does not. The
 * environment variable SHARDREC_GLOO_DIRECT_BYTES sets the least size (at least 16385; 0: none are
 * read so; anything else is INVALID_ARGUMENT of create); the largest of two ranks counts.
 * Where memory runs out on a thread of the library or of Gloo, the communicator ends: calls on this
 * rank return OUT_OF_MEMORY or PEER_FAILED, and the others are told that this rank is lost.
 * Programs that the host starts inherit no descriptor; but Gloo opens its own without O_CLOEXEC,
 * and they are marked right afterwards: a program that another thread starts within those
 * microseconds of a create keeps a connection open until it ends. */
typedef enum shardrec_engine {
  SHARDREC_ENGINE_GLOO = 1, /* TCP, by Gloo; needs no launcher; processes meet at a rendezvous */
  SHARDREC_ENGINE_MPI = 2,  /* the MPI whose launcher (mpirun, srun) has started the processes */
  SHARDREC_ENGINE_NCCL = 3, /* between devices NVIDIA's NCCL, 2.19 or newer; what hosts say to each
                               other goes by MPI where that has started the processes, else by Gloo */
  SHARDREC_ENGINE_FORCE_32 = 0x7fffffff
} shardrec_engine;

/* A group of ranks that are threads of this process. Any thread. */
typedef struct shardrec_local shardrec_local;

/* One rank's membership. Collective calls of one rank on one communicator: one thread at a time,
 * not bound to a particular thread. Different communicators are independent. */
typedef struct shardrec_comm shardrec_comm;

typedef enum shardrec_comm_property {
  SHARDREC_COMM_STEP_SECONDS = 1, /* f64, > 0, at most 1e9 (all three); deadline of barrier, collectives
                                     on tensors, begin, forward, backward, rows, layers' reductions; default 600 */
  SHARDREC_COMM_SETUP_SECONDS = 2, /* f64, > 0; deadline of create, split, commit, save, load; default 1800 */
  SHARDREC_COMM_WARN_SECONDS = 3, /* f64, > 0; a wait this long logs the late rank; default 30 */
  SHARDREC_COMM_NCCL = 4, /* f64, 0 or 1; 1: NCCL carries what collections made from now on send between
                             devices of ranks; the same on all ranks. Default 1 for ENGINE_NCCL, else 0:
                             ranks of one process read each other's memory, processes of one machine
                             copy from each other's devices where they can, others send through hosts.
                             Meshes and what is split from a communicator have it as it is then */
  SHARDREC_COMM_PROPERTY_FORCE_32 = 0x7fffffff
} shardrec_comm_property;

typedef enum shardrec_reduction {
  SHARDREC_REDUCTION_SUM = 0,
  SHARDREC_REDUCTION_MIN = 1,
  SHARDREC_REDUCTION_MAX = 2,
  SHARDREC_REDUCTION_MEAN = 3, /* the sum divided by the number of ranks; floating point only */
  SHARDREC_REDUCTION_FORCE_32 = 0x7fffffff
} shardrec_reduction;

/* Makes a group of `ranks` ranks inside this process, ranks_per_node of which count as one node
 * (rank r is on node r / ranks_per_node; the last node may be smaller).
 * ranks in [1, 1024], ranks_per_node in [1, ranks]. options: NULL (no kind of options is for groups yet). out:
 * owned by the caller.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_local_create(int32_t ranks, int32_t ranks_per_node,
                                                   SHARDREC_OPTIONS(NONE)
                                                   const shardrec_options *options,
                                                   shardrec_local **out);

/* Destroys the handle and nulls the caller's copy; communicators made from it live on. Since 0.1. */
SHARDREC_API void shardrec_local_destroy(SHARDREC_NULLABLE shardrec_local **group);

/* Joins the group as `rank`. Does not wait for the others: the first collective call does.
 * rank in [0, ranks), each at most once per group. options: NULL (those of kind COMM are for processes;
 * deadlines are set by shardrec_comm_set_f64). out: owned by the caller.
 * Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, INVALID_STATE (the rank is taken), OUT_OF_MEMORY.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_create_local(shardrec_local *group, int32_t rank,
                                                        SHARDREC_OPTIONS(NONE)
                                                        const shardrec_options *options,
                                                        shardrec_comm **out);

/* Joins a group of ranks that are processes, or several in one process each on a thread of its own.
 * Collective, blocking: returns when every rank has come, at most after the option
 * COMM_SETUP_SECONDS.
 * rank in [0, size), size in [1, 4096]. token: UTF-8, of the rendezvous (rendezvous.h). Of
 * ENGINE_MPI token is NULL, and rank and size are what the launcher said, or -1 both. ENGINE_NCCL: as ENGINE_MPI
 * where token is NULL, else as ENGINE_GLOO.
 * options: kind COMM, NULL: defaults. out: owned by the caller.
 * Errors: INVALID_ARGUMENT (also: another group's token) and UNSUPPORTED (the plug-in is missing, or
 * cannot be used here: the sentence names the package), both on this rank only; TIMEOUT, naming the ranks
 * that have not come; on all ranks MISMATCH (other sizes), INVALID_STATE (a rank joined twice), PEER_FAILED (a
 * rank is gone); IO_ERROR (the system gives no random numbers); OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_create(shardrec_engine engine, int32_t rank,
                                                  int32_t size, SHARDREC_NULLABLE const char *token,
                                                  SHARDREC_OPTIONS(COMM)
                                                  const shardrec_options *options,
                                                  shardrec_comm **out);

/* The same, as environment variables say:
 *   RANK, WORLD_SIZE                   this rank and the number of ranks
 *   LOCAL_RANK, LOCAL_WORLD_SIZE       its place among the ranks of its node; optional
 *   SHARDREC_TOKEN                     of a rendezvous; without it rank 0 holds one itself
 *   SHARDREC_TOKEN_FILE                and writes its token to this file, on a disk that all share,
 *                                      until all have come; readable by its user only, and removed
 *                                      then. Read only where it is a regular file, no symbolic
 *                                      link, that belongs to the user of the rank (effective) or to
 *                                      root and that nobody else may write to; else
 *                                      INVALID_ARGUMENT: who may write it says where ranks connect.
 *                                      What follows is optional, for rank 0. Or all know:
 *   MASTER_ADDR, SHARDREC_PORT         where the ranks find rank 0 (MASTER_PORT is not read:
 *                                      launchers hold that one)
 *   SHARDREC_SECRET                    the same on all ranks
 *   SHARDREC_JOB, SHARDREC_BIND, SHARDREC_ALLOW_PLAIN_TCP
 *                                      name of the group; where rank 0 listens, if not at
 *                                      MASTER_ADDR; 1: other machines may take part
 *   SHARDREC_INTERFACE                 network interface or address of this rank's machine, where
 *                                      the option INTERFACE is not set
 *   SHARDREC_ENGINE                    gloo (default), mpi or nccl, where the option ENGINE is not set;
 *                                      for mpi, and nccl under mpirun, no other variable is read
 * Each SHARDREC_ variable that is set is checked, also on ranks that do not need it.
 * Ranks may come in any order, and rank 0 last. That it has died before they came nobody can tell
 * them where it holds the rendezvous itself. So where its address is known (MASTER_ADDR, or a file
 * that is there) and its machine answers that nobody listens, they wait for rank 0 as long as the
 * option RANK_ZERO_SECONDS says (60 by default) and then return PEER_FAILED. While there is no
 * file, the name is unknown or the machine silent, they wait for COMM_SETUP_SECONDS.
 * `shardrec launch` sets them for processes of one machine. Collective, blocking.
 * Errors: as shardrec_comm_create; INVALID_ARGUMENT names the variable. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_create_from_env(SHARDREC_OPTIONS(COMM)
                                                           const shardrec_options *options,
                                                           shardrec_comm **out);

/* Destroys the handle and nulls the caller's copy. Not collective; waits for nobody, though giving
 * back the connections of an engine between processes can take a second. Without a close before
 * it, peers that wait for this rank get PEER_FAILED at once. What was made on the communicator
 * keeps its memory until it is destroyed too, in any order. Since 0.1. */
SHARDREC_API void shardrec_comm_destroy(SHARDREC_NULLABLE shardrec_comm **comm);

/* This rank's number and the number of ranks. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT.
 * Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_rank(const shardrec_comm *comm, int32_t *out);
SHARDREC_API shardrec_status shardrec_comm_size(const shardrec_comm *comm, int32_t *out);

/* Changes a property of this rank's communicator for later calls, such as a deadline.
 * Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT; of COMM_NCCL UNSUPPORTED (NCCL or its plug-in is missing or too
 * old: the sentence says what to install). Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_set_f64(shardrec_comm *comm, shardrec_comm_property key,
                                                   double value);
SHARDREC_API shardrec_status shardrec_comm_get_f64(const shardrec_comm *comm,
                                                   shardrec_comm_property key, double *out);

/* OK while the communicator lives; the status that killed it afterwards (its sentence becomes this
 * thread's error). Any thread. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_status(const shardrec_comm *comm);

/* The last 1,000 operations of this rank on the communicator, the oldest first, as JSON: what it did, or
 * waits for, when a peer is late or gone. Seconds count from the communicator's creation.
 *   "version"                     integer: 1
 *   "rank", "size"                integer: this rank, and the number of ranks
 *   "now_seconds"                 number: when this was called
 *   "operations[].number"         integer: of all operations, from 0
 *   "operations[].purpose"        text: "control", "input", "output", "dense" or "statistics"
 *   "operations[].sequence"       integer: of the operations of one object and purpose, the same on all ranks
 *   "operations[].operation"      text: "forward", for example
 *   "operations[].bytes"          integer: sent to other ranks
 *   "operations[].start_seconds"  number
 *   "operations[].end_seconds"    number or null: null while it is not over
 *   "operations[].state"          text: "posted", "waiting", "done" or "failed"
 *   "operations[].peer"           integer or null: the rank that is to blame
 * The first PEER_FAILED, TIMEOUT or MISMATCH also writes the last 16 to the log.
 * Also of a communicator that is dead or closed. out_text: freed by the caller with
 * shardrec_text_free. Errors: INVALID_HANDLE, CLOSED, INVALID_ARGUMENT, OUT_OF_MEMORY. Not
 * blocking; any thread, also while another waits. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_operations_json(const shardrec_comm *comm,
                                                           char **out_text);

/* Returns when every rank has called it. Collective, blocking.
 * Errors: INVALID_HANDLE, CLOSED, BUSY, PEER_FAILED, TIMEOUT, MISMATCH, ABORTED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_barrier(shardrec_comm *comm);

/* Reduces a compact tensor over the ranks, in place; every rank gets the same bits (pairwise tree
 * over the rank number). dtype FLOAT32, FLOAT64, INT32 or INT64; same dtype and number of elements
 * on all ranks. Collective, blocking. Errors: as shardrec_comm_barrier; INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status
shardrec_comm_all_reduce(shardrec_comm *comm, SHARDREC_WRITTEN const shardrec_tensor *tensor,
                         shardrec_reduction reduction);

/* What holds for the four calls that follow. Each is collective and blocking, under the step deadline.
 * Tensors: on the CPU, any dtype but where one is named; the first dimension may have any stride that
 * keeps rows apart, inside a row elements are compact (a vector may be a column of a matrix); no
 * dimensions: one element. Elements count row by row. Zero elements are allowed. What a rank sends is
 * copied before anything is written: tensors of one call may be the same or overlap in any way, and
 * the result is as if all input were read first. Messages of more than 2^31 bytes work.
 * Errors: INVALID_HANDLE, CLOSED, BUSY; INVALID_ARGUMENT (only this rank; nothing was exchanged and
 * the others wait: call again with what is accepted); OUT_OF_MEMORY (once the exchange has begun, the
 * others get PEER_FAILED); MISMATCH (ranks brought different dtypes, numbers of elements, roots or
 * reductions, or made different calls: no rank can go on);
 * PEER_FAILED, TIMEOUT, ABORTED. After an error out is as before, or holds part of the result when
 * the communicator is dead. */

/* Copies the elements of tensor on rank root over those of tensor on all others. dtype and number of
 * elements are the same on all ranks. root: in [0, ranks), the same on all ranks. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_broadcast(shardrec_comm *comm,
                                                     SHARDREC_WRITTEN const shardrec_tensor *tensor,
                                                     int32_t root);

/* Gathers tensor of every rank: out holds the elements of rank 0, then those of rank 1, and so on, on
 * all ranks. out: the dtype of tensor and `ranks` times its elements, such as [ranks, n] or
 * [ranks * n] for [n]. dtype and number of elements are the same on all ranks. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_all_gather(shardrec_comm *comm,
                                                      const shardrec_tensor *tensor,
                                                      SHARDREC_WRITTEN const shardrec_tensor *out);

/* Reduces tensor over the ranks and leaves each with its part: out on rank r is the r-th of `ranks`
 * equal parts of the reduction, with the bits that shardrec_comm_all_reduce gives. dtype FLOAT32,
 * FLOAT64, INT32 or INT64. tensor: `ranks` times the elements of out. dtype, number of elements and
 * reduction are the same on all ranks. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_reduce_scatter(
    shardrec_comm *comm, const shardrec_tensor *tensor, SHARDREC_WRITTEN const shardrec_tensor *out,
    shardrec_reduction reduction);

/* Sends rows of tensor (what its first dimension counts) to all ranks, this one included, and
 * receives theirs: the first send_counts[0] rows go to rank 0, the next send_counts[1] to rank 1, and
 * so on; out holds receive_counts[0] rows of rank 0, then those of rank 1, and so on.
 * send_counts, receive_counts: INT64 [ranks], compact, adding up to the rows of tensor and of out;
 * NULL: equal parts, and the number of rows is a multiple of the number of ranks. out: the dtype and
 * the row length of tensor, which are the same on all ranks, also where a rank has no rows.
 * The ranks compare counts, dtypes and row lengths before rows move: where they differ, all of them
 * get the same DISAGREEMENT, which names a pair of ranks and what differs; out is as before and all
 * may go on. Since 0.1. */
SHARDREC_API shardrec_status
shardrec_comm_all_to_all(shardrec_comm *comm, const shardrec_tensor *tensor,
                         SHARDREC_NULLABLE const shardrec_tensor *send_counts,
                         SHARDREC_WRITTEN const shardrec_tensor *out,
                         SHARDREC_NULLABLE const shardrec_tensor *receive_counts);

/* Makes a communicator of each color: the ranks that give the same color, numbered by (key, rank in
 * comm). color < 0: this rank is in none of them, and *out becomes NULL.
 * The part is a communicator as any other, for collectives, collections and splits. It begins with
 * comm's deadlines and has its own from then on; whatever fails on it, comm and the other parts live
 * on. It ends with comm: closing, aborting or destroying comm, or a failure of it, ends its parts, and
 * their parts. Handles may be destroyed in any order. Ranks of one node stay one in the part where
 * equal blocks of its ranks tell the nodes apart; elsewhere each of its ranks is a node of its own.
 * out: owned by the caller. Collective over comm, blocking (setup deadline). Between processes a
 * communicator can be split 1,024 times in its life, a part of it 8 times, a part of that 8 times, and
 * what comes of that no more: UNSUPPORTED, on all ranks, and comm lives on.
 * Errors: as shardrec_comm_barrier; INVALID_ARGUMENT (out NULL; only this rank), UNSUPPORTED, OUT_OF_MEMORY.
 * Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_split(shardrec_comm *comm, int32_t color, int32_t key,
                                                 SHARDREC_OUT_NULLABLE shardrec_comm **out);

/* The orderly end: returns when every rank has called it; later calls return CLOSED. Destroy the
 * handle afterwards. Collective, blocking. Errors: as shardrec_comm_barrier. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_close(shardrec_comm *comm);

/* Ends the communicator on every rank: collective calls that wait, and all later ones, return
 * ABORTED with this rank's number and reason (UTF-8, NULL allowed). Never blocks. Any thread.
 * Errors: INVALID_HANDLE, CLOSED. Since 0.1. */
SHARDREC_API shardrec_status shardrec_comm_abort(shardrec_comm *comm,
                                                 SHARDREC_NULLABLE const char *reason);

#ifdef __cplusplus
}
#endif
#endif
