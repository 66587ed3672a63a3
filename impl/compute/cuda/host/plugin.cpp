#include "compute/cuda/host/plugin.h"

#include <atomic>
#include <mutex>

#include "compute/cuda/host/library_calls.h"
#include "core/error.h"
#include "core/plugin.h"

namespace shardrec::compute::cuda::host {
namespace {

Table load() {
  const core::Plugin plugin{.file = core::sentence("libshardrec_cuda.so.", SHARDREC_CUDA_ABI),
                            .what = "CUDA plug-in",
                            .function = "shardrec_cuda_plugin",
                            .needed = "CUDA devices need",
                            .package = "libshardrec's CUDA plug-in (built with a CUDA Toolkit)"};
  const core::LoadedPlugin loaded = core::load_plugin(plugin);
  const auto fill = reinterpret_cast<shardrec_cuda_plugin_function>(loaded.function);
  Table table{};
  table.size = sizeof table;
  table.abi = SHARDREC_CUDA_ABI;
  if (fill(&table) == SHARDREC_CUDA_FILLED) return table;
  core::refuse_plugin_abi(plugin, loaded, {.abi = table.abi, .bytes = table.size},
                          {.abi = SHARDREC_CUDA_ABI, .bytes = sizeof(Table)});
}

// Leaked: other threads may compute while the process ends.
std::mutex load_mutex;
std::atomic<const Table*> loaded{nullptr};

}  // namespace

const Table* loaded_table() noexcept { return loaded.load(std::memory_order_acquire); }

const Table& table() {
  if (const Table* known = loaded_table()) return *known;
  const std::lock_guard lock(load_mutex);
  if (const Table* known = loaded.load(std::memory_order_relaxed)) return *known;
  static Table storage;
  storage = load();
  loaded.store(&storage, std::memory_order_release);
  return storage;
}

void refuse(shardrec_cuda_error error, std::string_view what) {
  if (error == SHARDREC_CUDA_LIBRARY_FAILED) tell_library_failure(what);
  core::fail(error == SHARDREC_CUDA_OUT_OF_MEMORY ? SHARDREC_OUT_OF_MEMORY : SHARDREC_DEVICE_ERROR,
             core::sentence("CUDA could not ", what, ": ", table().error_text(error), " (",
                            table().error_name(error), ")"),
             {.value = error});
}

}  // namespace shardrec::compute::cuda::host
