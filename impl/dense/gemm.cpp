#include "dense/gemm.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "core/plugin.h"

namespace shardrec::dense {
namespace {

Gemm load() {
  const core::Plugin plugin{
      .file = core::sentence("libshardrec_openblas.so.", SHARDREC_GEMM_ABI),
      .what = "GEMM plug-in",
      .function = "shardrec_gemm_plugin",
      .needed = "layers need",
      .package = "libshardrec's OpenBLAS plug-in (built with libopenblas-serial-dev)"};
  const core::LoadedPlugin loaded = core::load_plugin(plugin);
  const auto fill = reinterpret_cast<shardrec_gemm_plugin_function>(loaded.function);
  Gemm table{};
  table.size = sizeof table;
  table.abi = SHARDREC_GEMM_ABI;
  switch (fill(&table)) {
    case SHARDREC_GEMM_OK:
      return table;
    case SHARDREC_GEMM_ABI_MISMATCH:
      core::refuse_plugin_abi(plugin, loaded, {.abi = table.abi, .bytes = table.size},
                              {.abi = SHARDREC_GEMM_ABI, .bytes = sizeof(Gemm)});
    default:
      core::refuse_plugin(
          plugin, loaded,
          "was built with a threaded OpenBLAS; build it with libopenblas-serial-dev");
  }
}

// Leaked: other threads may compute while the process ends.
std::mutex load_mutex;
std::atomic<const Gemm*> loaded{nullptr};

std::mutex room_mutex;
int wanted = 0;  // by all users

}  // namespace

const Gemm& gemm() {
  if (const Gemm* table = loaded.load(std::memory_order_acquire)) return *table;
  const std::lock_guard lock(load_mutex);
  if (const Gemm* table = loaded.load(std::memory_order_relaxed)) return *table;
  static Gemm storage;
  storage = load();
  loaded.store(&storage, std::memory_order_release);
  return storage;
}

GemmRoom::GemmRoom(int at_once) : gemm_(dense::gemm()), at_once_(at_once) {
  const std::lock_guard lock(room_mutex);
  const int processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (gemm_.reserve(std::min(wanted + at_once, processors)) != SHARDREC_GEMM_OK) {
    core::fail(
        SHARDREC_OUT_OF_MEMORY,
        "layers need 128 MiB of addresses for OpenBLAS to multiply in, and there is no room");
  }
  wanted += at_once;
}

GemmRoom::~GemmRoom() {
  const std::lock_guard lock(room_mutex);
  wanted -= at_once_;
}

bool gemm_available() noexcept {
  try {
    gemm();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace shardrec::dense
