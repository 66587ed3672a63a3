#include "compute/backends/registry.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>

#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/cuda/backend.h"
#include "core/error.h"

namespace shardrec::compute {
namespace {

constexpr size_t kMostAdded = 8;

std::unique_ptr<Backend> make_cpu(const BackendOptions& options) {
  const std::shared_ptr<Memory> memory = book(cpu_memory(), options.booked);
  return make_cpu_backend(cpu_kernels(), options.threads, memory, memory);
}

// Entries stay as they are once they are there.
constinit std::array<NamedBackend, 2 + kMostAdded> known{
    {{.name = "cpu", .on_host = true, .make = make_cpu},
     {.name = "cuda", .on_host = false, .make = cuda::make_cuda_backend}}};
constinit std::atomic<size_t> count{2};
constinit std::atomic<const NamedBackend*> usual{known.data()};
constinit std::mutex adding;

std::span<const NamedBackend> all() {
  return {known.data(), count.load(std::memory_order_acquire)};
}

const NamedBackend* find(std::string_view name) {
  for (const NamedBackend& backend : all()) {
    if (backend.name == name) return &backend;
  }
  return nullptr;
}

}  // namespace

const NamedBackend& backend_named(std::string_view name) {
  if (const NamedBackend* const backend = find(name)) return *backend;
  std::string accepted;
  for (const NamedBackend& backend : all()) {
    core::append(accepted, core::sentence(accepted.empty() ? "" : ", ", backend.name));
  }
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence("there is no back end \"", name, "\"; there are ", accepted));
}

void add_backend(const NamedBackend& backend) {
  const std::lock_guard lock(adding);
  const size_t number = count.load(std::memory_order_relaxed);
  if (find(backend.name) != nullptr || number == known.size()) {
    core::fail(SHARDREC_INTERNAL,
               core::sentence("the back end \"", backend.name, "\" cannot be added: ",
                              number == known.size() ? "there are too many" : "its name is taken"));
  }
  known[number] = backend;
  count.store(number + 1, std::memory_order_release);
}

std::string_view default_backend() noexcept { return usual.load(std::memory_order_acquire)->name; }

void set_default_backend(std::string_view name) {
  usual.store(&backend_named(name), std::memory_order_release);
}

}  // namespace shardrec::compute
