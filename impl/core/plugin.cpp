#include "core/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "core/error.h"

namespace shardrec::core {
namespace {

namespace fs = std::filesystem;

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
    result = {own / "shardrec", own, (own / ".." / "lib" / "shardrec").lexically_normal()};
  return result;
}

LoadedPlugin open(const Plugin& plugin, const fs::path& path) {
  LoadedPlugin loaded{.path = path};
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    refuse_plugin(plugin, loaded,
                  sentence("cannot be loaded: ", reason != nullptr ? reason : "no reason given"));
  }
  loaded.function = dlsym(library, plugin.function.c_str());
  if (loaded.function == nullptr) {
    fail(SHARDREC_UNSUPPORTED,
         sentence(path.string(), " is not a ", plugin.what, ": it has no function ",
                  plugin.function),
         {.path = path.string()});
  }
  return loaded;
}

}  // namespace

LoadedPlugin load_plugin(const Plugin& plugin) {
  std::string looked;
  for (const fs::path& folder : folders()) {
    const fs::path path = folder / plugin.file;
    std::error_code error;
    if (fs::exists(path, error)) return open(plugin, path);
    looked += (looked.empty() ? "" : ", ") + path.string();
  }
  fail(SHARDREC_UNSUPPORTED,
       sentence(plugin.needed, " the ", plugin.what, " ", plugin.file, ", which is not installed (",
                looked.empty() ? "no folder to look in" : "looked for " + looked, "): install ",
                plugin.package, ", or set SHARDREC_PLUGIN_PATH to its folder"),
       {.path = plugin.file});
}

bool plugin_installed(const std::string& file) {
  for (const fs::path& folder : folders()) {
    std::error_code error;
    if (fs::exists(folder / file, error)) return true;
  }
  return false;
}

void refuse_plugin_abi(const Plugin& plugin, const LoadedPlugin& loaded, PluginAbi found,
                       PluginAbi needed) {
  fail(SHARDREC_UNSUPPORTED,
       sentence("the ", plugin.what, " ", loaded.path.string(), " has ABI ", found.abi, " (",
                found.bytes, " bytes), this library needs ABI ", needed.abi, " (", needed.bytes,
                " bytes): install both from one release"),
       {.value = found.abi, .path = loaded.path.string()});
}

void refuse_plugin(const Plugin& plugin, const LoadedPlugin& loaded, std::string_view reason) {
  fail(SHARDREC_UNSUPPORTED, sentence("the ", plugin.what, " ", loaded.path.string(), " ", reason),
       {.path = loaded.path.string()});
}

}  // namespace shardrec::core
