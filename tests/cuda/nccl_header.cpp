// The plug-in's declarations of NCCL (impl/comm/nccl/nccl_api.h) are those of NVIDIA's header: compiled, never run.
// NVIDIA's header comes with CUDA's, of which it needs little.
#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "comm/nccl/nccl_api.h"

namespace shardrec::comm::nccl {
namespace {

static_assert(NCCL_VERSION_CODE >= kOldestVersion);

static_assert(kSuccess == int{ncclSuccess} && kUnhandledCudaError == int{ncclUnhandledCudaError} &&
              kSystemError == int{ncclSystemError} && kInternalError == int{ncclInternalError} &&
              kInvalidArgument == int{ncclInvalidArgument} &&
              kInvalidUsage == int{ncclInvalidUsage} && kRemoteError == int{ncclRemoteError} &&
              kInProgress == int{ncclInProgress});

static_assert(kInt8 == int{ncclInt8} && int{SHARDREC_NCCL_INT32} == int{ncclInt32} &&
              int{SHARDREC_NCCL_INT64} == int{ncclInt64} &&
              int{SHARDREC_NCCL_FLOAT16} == int{ncclFloat16} &&
              int{SHARDREC_NCCL_FLOAT32} == int{ncclFloat32} &&
              int{SHARDREC_NCCL_FLOAT64} == int{ncclFloat64} &&
              int{SHARDREC_NCCL_BFLOAT16} == int{ncclBfloat16});
static_assert(int{SHARDREC_NCCL_SUM} == int{ncclSum} && int{SHARDREC_NCCL_MAX} == int{ncclMax} &&
              int{SHARDREC_NCCL_MIN} == int{ncclMin} && int{SHARDREC_NCCL_AVG} == int{ncclAvg});

static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId) &&
              alignof(UniqueId) == alignof(ncclUniqueId));

// What ours has lies where NVIDIA's has it, and what NVIDIA's has more begins behind it.
#define SHARDREC_SAME_FIELD(ours, theirs)                                   \
  static_assert(offsetof(Config, ours) == offsetof(ncclConfig_t, theirs) && \
                sizeof(Config::ours) == sizeof(ncclConfig_t::theirs))
SHARDREC_SAME_FIELD(size, size);
SHARDREC_SAME_FIELD(magic, magic);
SHARDREC_SAME_FIELD(version, version);
SHARDREC_SAME_FIELD(blocking, blocking);
SHARDREC_SAME_FIELD(cga_cluster_size, cgaClusterSize);
SHARDREC_SAME_FIELD(min_ctas, minCTAs);
SHARDREC_SAME_FIELD(max_ctas, maxCTAs);
SHARDREC_SAME_FIELD(net_name, netName);
SHARDREC_SAME_FIELD(split_share, splitShare);
SHARDREC_SAME_FIELD(traffic_class, trafficClass);
#undef SHARDREC_SAME_FIELD
static_assert(offsetof(ncclConfig_t, commName) == sizeof(Config));

constexpr ncclConfig_t kTheirs = NCCL_CONFIG_INITIALIZER;
constexpr Config kOurs{};
static_assert(kOurs.magic == kTheirs.magic && kOurs.blocking == kTheirs.blocking &&
              kOurs.cga_cluster_size == kTheirs.cgaClusterSize &&
              kOurs.min_ctas == kTheirs.minCTAs && kOurs.max_ctas == kTheirs.maxCTAs &&
              kOurs.net_name == kTheirs.netName && kOurs.split_share == kTheirs.splitShare &&
              kOurs.traffic_class == kTheirs.trafficClass);

// A value of one type is passed as one of the other is: pointers, numbers (enumerations are), and structs of one size.
template <class Ours, class Theirs>
constexpr bool kAlike =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
    std::is_class_v<Ours> == std::is_class_v<Theirs>;
template <class Ours, class Theirs>
constexpr bool kSameCall = false;
template <class Our, class... Ours, class Their, class... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
constexpr bool kSameCall<Our (*)(Ours...), Their (*)(Theirs...)> =
    kAlike<Our, Their> && (kAlike<Ours, Theirs> && ...);

#define SHARDREC_SAME_CALL(name) static_assert(kSameCall<decltype(Api::name), decltype(&::name)>)
SHARDREC_SAME_CALL(ncclGetVersion);
SHARDREC_SAME_CALL(ncclGetErrorString);
SHARDREC_SAME_CALL(ncclGetLastError);
SHARDREC_SAME_CALL(ncclGetUniqueId);
SHARDREC_SAME_CALL(ncclCommInitRankConfig);
SHARDREC_SAME_CALL(ncclCommGetAsyncError);
SHARDREC_SAME_CALL(ncclCommFinalize);
SHARDREC_SAME_CALL(ncclCommDestroy);
SHARDREC_SAME_CALL(ncclCommAbort);
SHARDREC_SAME_CALL(ncclGroupStart);
SHARDREC_SAME_CALL(ncclGroupEnd);
SHARDREC_SAME_CALL(ncclSend);
SHARDREC_SAME_CALL(ncclRecv);
SHARDREC_SAME_CALL(ncclAllReduce);
SHARDREC_SAME_CALL(ncclReduceScatter);
SHARDREC_SAME_CALL(ncclAllGather);
#undef SHARDREC_SAME_CALL

}  // namespace
}  // namespace shardrec::comm::nccl
