#include "compute/cpu/backend.h"

#include <utility>

#include "compute/cpu/assembly/family.h"
#include "compute/cpu/gradients/family.h"
#include "compute/cpu/lookup/family.h"
#include "compute/cpu/routing/family.h"
#include "compute/cpu/rows/family.h"
#include "compute/cpu/slots/family.h"
#include "compute/cpu/tasks/context.h"
#include "compute/cpu/transfer/family.h"

namespace shardrec::compute {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(const Kernels& kernels, core::Threads& threads, std::shared_ptr<Memory> memory,
             std::shared_ptr<Memory> host_memory)
      : Backend({transfer_, routing_, lookup_, assembly_, gradients_, rows_, slots_}),
        host_memory_(std::move(host_memory)),
        context_{kernels, threads, work_, std::move(memory)} {}

  const std::shared_ptr<Memory>& memory() override { return context_.memory; }
  const std::shared_ptr<Memory>& host_memory() override { return host_memory_; }
  core::DeviceSet caller_devices() const override { return core::kHostOnly; }
  bool reaches_host() const override { return true; }
  void wait() override {}

 private:
  std::shared_ptr<Memory> host_memory_;
  core::Scratch work_;
  cpu::Context context_;
  cpu::TransferFamily transfer_{context_};
  cpu::RoutingFamily routing_{context_};
  cpu::LookupFamily lookup_{context_};
  cpu::AssemblyFamily assembly_{context_};
  cpu::GradientFamily gradients_{context_};
  cpu::RowFamily rows_{context_};
  cpu::SlotFamily slots_{context_};
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const Kernels& kernels, core::Threads& threads,
                                          std::shared_ptr<Memory> memory,
                                          std::shared_ptr<Memory> host_memory) {
  return std::make_unique<CpuBackend>(kernels, threads, std::move(memory), std::move(host_memory));
}

}  // namespace shardrec::compute
