// The part of NVIDIA's NCCL that the plug-in calls, declared here: nothing of NVIDIA's is needed to build it. It is the
// interface of NCCL 2.19, which later versions keep; tests/cuda/nccl_library compares it with NVIDIA's header.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

#include "comm/nccl/nccl_plugin.h"

namespace shardrec::comm::nccl {

inline constexpr int kOldestVersion = 21900;  // 2.19.0: a library of less is refused

// ncclResult_t. 8, a timeout, is known from 2.30 on.
enum Result : int32_t {
  kSuccess = SHARDREC_NCCL_OK,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = SHARDREC_NCCL_IN_PROGRESS,
};

// ncclUniqueId.
struct UniqueId {
  char bytes[SHARDREC_NCCL_ID_BYTES];
};

// ncclComm_t, which is a pointer to a type that NCCL keeps to itself, and cudaStream_t.
using Comm = shardrec_nccl_comm*;
using CudaStream = void*;

inline constexpr int32_t kInt8 = 0;  // ncclInt8, for bytes; the other types: shardrec_nccl_dtype

inline constexpr int kUndefined = INT_MIN;

// ncclConfig_t as 2.19 has it. `size` says how much of it there is and `version` who wrote it: a later library takes
// the fields that it does not find from its own defaults. It may copy the bytes up to `size`, and those behind
// split_share became a field in a later version: they are said to be undefined too, and are no padding.
struct Config {
  size_t size = sizeof(Config);
  uint32_t magic = 0xCAFEBEEF;
  uint32_t version = kOldestVersion;
  int blocking = kUndefined;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;
  int traffic_class = kUndefined;  // unknown to 2.19
};

// The functions, by the names that the library exports.
struct Api {
  Result (*ncclGetVersion)(int* version);
  const char* (*ncclGetErrorString)(Result result);
  const char* (*ncclGetLastError)(Comm comm);
  Result (*ncclGetUniqueId)(UniqueId* id);
  Result (*ncclCommInitRankConfig)(Comm* comm, int size, UniqueId id, int rank, Config* config);
  Result (*ncclCommGetAsyncError)(Comm comm, Result* error);
  Result (*ncclCommFinalize)(Comm comm);
  Result (*ncclCommDestroy)(Comm comm);
  Result (*ncclCommAbort)(Comm comm);
  Result (*ncclGroupStart)();
  Result (*ncclGroupEnd)();
  Result (*ncclSend)(const void* data, size_t count, int32_t dtype, int peer, Comm comm,
                     CudaStream stream);
  Result (*ncclRecv)(void* data, size_t count, int32_t dtype, int peer, Comm comm,
                     CudaStream stream);
  Result (*ncclAllReduce)(const void* in, void* out, size_t count, int32_t dtype, int32_t reduction,
                          Comm comm, CudaStream stream);
  Result (*ncclReduceScatter)(const void* in, void* out, size_t out_count, int32_t dtype,
                              int32_t reduction, Comm comm, CudaStream stream);
  Result (*ncclAllGather)(const void* in, void* out, size_t in_count, int32_t dtype, Comm comm,
                          CudaStream stream);
};

}  // namespace shardrec::comm::nccl
