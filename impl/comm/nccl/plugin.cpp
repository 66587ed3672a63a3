#include "comm/nccl/plugin.h"

#include <atomic>
#include <mutex>

#include "core/error.h"
#include "core/plugin.h"

namespace shardrec::comm::nccl {
namespace {

constexpr const char* kInstall =
    "install it (libnccl2 of NVIDIA's packages, or nvidia-nccl-cu13 of Python's), or set "
    "SHARDREC_NCCL_LIBRARY to its file";

shardrec_nccl_table load() {
  const core::Plugin plugin{.file = core::sentence("libshardrec_nccl.so.", SHARDREC_NCCL_ABI),
                            .what = "NCCL plug-in",
                            .function = "shardrec_nccl_plugin",
                            .needed = "collectives over NCCL need",
                            .package = "libshardrec-nccl"};
  const core::LoadedPlugin loaded = core::load_plugin(plugin);
  const auto fill = reinterpret_cast<shardrec_nccl_plugin_function>(loaded.function);
  shardrec_nccl_table table{};
  table.size = sizeof table;
  table.abi = SHARDREC_NCCL_ABI;
  switch (fill(&table)) {
    case SHARDREC_NCCL_FILLED:
      return table;
    case SHARDREC_NCCL_MISSING:
    case SHARDREC_NCCL_TOO_OLD:
      core::refuse_plugin(
          plugin, loaded,
          core::sentence("needs NVIDIA's NCCL, 2.19 or newer, and ", table.reason, ": ", kInstall));
    default:
      core::refuse_plugin_abi(plugin, loaded, {.abi = table.abi, .bytes = table.size},
                              {.abi = SHARDREC_NCCL_ABI, .bytes = sizeof table});
  }
}

// Leaked: other threads may communicate while the process ends.
std::mutex load_mutex;
std::atomic<const shardrec_nccl_table*> loaded{nullptr};

}  // namespace

const shardrec_nccl_table& table() {
  if (const auto* known = loaded.load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(load_mutex);
  if (const auto* known = loaded.load(std::memory_order_relaxed)) return *known;
  static shardrec_nccl_table storage;
  storage = load();
  loaded.store(&storage, std::memory_order_release);
  return storage;
}

bool is_available() noexcept {
  try {
    (void)table();
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace shardrec::comm::nccl
