#include "compute/cuda/host/device_calls.h"

#include "compute/cuda/host/plugin.h"
#include "compute/cuda/host/sharing.h"

namespace shardrec::compute::cuda::host {

void write_device_calls(core::Exposition& out) {
  shardrec_cuda_calls counts{};
  if (const Table* const plugin = loaded_table()) plugin->count_calls(&counts);

  out.family("shardrec_device_calls_total", "counter",
             "Calls of the CUDA runtime that enqueue, record, wait, query or allocate.");
  out.sample("", counts.calls);
  out.family("shardrec_device_launches_total", "counter", "Calls of them that launch kernels.");
  out.sample("", counts.launches);
  out.family("shardrec_device_waits_total", "counter",
             "Calls of them that return when operations of a device are over.");
  out.sample("", counts.waits);
  out.family("shardrec_device_peer_bytes_total", "counter",
             "Bytes that were copied from devices of other processes of the machine.");
  out.sample("", bytes_from_processes());
}

}  // namespace shardrec::compute::cuda::host
