#include "dense/gemm.h"

#include <dlfcn.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/error.h"

namespace shardrec::dense {
namespace {

namespace fs = std::filesystem;

std::string file_name() { return core::sentence("libshardrec_openblas.so.", SHARDREC_GEMM_ABI); }

// The folder of the file that this code was loaded from: libshardrec, or a program.
fs::path own_folder() {
  static const char anchor = 0;
  Dl_info info{};
  fs::path file;
  if (dladdr(&anchor, &info) != 0 && info.dli_fname != nullptr) file = info.dli_fname;
  std::error_code error;
  // A program is known by how it was called, which need not be a path.
  if (!file.has_parent_path() || !fs::exists(file, error)) file = "/proc/self/exe";
  const fs::path real = fs::canonical(file, error);
  return error ? fs::path() : real.parent_path();
}

std::vector<fs::path> folders() {
  std::vector<fs::path> result;
  const char* configured = secure_getenv("SHARDREC_PLUGIN_PATH");
  if (configured != nullptr && *configured != '\0') {
    std::string_view rest = configured;
    while (!rest.empty()) {
      const size_t colon = std::min(rest.find(':'), rest.size());
      if (colon != 0) result.emplace_back(rest.substr(0, colon));
      rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
    return result;
  }
  const fs::path own = own_folder();
  if (!own.empty())
    result = {own / "shardrec", (own / ".." / "lib" / "shardrec").lexically_normal()};
  return result;
}

Gemm table_of(const fs::path& file) {
  // Never closed: kernels of it may be running in any thread until the process ends.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    core::fail(SHARDREC_UNSUPPORTED,
               core::sentence("the GEMM plug-in ", file.string(), " cannot be loaded: ",
                              reason != nullptr ? reason : "no reason given"),
               {.path = file.string()});
  }
  void* symbol = dlsym(library, "shardrec_gemm_plugin");
  if (symbol == nullptr) {
    core::fail(SHARDREC_UNSUPPORTED,
               core::sentence(file.string(),
                              " is not a GEMM plug-in: it has no function shardrec_gemm_plugin"),
               {.path = file.string()});
  }
  const auto fill = std::bit_cast<shardrec_gemm_plugin_function>(symbol);
  Gemm table{};
  table.size = sizeof table;
  table.abi = SHARDREC_GEMM_ABI;
  switch (fill(&table)) {
    case SHARDREC_GEMM_OK:
      return table;
    case SHARDREC_GEMM_ABI_MISMATCH:
      core::fail(SHARDREC_UNSUPPORTED,
                 core::sentence("the GEMM plug-in ", file.string(), " has ABI ", table.abi, " (",
                                table.size, " bytes), this library needs ABI ", SHARDREC_GEMM_ABI,
                                " (", sizeof(Gemm), " bytes): install both from one release"),
                 {.value = table.abi, .path = file.string()});
    default:
      core::fail(SHARDREC_UNSUPPORTED,
                 core::sentence("the GEMM plug-in ", file.string(),
                                " was built with a threaded OpenBLAS; build it with "
                                "libopenblas-serial-dev"),
                 {.path = file.string()});
  }
}

Gemm load() {
  std::string looked;
  for (const fs::path& folder : folders()) {
    const fs::path file = folder / file_name();
    std::error_code error;
    if (fs::exists(file, error)) return table_of(file);
    looked += (looked.empty() ? "" : ", ") + file.string();
  }
  core::fail(
      SHARDREC_UNSUPPORTED,
      core::sentence("layers need the GEMM plug-in ", file_name(), ", which is not installed (",
                     looked.empty() ? "no folder to look in" : "looked for " + looked,
                     "): install libshardrec's OpenBLAS plug-in (built with "
                     "libopenblas-serial-dev), or set SHARDREC_PLUGIN_PATH to its folder"),
      {.path = file_name()});
}

// Leaked: other threads may compute while the process ends.
std::mutex load_mutex;
std::atomic<const Gemm*> loaded{nullptr};

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

bool gemm_available() noexcept {
  try {
    gemm();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace shardrec::dense
