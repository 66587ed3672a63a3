// The border between the core and a plug-in that carries messages between processes (gloo, mpi):
// one C function that fills a C table. Only plain C types and statuses cross it, so that core and
// plug-in may be built by different compilers; no exception, abort, exit or signal does. It is an
// exact match: another abi or another size is refused, never guessed at.
//
// A transport joins `size` ranks. It moves messages of known length: who receives says how long
// the message is, and brings the memory. A message is named by (sender, receiver, tag); at most one
// with the same name is under way at a time, from when either end asks for it until both are
// through with it. Everything else (what an exchange is, whether ranks agree about it, deadlines,
// who is to blame) is the core's (comm/remote).
//
// Thread rule: any thread may call anything on one transport at any time, but wait() and forget()
// on one request: one thread at a time. All signals are blocked in the plug-in's threads, and no
// call of a host's thread raises one (SIGPIPE above all).
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Also the suffix of the plug-ins' file names: libshardrec_gloo.so.1.
#define SHARDREC_TRANSPORT_ABI 1

enum {
  SHARDREC_TRANSPORT_OK = 0,
  SHARDREC_TRANSPORT_ABI_MISMATCH = 1,
  SHARDREC_TRANSPORT_UNUSABLE = 2,  // here and now: the error's text says why
  SHARDREC_TRANSPORT_FAILED = 3,    // a peer or the way to it: error.peer, where it is known
  SHARDREC_TRANSPORT_TIMEOUT = 4,   // the request goes on
  SHARDREC_TRANSPORT_CANCELLED = 5,
  SHARDREC_TRANSPORT_OUT_OF_MEMORY = 6
};

typedef struct shardrec_transport_error {
  int32_t peer;    // -1: not known
  char text[508];  // a sentence, NUL-terminated; empty after OK
} shardrec_transport_error;

// Tags have so many bits.
#define SHARDREC_TRANSPORT_TAG_BITS 31
// Most bytes of a group state, and of a value in the store.
#define SHARDREC_TRANSPORT_GROUP_STATE_BYTES 1024
#define SHARDREC_TRANSPORT_VALUE_BYTES 65536

// What open() is given. The pointers are valid until close() has returned.
typedef struct shardrec_transport_job {
  int32_t rank;         // -1 if the transport's launcher assigns the rank (mpi)
  int32_t size;         // likewise
  double seconds;       // to meet in
  double silence;       // seconds after which a host that nothing is heard of is gone; 0: unlimited
  const char *address;  // of this machine, in numbers, to bind to; NULL: the transport's choice
  // A store that all ranks share, for addresses; NULL for transports that need none. get waits
  // until somebody has set the key. Both return a status of above. Any thread.
  void *store;
  int32_t (*store_set)(void *store, const char *key, const void *data, uint64_t bytes);
  int32_t (*store_get)(void *store, const char *key, void *data, uint64_t capacity, uint64_t *bytes,
                       double seconds);
  // Called on a thread of the transport for each group state that arrives, one at a time, until close()
  // has returned. It calls no function of the transport except cancel().
  void *reader;
  void (*group_state)(void *reader, int32_t from, const void *data, uint64_t bytes);
} shardrec_transport_job;

typedef struct shardrec_transport_table {
  uint32_t size;             // in: sizeof of the core's table; out: of the plug-in's
  uint32_t abi;              // in: the core's SHARDREC_TRANSPORT_ABI; out: the plug-in's
  const char *library;       // what carries, such as "Open MPI 4.1.4"; static storage
  int32_t is_launched;       // 1: its launcher says who the ranks are; no store, no rank needed
  int32_t has_group_states;  // 0: announce() is null, the core has another way

  // Checks the environment variables that this engine reads. Called before the ranks meet, so that
  // no rank waits for one whose settings are refused. Returns OK, OUT_OF_MEMORY, or another status
  // with a sentence that says what would be accepted. NULL if the engine reads none.
  int32_t (*check_settings)(shardrec_transport_error *error);

  // Collective: returns when this rank can send to every other one. *transport is closed by
  // close().
  int32_t (*open)(const shardrec_transport_job *job, void **transport,
                  shardrec_transport_error *error);
  // Of an open one.
  int32_t (*rank)(void *transport);
  int32_t (*ranks)(void *transport);

  // Start, and wait for nobody (what is there already may be copied); `data` stays as it is (send),
  // untouched (receive), until wait() has returned another status than TIMEOUT, or close() has
  // returned. peer is not the own rank. bytes may be 0 and may exceed 2^32. Each request is given
  // back by forget(), whatever became of it.
  int32_t (*send)(void *transport, int32_t peer, uint32_t tag, const void *data, uint64_t bytes,
                  void **request, shardrec_transport_error *error);
  int32_t (*receive)(void *transport, int32_t peer, uint32_t tag, void *data, uint64_t bytes,
                     void **request, shardrec_transport_error *error);
  // Blocks until the request is done, or so many seconds have passed; 0 asks.
  int32_t (*wait)(void *transport, void *request, double seconds, shardrec_transport_error *error);
  // Of a request that is not done: it is cancelled first, and its memory not touched afterwards.
  void (*forget)(void *transport, void *request);

  // Sends a group state to every other rank, whatever these are doing. Does not wait for them.
  int32_t (*announce)(void *transport, const void *data, uint64_t bytes);

  // Ends every wait, now and later, with CANCELLED. For good.
  void (*cancel)(void *transport);
  // Gives back everything. Not collective. Takes under a second, whatever peers do; requests that
  // are not done are dropped. The last group state of this rank is sent before.
  void (*close)(void *transport);
} shardrec_transport_table;

// Exported as "shardrec_transport_plugin". Sets size and abi always, the rest when it returns OK.
typedef int32_t (*shardrec_transport_plugin_function)(shardrec_transport_table *table,
                                                      shardrec_transport_error *error);

#ifdef __cplusplus
}
#endif
