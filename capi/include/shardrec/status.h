/* Status codes and the error of the calling thread.
 *
 * Functions that can fail return a shardrec_status. When it is not SHARDREC_OK, the calling
 * thread's error holds a sentence (what was wrong, where, what would be accepted) and, where they
 * are known, its parts, so that nobody has to parse the sentence. The error is valid until this
 * thread's next call that fails; a call that succeeds leaves it alone.
 *
 * After a failed call arguments, handles and tables are as they were before it, but for what comments of
 * functions say: a communicator that died with it (status 200 to 299), an output that
 * shardrec_lookup_forward had begun to write, rows of shardrec_collection_write_rows and _write_range that
 * other ranks had taken already, tables that a load had begun to fill, parameters that a step inside
 * backward (DDP_STEP_IN_BACKWARD) had reached.
 *
 * A collective call (comm.h) that one rank refuses before it exchanges anything, as INVALID_ARGUMENT,
 * INVALID_STATE, INVALID_HANDLE, CLOSED, BUSY, NOT_FOUND or UNSUPPORTED, is refused on this rank alone, and
 * the others wait for it. They go on when it makes the call with what is accepted. Where it does not, they
 * end with TIMEOUT at their deadline, with PEER_FAILED when it destroys its communicator, and both with
 * MISMATCH when it makes another call on what they are in. Where the comment of a function says that all
 * ranks get an error, nobody waits: they return together, nothing was done, and all may go on. These are
 * the arguments of shardrec_mesh_create, shardrec_plan_collective, shardrec_collection_create and the calls
 * of checkpoint.h, all but the first; what the ranks find out together, such as a bad batch (INVALID_BATCH) or different
 * arguments (DISAGREEMENT); and a state that calls of all ranks have brought about, such as tables that a
 * load left filled in part.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHARDREC_STATUS_H
#define SHARDREC_STATUS_H

#include "shardrec/annotations.h"
#include "shardrec/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values are pinned; new ones are appended inside their family. */
typedef enum shardrec_status {
  SHARDREC_OK = 0,
  /* The caller's doing. */
  SHARDREC_INVALID_ARGUMENT = 1, /* a value, shape, dtype or name that is not accepted */
  SHARDREC_INVALID_HANDLE = 2,   /* NULL, garbage, or a handle of another kind */
  SHARDREC_CLOSED = 3,           /* the handle was destroyed, or its communicator was closed */
  SHARDREC_BUSY = 4,             /* another thread is inside a call on this handle */
  SHARDREC_INVALID_STATE = 5,    /* a call out of order, such as backward before forward */
  SHARDREC_INVALID_BATCH = 6,    /* some rank's batch or gradient was refused; no rank applied it */
  SHARDREC_NOT_FOUND = 7,        /* a name, index, file or part of an error that does not exist */
  SHARDREC_UNSUPPORTED = 8, /* meaningful, but not available in this build; the sentence says why */
  SHARDREC_DISAGREEMENT = 9, /* the ranks asked for different things, which is said to all of them: no rank
                                has done any of it, and all may go on */
  /* Resources. */
  SHARDREC_OUT_OF_MEMORY = 100,
  SHARDREC_IO_ERROR = 101,     /* the operating system refused a file operation */
  SHARDREC_CORRUPT_DATA = 102, /* a file or message does not hold what its format promises */
  SHARDREC_DEVICE_ERROR = 103, /* a device failed; the sentence names it and the runtime's error */
  /* The group of ranks. After one of these, and only these, the communicator is dead: destroy what used
   * it. */
  SHARDREC_PEER_FAILED = 200, /* another rank is gone */
  SHARDREC_TIMEOUT = 201,     /* a deadline passed; the sentence names the rank and the operation */
  SHARDREC_MISMATCH = 202,    /* ranks made different calls, or made them in another order */
  SHARDREC_ABORTED = 203,     /* shardrec_comm_abort was called on some rank */
  /* Control. */
  SHARDREC_CANCELLED = 300, /* shardrec_control_cancel was called */
  /* The library's doing. */
  SHARDREC_INTERNAL = 400, /* a defect of the library; please report the sentence */
  SHARDREC_STATUS_FORCE_32 = 0x7fffffff
} shardrec_status;

/* Parts of an error. */
typedef enum shardrec_error_part {
  /* for shardrec_last_error_i64 */
  SHARDREC_ERROR_RANK = 1,     /* the rank at fault */
  SHARDREC_ERROR_POSITION = 2, /* index into the array at fault (values, lengths, offsets, weights) */
  SHARDREC_ERROR_VALUE = 3,    /* the value that was refused */
  SHARDREC_ERROR_LIMIT = 4,    /* what would have been accepted, exclusive */
  SHARDREC_ERROR_SEQUENCE = 5, /* the sequence number of the operation */
  /* for shardrec_last_error_text */
  SHARDREC_ERROR_TABLE = 101,     /* name of the table */
  SHARDREC_ERROR_FEATURE = 102,   /* name of the feature */
  SHARDREC_ERROR_OPERATION = 103, /* the operation that failed, such as "forward" */
  SHARDREC_ERROR_PATH = 104,      /* the file or directory */
  SHARDREC_ERROR_PART_FORCE_32 = 0x7fffffff
} shardrec_error_part;

/* Name of a status, such as "SHARDREC_TIMEOUT"; "unknown status" for any other number.
 * Never NULL; static storage. Any thread. Since 0.1. */
SHARDREC_API const char *shardrec_status_name(shardrec_status status);

/* This thread's last error as one UTF-8 sentence; "" when no call of this thread has failed.
 * Never NULL; owned by the library, valid until this thread's next failing call. Since 0.1. */
SHARDREC_API const char *shardrec_last_error(void);

/* Status of this thread's last error, SHARDREC_OK when there was none. Since 0.1. */
SHARDREC_API shardrec_status shardrec_last_error_status(void);

/* A part of this thread's last error as a number.
 * part: SHARDREC_ERROR_RANK .. SHARDREC_ERROR_SEQUENCE. out: one int64_t.
 * Errors: NOT_FOUND when the error has no such part (the error itself is left alone),
 * INVALID_ARGUMENT when out is NULL. Since 0.1. */
SHARDREC_API shardrec_status shardrec_last_error_i64(shardrec_error_part part, int64_t *out);

/* A part of this thread's last error as text.
 * part: SHARDREC_ERROR_TABLE .. SHARDREC_ERROR_PATH. out_text: UTF-8, freed by the caller with
 * shardrec_text_free. Errors: as shardrec_last_error_i64, and OUT_OF_MEMORY. Since 0.1. */
SHARDREC_API shardrec_status shardrec_last_error_text(shardrec_error_part part, char **out_text);

/* Frees a text that a function returned through a char **. NULL is allowed. Any thread. Since 0.1. */
SHARDREC_API void shardrec_text_free(SHARDREC_NULLABLE char *text);

#ifdef __cplusplus
}
#endif
#endif
