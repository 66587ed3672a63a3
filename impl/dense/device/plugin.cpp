#include "dense/device/plugin.h"

#include <atomic>
#include <mutex>

#include "core/error.h"
#include "core/plugin.h"

namespace shardrec::dense::device {
namespace {

constexpr const char* kInstall =
    "install it (libcublas of NVIDIA's CUDA packages, or nvidia-cublas of Python's), or set "
    "SHARDREC_CUBLASLT_LIBRARY to its file";

shardrec_cublas_table load() {
  const core::Plugin plugin{.file = core::sentence("libshardrec_cublas.so.", SHARDREC_CUBLAS_ABI),
                            .what = "cuBLASLt plug-in",
                            .function = "shardrec_cublas_plugin",
                            .needed = "matrix products on devices need",
                            .package = "libshardrec-cublas"};
  const core::LoadedPlugin loaded = core::load_plugin(plugin);
  const auto fill = reinterpret_cast<shardrec_cublas_plugin_function>(loaded.function);
  shardrec_cublas_table table{};
  table.size = sizeof table;
  table.abi = SHARDREC_CUBLAS_ABI;
  switch (fill(&table)) {
    case SHARDREC_CUBLAS_FILLED:
      return table;
    case SHARDREC_CUBLAS_MISSING:
    case SHARDREC_CUBLAS_TOO_OLD:
      core::refuse_plugin(plugin, loaded,
                          core::sentence("needs NVIDIA's cuBLASLt, 12.0 or newer, and ",
                                         table.reason, ": ", kInstall));
    default:
      core::refuse_plugin_abi(plugin, loaded, {.abi = table.abi, .bytes = table.size},
                              {.abi = SHARDREC_CUBLAS_ABI, .bytes = sizeof table});
  }
}

// Leaked: other threads may compute while the process ends.
std::mutex load_mutex;
std::atomic<const shardrec_cublas_table*> loaded{nullptr};

}  // namespace

const shardrec_cublas_table& table() {
  if (const auto* known = loaded.load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(load_mutex);
  if (const auto* known = loaded.load(std::memory_order_relaxed)) return *known;
  static shardrec_cublas_table storage;
  storage = load();
  loaded.store(&storage, std::memory_order_release);
  return storage;
}

}  // namespace shardrec::dense::device
