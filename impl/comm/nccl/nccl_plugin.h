// The border between the core and the NCCL plug-in: one C function that fills a C table. Only plain C types
// cross it. It is an exact match: another abi or another size is refused, never guessed at.
//
// The plug-in decides nothing: it finds NVIDIA's library, and hands its calls on. It throws nothing, prints
// nothing and waits for nobody: communicators are made with blocking 0, and a call that is not over yet says
// IN_PROGRESS. Until progress() says otherwise, nothing but progress() and abort() is called for that
// communicator, and what the call enqueues in its stream may be missing there. The calling thread's current
// device is the communicator's at each call that takes one.
//
// Thread rule: one thread at a time for all communicators of a device; abort() from another one where
// no call is under way.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Also the suffix of the plug-in's file name.
#define SHARDREC_NCCL_ABI 1

// What every function returns that can fail: an ncclResult_t.
typedef int32_t shardrec_nccl_result;
enum {
  SHARDREC_NCCL_OK = 0,           // ncclSuccess
  SHARDREC_NCCL_IN_PROGRESS = 7,  // ncclInProgress
};

// What the plug-in's function returns.
enum {
  SHARDREC_NCCL_FILLED = 0,
  SHARDREC_NCCL_ABI_MISMATCH = 1,
  SHARDREC_NCCL_MISSING = 2,  // NVIDIA's library, or a function in it: `reason` says which
  SHARDREC_NCCL_TOO_OLD = 3   // it is older than 2.19: `reason` has its version
};

enum { SHARDREC_NCCL_ID_BYTES = 128 };

typedef struct shardrec_nccl_comm shardrec_nccl_comm;

// What goes to a rank, or comes from one, in memory of the device.
typedef struct shardrec_nccl_part {
  void *data;
  uint64_t bytes;  // 0: nothing goes or comes
  int32_t peer;
} shardrec_nccl_part;

// Elements and reductions of NCCL that the core asks for.
typedef enum shardrec_nccl_dtype {
  SHARDREC_NCCL_INT32 = 2,
  SHARDREC_NCCL_INT64 = 4,
  SHARDREC_NCCL_FLOAT16 = 6,
  SHARDREC_NCCL_FLOAT32 = 7,
  SHARDREC_NCCL_FLOAT64 = 8,
  SHARDREC_NCCL_BFLOAT16 = 9
} shardrec_nccl_dtype;
typedef enum shardrec_nccl_reduction {
  SHARDREC_NCCL_SUM = 0,
  SHARDREC_NCCL_MAX = 2,
  SHARDREC_NCCL_MIN = 3,
  SHARDREC_NCCL_AVG = 4
} shardrec_nccl_reduction;

typedef struct shardrec_nccl_vector {
  const void *in;
  void *out;       // may be `in`
  uint64_t count;  // elements that each rank gives; of a reduce-scatter, that each rank gets
  int32_t dtype;
  int32_t reduction;
} shardrec_nccl_vector;

typedef struct shardrec_nccl_table {
  uint32_t size;        // in: sizeof of the core's table; out: of the plug-in's
  uint32_t abi;         // in: the core's SHARDREC_NCCL_ABI; out: the plug-in's
  const char *library;  // such as "NCCL 2.32.3"; static storage
  const char
      *reason;      // where the table is not filled: a sentence without a full stop; static storage
  int32_t version;  // 23203 of 2.32.3

  // Meaning of a result; static storage, never null.
  const char *(*result_text)(shardrec_nccl_result result);
  // What NCCL says of the last error of the thread; "" where it says nothing. Valid until the next call.
  const char *(*last_error)();

  // A group's name, of one rank, which gives it to the others. May take a moment.
  shardrec_nccl_result (*make_id)(uint8_t *out);
  // Begins a communicator on the thread's current device; it is made when progress() says OK. most_ctas: blocks of
  // a kernel of it at most, 0: NCCL's default. After an error *out is null or is aborted.
  shardrec_nccl_result (*create)(const uint8_t *id, int32_t rank, int32_t size, int32_t most_ctas,
                                 shardrec_nccl_comm **out);
  // What has become of the communicator: OK, IN_PROGRESS, or the error that ended it.
  shardrec_nccl_result (*progress)(shardrec_nccl_comm *comm);

  // Sends and receives as one group, in the stream (the value of a cudaStream_t). Parts ascend by peer; those of
  // 0 bytes are left out.
  shardrec_nccl_result (*exchange)(shardrec_nccl_comm *comm, int64_t stream,
                                   const shardrec_nccl_part *sends, int32_t send_count,
                                   const shardrec_nccl_part *receives, int32_t receive_count);
  shardrec_nccl_result (*all_reduce)(shardrec_nccl_comm *comm, int64_t stream,
                                     const shardrec_nccl_vector *vector);
  shardrec_nccl_result (*reduce_scatter)(shardrec_nccl_comm *comm, int64_t stream,
                                         const shardrec_nccl_vector *vector);
  shardrec_nccl_result (*all_gather)(shardrec_nccl_comm *comm, int64_t stream,
                                     const shardrec_nccl_vector *vector);

  // Ends what is under way, at once and on this rank only, and frees the communicator: what it was to receive is
  // garbage, what is enqueued behind it goes on. May block for a moment.
  shardrec_nccl_result (*abort)(shardrec_nccl_comm *comm);
  // The orderly end, behind progress() = OK. finalize: collective in effect, behind which progress() is asked until
  // it says OK; destroy then frees the communicator.
  shardrec_nccl_result (*finalize)(shardrec_nccl_comm *comm);
  shardrec_nccl_result (*destroy)(shardrec_nccl_comm *comm);
} shardrec_nccl_table;

// Exported as "shardrec_nccl_plugin". Sets size, abi and reason always, the rest when it returns FILLED.
typedef int32_t (*shardrec_nccl_plugin_function)(shardrec_nccl_table *table);

#ifdef __cplusplus
}
#endif
