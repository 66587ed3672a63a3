// Finding and loading plug-ins: shared libraries whose border is a C table filled by one function.
//
// A plug-in is looked for in the folders of SHARDREC_PLUGIN_PATH (separated by colons) when that is
// set, else in `shardrec/` beside the file that holds this code, in that file's own folder (where all
// libraries lie together, as in a jar's), and in `../lib/shardrec/` from there (a program that holds
// this code itself). Once loaded it stays: code of it may be running in
// any thread until the process ends. Everything thrown is UNSUPPORTED. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace shardrec::core {

// A plug-in: what to look for, and the words of the sentence that says it is missing.
struct Plugin {
  std::string file;      // "libshardrec_openblas.so.1"
  std::string what;      // "GEMM plug-in"
  std::string function;  // the one it exports
  std::string needed;    // "layers need"
  std::string package;   // "libshardrec's OpenBLAS plug-in (built with libopenblas-serial-dev)"
};

struct LoadedPlugin {
  std::filesystem::path path;
  void* function = nullptr;
};

LoadedPlugin load_plugin(const Plugin& plugin);
// Whether there is such a file where load_plugin looks. Loads nothing.
bool plugin_installed(const std::string& file);

// The version of a border, as a plug-in and the core were built with it. They must be equal.
struct PluginAbi {
  uint32_t abi = 0;
  uint64_t bytes = 0;  // of the table
};
[[noreturn]] void refuse_plugin_abi(const Plugin& plugin, const LoadedPlugin& loaded,
                                    PluginAbi found, PluginAbi needed);
// Throws "the GEMM plug-in /usr/lib/... " followed by the reason.
[[noreturn]] void refuse_plugin(const Plugin& plugin, const LoadedPlugin& loaded,
                                std::string_view reason);

}  // namespace shardrec::core
