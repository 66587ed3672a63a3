#include "compute/backend.h"

#include <atomic>

namespace shardrec::compute {
namespace {

std::unique_ptr<Backend> cpu_backend(const Kernels& kernels, core::Threads& threads,
                                     core::Scratch& work) {
  return make_cpu_backend(kernels, threads, work);
}

std::atomic<BackendFactory> chosen_factory{cpu_backend};

}  // namespace

void set_backend_factory(BackendFactory factory) noexcept { chosen_factory = factory; }

std::unique_ptr<Backend> make_backend(const Kernels& kernels, core::Threads& threads,
                                      core::Scratch& work) {
  return chosen_factory.load()(kernels, threads, work);
}

}  // namespace shardrec::compute
