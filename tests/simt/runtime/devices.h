// The devices there are, what they are like and whether they are broken; what tests have set
// (simt/control.h).
//
// Thread rule: any thread.
#pragma once

#include <cstddef>

#include "block.h"
#include "simt/errors.h"

namespace simt {

inline constexpr int kMostDevices = 16;
inline constexpr int kCapabilityMajor = 9;
inline constexpr int kCapabilityMinor = 0;
inline constexpr int kMultiprocessors = 4;  // few, so that kernels that fill a device are quick
inline constexpr int kCacheBytes = 4 << 20;
inline constexpr int kMostSharedBytes = 227 << 10;
inline constexpr int kMostSharedBytesUnasked = 48 << 10;  // without cudaFuncSetAttribute()

int device_count() noexcept;  // negative: no driver
size_t memory_of_device() noexcept;
Schedule schedule() noexcept;

// Do processes open each other's memory (SHARDREC_SIMT_IPC)?
bool processes_share() noexcept;
// What simt_set_peer_access() says: do devices reach each other's memory where it is asked for?
bool peers_reach_each_other() noexcept;

// Counts an allocation: whether it is the one that shall fail.
bool next_allocation_fails() noexcept;
// Counts a kernel, copy or memset: the error that it shall fail with.
cudaError_t next_operation_error() noexcept;

cudaError_t error_of_device(int device) noexcept;
void break_device(int device, cudaError_t error) noexcept;

}  // namespace simt
