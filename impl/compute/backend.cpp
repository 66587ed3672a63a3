#include "compute/backend.h"

#include <atomic>

namespace shardrec::compute {
namespace {

std::unique_ptr<Backend> cpu_backend(core::Threads& threads, bool /*peers_in_process*/) {
  return make_cpu_backend(cpu_kernels(), threads);
}

std::atomic<BackendFactory> chosen_factory{cpu_backend};

}  // namespace

void set_backend_factory(BackendFactory factory) noexcept { chosen_factory = factory; }

std::unique_ptr<Backend> make_backend(core::Threads& threads, bool peers_in_process) {
  return chosen_factory.load()(threads, peers_in_process);
}

}  // namespace shardrec::compute
