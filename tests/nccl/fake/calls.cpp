// The functions of NCCL that the library exports.
#include <sys/random.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <thread>

#include "comm/nccl/nccl_api.h"
#include "elements.h"
#include "emulated.h"
#include "group.h"
#include "knobs.h"
#include "registry.h"

#define FAKE_NCCL_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake_nccl {
namespace {

using namespace shardrec::comm::nccl;

constexpr char kMagic[16] = "fake NCCL's id";
constexpr uint32_t kConfigMagic = 0xCAFEBEEF;
constexpr size_t kLeastConfig = offsetof(Config, traffic_class);

struct IdParts {
  char magic[sizeof kMagic];
  uint64_t number;
  uint64_t process;
};
static_assert(sizeof(IdParts) <= sizeof(UniqueId));

int64_t number_of(CudaStream stream) { return reinterpret_cast<int64_t>(stream); }

bool is_wrong_config(const Config& config) {
  return config.size < kLeastConfig || config.magic != kConfigMagic ||
         config.version < kOldestVersion;
}

// Of communicators that are not to be polled: until they are made.
Result wait_until_made(Comm comm) {
  for (;;) {
    {
      const Call call(comm, CallKind::kPoll, "ncclCommInitRankConfig");
      const Result result = call.communicator()->poll();
      if (result != kInProgress) return result;
    }
    std::this_thread::yield();
  }
}

Result make(Comm* comm, int size, const UniqueId& id, int rank, const Config& config) {
  IdParts parts{};
  std::memcpy(&parts, id.bytes, sizeof parts);
  if (std::memcmp(parts.magic, kMagic, sizeof kMagic) != 0) return kInvalidArgument;
  if (size < 1 || size > kMostRanks || rank < 0 || rank >= size) return kInvalidArgument;
  if (is_in_group()) {
    violation("ncclCommInitRankConfig in a group");
    return kInvalidUsage;
  }
  const int device = simt::emulated() != nullptr ? simt::emulated()->current_device() : -1;
  if (device < 0) return kUnhandledCudaError;
  char name[64];
  std::snprintf(name, sizeof name, "/fake_nccl_%" PRIx64 "_%" PRIx64, parts.process, parts.number);
  const bool blocking = config.blocking != 0;  // also where it is not said
  *comm = add_communicator(
      {.name = name, .number = parts.number, .rank = rank, .size = size, .blocking = blocking},
      device);
  return blocking ? wait_until_made(*comm) : kInProgress;
}

bool is_misplaced(const char* name) {
  if (is_in_group()) violation("%s in a group", name);
  return is_in_group();
}

// A collective of `in`: reduced ones have types and reductions that the core asks for.
Result collective(Comm comm, CudaStream stream, const char* name, const Collective& of) {
  const bool reduces = of.kind != Kind::kAllGather;
  const bool can_be_reduced =
      of.dtype == SHARDREC_NCCL_INT32 || of.dtype == SHARDREC_NCCL_INT64 ||
      (of.dtype >= SHARDREC_NCCL_FLOAT16 && of.dtype <= SHARDREC_NCCL_BFLOAT16);
  if (bytes_of_element(of.dtype) == 0) return kInvalidArgument;
  if (reduces && (!can_be_reduced || !is_reduction(of.reduction))) return kInvalidArgument;
  return add_part(comm, number_of(stream), {.name = name, .collective = &of});
}

Result message_bytes(const char* name, size_t count, int32_t dtype, size_t& bytes) {
  bytes = count * bytes_of_element(dtype);
  if (bytes_of_element(dtype) == 0) return kInvalidArgument;
  if (bytes != 0) return kSuccess;
  violation("%s of 0 bytes", name);
  return kInvalidArgument;
}

}  // namespace
}  // namespace fake_nccl

using namespace fake_nccl;
using namespace shardrec::comm::nccl;

FAKE_NCCL_EXPORT Result ncclGetVersion(int* version) {
  *version = knobs().version;
  return kSuccess;
}

FAKE_NCCL_EXPORT const char* ncclGetErrorString(Result result) {
  switch (result) {
    case kSuccess:
      return "no error";
    case kUnhandledCudaError:
      return "a call of CUDA failed";
    case kSystemError:
      return "a call of the system failed";
    case kInternalError:
      return "internal error";
    case kInvalidArgument:
      return "invalid argument";
    case kInvalidUsage:
      return "invalid usage";
    case kRemoteError:
      return "remote process exited or there was a network error";
    case kInProgress:
      return "operation in progress";
  }
  return "unknown result code";
}

FAKE_NCCL_EXPORT const char* ncclGetLastError(Comm /*comm*/) { return "this is the tests' NCCL"; }

FAKE_NCCL_EXPORT Result ncclGetUniqueId(UniqueId* id) {
  IdParts parts{};
  std::memcpy(parts.magic, kMagic, sizeof kMagic);
  parts.process = static_cast<uint64_t>(getpid());
  if (getrandom(&parts.number, sizeof parts.number, 0) != sizeof parts.number) return kSystemError;
  *id = {};
  std::memcpy(id->bytes, &parts, sizeof parts);
  return kSuccess;
}

FAKE_NCCL_EXPORT Result ncclCommInitRankConfig(Comm* comm, int size, UniqueId id, int rank,
                                               Config* config) {
  if (config != nullptr && is_wrong_config(*config)) return kInvalidArgument;
  return make(comm, size, id, rank, config != nullptr ? *config : Config{});
}

FAKE_NCCL_EXPORT Result ncclCommGetAsyncError(Comm comm, Result* error) {
  const Call call(comm, CallKind::kPoll, "ncclCommGetAsyncError");
  if (call.communicator() == nullptr) return kInvalidArgument;
  *error = call.communicator()->poll();
  return kSuccess;
}

FAKE_NCCL_EXPORT Result ncclCommFinalize(Comm comm) {
  const Call call(comm, CallKind::kOperation, "ncclCommFinalize");
  if (call.communicator() == nullptr) return kInvalidArgument;
  if (call.is_refused() || is_misplaced("ncclCommFinalize")) return kInvalidUsage;
  if (call.communicator()->error() != kSuccess) return call.communicator()->error();
  return call.communicator()->finalize();
}

FAKE_NCCL_EXPORT Result ncclCommDestroy(Comm comm) {
  Call call(comm, CallKind::kDestroy, "ncclCommDestroy");
  if (call.communicator() == nullptr) return kInvalidArgument;
  is_misplaced("ncclCommDestroy");
  if (call.is_refused() && call.communicator()->is_aborted()) return kInvalidUsage;
  const bool pending = call.communicator()->has_pending();
  if (pending) violation("ncclCommDestroy while operations are pending");
  call.communicator()->end(!pending);
  call.remove();
  return kSuccess;
}

FAKE_NCCL_EXPORT Result ncclCommAbort(Comm comm) {
  Call call(comm, CallKind::kAbort, "ncclCommAbort");
  if (call.communicator() == nullptr) return kInvalidArgument;
  is_misplaced("ncclCommAbort");
  if (call.communicator()->is_aborted()) return kInvalidUsage;
  call.communicator()->end(call.communicator()->is_finalized());
  call.remove();
  return kSuccess;
}

FAKE_NCCL_EXPORT Result ncclGroupStart() {
  start_group();
  return kSuccess;
}

FAKE_NCCL_EXPORT Result ncclGroupEnd() { return end_group(); }

FAKE_NCCL_EXPORT Result ncclSend(const void* data, size_t count, int32_t dtype, int peer, Comm comm,
                                 CudaStream stream) {
  Send send{.data = data, .bytes = 0, .peer = peer};
  const Result result = message_bytes("ncclSend", count, dtype, send.bytes);
  if (result != kSuccess) return result;
  bytes_sent.fetch_add(static_cast<int64_t>(send.bytes));
  return add_part(comm, number_of(stream), {.name = "ncclSend", .send = &send});
}

FAKE_NCCL_EXPORT Result ncclRecv(void* data, size_t count, int32_t dtype, int peer, Comm comm,
                                 CudaStream stream) {
  Receive receive{.data = data, .bytes = 0, .peer = peer};
  const Result result = message_bytes("ncclRecv", count, dtype, receive.bytes);
  if (result != kSuccess) return result;
  return add_part(comm, number_of(stream), {.name = "ncclRecv", .receive = &receive});
}

FAKE_NCCL_EXPORT Result ncclAllReduce(const void* in, void* out, size_t count, int32_t dtype,
                                      int32_t reduction, Comm comm, CudaStream stream) {
  return collective(comm, stream, "ncclAllReduce",
                    {Kind::kAllReduce, in, out, count, dtype, reduction});
}

FAKE_NCCL_EXPORT Result ncclReduceScatter(const void* in, void* out, size_t out_count,
                                          int32_t dtype, int32_t reduction, Comm comm,
                                          CudaStream stream) {
  return collective(comm, stream, "ncclReduceScatter",
                    {Kind::kReduceScatter, in, out, out_count, dtype, reduction});
}

FAKE_NCCL_EXPORT Result ncclAllGather(const void* in, void* out, size_t in_count, int32_t dtype,
                                      Comm comm, CudaStream stream) {
  return collective(comm, stream, "ncclAllGather", {Kind::kAllGather, in, out, in_count, dtype, 0});
}
