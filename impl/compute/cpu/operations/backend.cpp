#include "compute/backend.h"

#include "compute/cpu/operations/bag_outputs.h"
#include "compute/cpu/operations/bag_sums.h"
#include "compute/cpu/operations/context.h"

namespace shardrec::compute {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(const Kernels& kernels, core::Threads& threads, core::Scratch& work)
      : context_{kernels, threads, work} {}

  void sum_bags(std::span<const BagSums> blocks) override { bag_sums_.run(blocks, context_); }
  void look_up_outputs(std::span<const BagOutputs> blocks, size_t output_bytes) override {
    bag_outputs_.run(blocks, output_bytes, context_);
  }

 private:
  cpu::Context context_;
  cpu::BagSummation bag_sums_;
  cpu::OutputLookup bag_outputs_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const Kernels& kernels, core::Threads& threads,
                                          core::Scratch& work) {
  return std::make_unique<CpuBackend>(kernels, threads, work);
}

}  // namespace shardrec::compute
