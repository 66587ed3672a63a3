// What tests set and ask of the tests' own libnccl.so.2 (fake/), which implements the part of NCCL that the plug-in
// calls over emulated devices (tests/simt). Also by the environment, read once:
//   SHARDREC_FAKE_NCCL_VERSION              22000 of 2.20.0: what ncclGetVersion() says
//   SHARDREC_FAKE_NCCL_POLLS                as fake_nccl_set_polls()
//   SHARDREC_FAKE_NCCL_INIT                 RANK:MS, as fake_nccl_delay_init()
//   SHARDREC_FAKE_NCCL_ASYNC_ERROR          RANK:OPERATION, as fake_nccl_set_async_error()
//   SHARDREC_FAKE_NCCL_HANG                 RANK:OPERATION, as fake_nccl_set_hang()
//   SHARDREC_FAKE_NCCL_ABORT_IS_SEEN        1: as fake_nccl_set_abort_is_seen()
//   SHARDREC_FAKE_NCCL_ONE_RANK_PER_DEVICE  1: as fake_nccl_set_one_rank_per_device()
//   SHARDREC_FAKE_NCCL_FATAL                1: a violation ends the process, for programs that do not ask for them
//
// Ranks are threads of a process or processes of a machine: those of a communicator meet in shared memory. Ranks may
// share a device. What is enqueued waits in its stream until the peers' operations are there; sends of up to 4 KiB
// wait for nobody. Sums are made from the last rank to the first, an order that the library's own sums do not have. A
// communicator has up to 16 ranks, a call up to 256 MiB.
//
// A communicator changes its state in calls only: what is in progress goes on when ncclCommGetAsyncError() is called.
// Abort ends what waits in streams of this rank; what was to be received is then 0xA5 in each byte, and the peers go
// on waiting.
//
// Found and counted as violations, with a line on stderr: calls for a communicator that is in progress, that was
// aborted or destroyed, or from a thread with another current device; two threads in calls for communicators of one
// rank, but for abort and destroy of one communicator beside calls for another; sends and receives of different sizes
// or of none; collectives that differ between ranks in kind, count, type or reduction; ranks that call different
// operations, or for several communicators in different orders; groups that are not paired, or mix streams; destroy
// while operations are pending. What two ranks do not agree on is counted by both. A device is one rank's, unless a
// communicator of the process has two ranks there: then a rank is known by the thread that made its communicators. For
// orders it always is: communicators that were made by different threads are not compared.
//
// Thread rule: any thread.
#pragma once

#include <stdint.h>

#define FAKE_NCCL_VISIBLE __attribute__((visibility("default")))

extern "C" {

// Violations so far in this process, and the last of them as a sentence; "" if there was none.
FAKE_NCCL_VISIBLE int64_t fake_nccl_violations(void);
FAKE_NCCL_VISIBLE const char* fake_nccl_last_violation(void);
FAKE_NCCL_VISIBLE void fake_nccl_forget_violations(void);
// Communicators that were not aborted or destroyed, and operations in streams, of this process.
FAKE_NCCL_VISIBLE int64_t fake_nccl_live(void);
// Bytes that were given to ncclSend() in this process.
FAKE_NCCL_VISIBLE int64_t fake_nccl_bytes_sent(void);

// Of each call, how many polls say that it is in progress before it takes place; 0, the default: it takes place when it
// is called.
FAKE_NCCL_VISIBLE void fake_nccl_set_polls(int polls);
// Communicators of this rank (-1: of all) that are made from now on join their peers later by so many milliseconds;
// negative: never.
FAKE_NCCL_VISIBLE void fake_nccl_delay_init(int rank, int milliseconds);
// The rank's operation of this number (from 1, for each communicator; a group is one) never ends, and for the first of
// these ncclCommGetAsyncError() says ncclRemoteError from then on. 0: none does.
FAKE_NCCL_VISIBLE void fake_nccl_set_async_error(int rank, int64_t operation);
FAKE_NCCL_VISIBLE void fake_nccl_set_hang(int rank, int64_t operation);
// 1: when a rank aborts, ncclCommGetAsyncError() says ncclRemoteError to the others.
FAKE_NCCL_VISIBLE void fake_nccl_set_abort_is_seen(int seen);
// 1: a device that two ranks of a communicator have is refused, as by NCCL before 2.30.
FAKE_NCCL_VISIBLE void fake_nccl_set_one_rank_per_device(int one);
// Calls that take a communicator last so many milliseconds at least.
FAKE_NCCL_VISIBLE void fake_nccl_set_call_time(int milliseconds);
}
