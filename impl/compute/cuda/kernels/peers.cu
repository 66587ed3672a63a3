#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "compute/cuda/kernels/contexts.h"
#include "compute/cuda/kernels/peers.h"

namespace shardrec::compute::cuda {
namespace {

// By device, bit by bit the peers that were asked for.
std::array<std::atomic<uint64_t>, kMostDevices> asked_peers{};
static_assert(kMostDevices == 64);
std::mutex asking;

bool can_access(int device, int peer) {
  int can = 0;
  return cudaDeviceCanAccessPeer(&can, device, peer) == cudaSuccess && can != 0;
}

// To memory of cudaMallocAsync(): each device's pool says who reaches it.
void open_pool(int device, int peer) {
  cudaMemPool_t pool = nullptr;
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = device;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  if (cudaDeviceGetMemPool(&pool, peer) == cudaSuccess) cudaMemPoolSetAccess(pool, &access, 1);
}

}  // namespace

void allow_peer_access(int device, int peer) {
  if (device == peer || device < 0 || device >= kMostDevices || peer < 0 || peer >= kMostDevices) {
    return;
  }
  std::atomic<uint64_t>& peers = asked_peers[static_cast<size_t>(device)];
  const uint64_t bit = uint64_t{1} << peer;
  if ((peers.load(std::memory_order_acquire) & bit) != 0) return;
  const std::lock_guard lock(asking);
  if ((peers.load(std::memory_order_relaxed) & bit) != 0) return;
  if (can_access(device, peer)) {
    open_pool(device, peer);
    // To other memory; an error where the program has done so before.
    cudaDeviceEnablePeerAccess(peer, 0);
  }
  cudaGetLastError();  // what was refused here is no failure of the next call
  peers.fetch_or(bit, std::memory_order_release);
}

}  // namespace shardrec::compute::cuda
