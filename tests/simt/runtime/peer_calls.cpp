// Calls about access of devices to each other's memory. It is noted, and nothing else: copies between devices need none.
#include <array>
#include <atomic>

#include "calls.h"
#include "simt/control.h"

struct CUmemPoolHandle_st {};

namespace simt {
namespace {

enum class PeerAccess : int { kAllowed = 0, kImpossible = 1, kFails = 2 };

using Bits = std::array<std::atomic<uint64_t>, kMostDevices>;

std::atomic<int> peer_access{static_cast<int>(PeerAccess::kAllowed)};
std::atomic<int64_t> questions{0};
Bits pools_reached;  // by device, the peers
Bits peers_enabled;
std::array<CUmemPoolHandle_st, kMostDevices>
    pools;  // whose addresses stand for those of the devices

bool is(PeerAccess which) { return peer_access.load() == static_cast<int>(which); }
bool is_device(int device) { return device >= 0 && device < device_count(); }
uint64_t bit_of(int device) { return uint64_t{1} << device; }
std::atomic<uint64_t>& of(Bits& bits, int device) { return bits[static_cast<size_t>(device)]; }

cudaError_t set_access(int owner, const cudaMemAccessDesc& access) {
  if (access.location.type != cudaMemLocationTypeDevice || !is_device(access.location.id) ||
      access.location.id == owner) {
    return cudaErrorInvalidValue;
  }
  switch (access.flags) {
    case cudaMemAccessFlagsProtNone:
      of(pools_reached, access.location.id).fetch_and(~bit_of(owner));
      return cudaSuccess;
    case cudaMemAccessFlagsProtReadWrite:
      if (!is(PeerAccess::kAllowed)) return cudaErrorPeerAccessUnsupported;
      of(pools_reached, access.location.id).fetch_or(bit_of(owner));
      return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

}  // namespace

bool peers_reach_each_other() noexcept { return is(PeerAccess::kAllowed); }

}  // namespace simt

using simt::call;

void simt_set_peer_access(int which) { simt::peer_access.store(which); }
int64_t simt_peer_questions(void) { return simt::questions.load(); }
uint64_t simt_pools_reached(int device) {
  return simt::is_device(device) ? simt::of(simt::pools_reached, device).load() : 0;
}
uint64_t simt_peers_enabled(int device) {
  return simt::is_device(device) ? simt::of(simt::peers_enabled, device).load() : 0;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  simt::questions.fetch_add(1);
  return simt::ask([&]() -> cudaError_t {
    if (can == nullptr) return cudaErrorInvalidValue;
    if (!simt::is_device(device) || !simt::is_device(peer)) return cudaErrorInvalidDevice;
    *can = device != peer && !simt::is(simt::PeerAccess::kImpossible) ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return call([&]() -> cudaError_t {
    const int device = simt::current_device();
    if (flags != 0) return cudaErrorInvalidValue;
    if (!simt::is_device(peer) || peer == device) return cudaErrorInvalidDevice;
    if (!simt::is(simt::PeerAccess::kAllowed)) return cudaErrorPeerAccessUnsupported;
    const uint64_t before = simt::of(simt::peers_enabled, device).fetch_or(simt::bit_of(peer));
    return (before & simt::bit_of(peer)) != 0 ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess;
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return simt::ask([&]() -> cudaError_t {
    if (pool == nullptr) return cudaErrorInvalidValue;
    if (!simt::is_device(device)) return cudaErrorInvalidDevice;
    *pool = &simt::pools[static_cast<size_t>(device)];
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* accesses,
                                 size_t count) {
  return call([&]() -> cudaError_t {
    if (pool < simt::pools.data() || pool >= simt::pools.data() + simt::device_count() ||
        (accesses == nullptr && count != 0)) {
      return cudaErrorInvalidValue;
    }
    const int owner = static_cast<int>(pool - simt::pools.data());
    for (size_t i = 0; i < count; ++i) {
      if (const cudaError_t error = simt::set_access(owner, accesses[i]); error != cudaSuccess) {
        return error;
      }
    }
    return cudaSuccess;
  });
}
