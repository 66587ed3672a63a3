#include "compute/probe/profile_cache.h"

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>

#include "compute/probe/machine.h"
#include "compute/profile/prefetch.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"

namespace shardrec::compute {
namespace {

constexpr int64_t kMostFileBytes = 1 << 20;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

const MemoryProfile& load() noexcept {
  try {
    auto found = load_profile(core::default_environment(), profile_directory(), this_machine());
    if (!found) return profile_in_use();
    return *std::make_unique<MemoryProfile>(std::move(*found)).release();
  } catch (const std::exception&) {
    // Of memory that has run out; a message would need some.
    return profile_in_use();
  }
}

}  // namespace

std::string profile_directory() {
  if (std::string own = variable("SHARDREC_CACHE_DIR"); !own.empty()) return own;
  const std::string base = variable("XDG_CACHE_HOME");
  if (base.starts_with('/')) return core::join_path(base, "shardrec");
  const std::string home = variable("HOME");
  return home.empty() ? "" : core::join_path(home, ".cache/shardrec");
}

std::string profile_file_name(const Machine& machine) {
  const std::string key =
      core::sentence(machine.cpu, "\n", machine.processors, "\n", machine.l1_bytes, "\n",
                     machine.l2_bytes, "\n", machine.l3_bytes, "\n", machine.instruction_set);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name = "memory-";
  uint64_t hash = core::hash64(0, key);
  for (int i = 0; i < 16; ++i, hash <<= 4) name += kDigits[hash >> 60];
  return name + ".json";
}

void store_profile(core::Environment& environment, const std::string& directory,
                   const MemoryProfile& profile) {
  environment.make_directories(directory);
  const std::string name = profile_file_name(profile.machine);
  const std::string text = profile_to_json(profile) + "\n";
  core::write_file_atomically(environment, directory, name, std::as_bytes(std::span(text)));
}

void keep_profile(core::Environment& environment, const MemoryProfile& profile) {
  const std::string directory = profile_directory();
  const auto warn = [](const std::string& why) {
    core::log(SHARDREC_LOG_WARNING, -1, "the memory profile is not stored: " + why);
  };
  if (!profile.quiet) {
    warn("other work disturbed the measurement; probe again when the machine is idle");
  } else if (directory.empty()) {
    warn("none of SHARDREC_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
  } else {
    try {
      store_profile(environment, directory, profile);
    } catch (const core::Error& error) {
      warn(error.sentence());
    }
  }
}

std::optional<MemoryProfile> load_profile(core::Environment& environment,
                                          const std::string& directory, const Machine& machine) {
  if (directory.empty()) return std::nullopt;
  const std::string path = core::join_path(directory, profile_file_name(machine));
  try {
    MemoryProfile profile =
        profile_from_json(core::read_text_file(environment, path, kMostFileBytes), path);
    if (profile.machine == machine) return profile;
    core::log(SHARDREC_LOG_WARNING, -1,
              core::sentence("the memory profile ", path,
                             " is of another machine and not used; `shardrec probe` makes one"));
  } catch (const core::Error& error) {
    if (error.status() == SHARDREC_NOT_FOUND) return std::nullopt;
    core::log(SHARDREC_LOG_WARNING, -1,
              core::sentence("the memory profile ", path, " is not used: ", error.sentence(),
                             "; `shardrec probe` makes a new one"));
  }
  return std::nullopt;
}

MemoryProfile require_profile(core::Environment& environment) {
  const std::string directory = profile_directory();
  auto profile = load_profile(environment, directory, this_machine());
  if (!profile) {
    core::fail(SHARDREC_NOT_FOUND,
               directory.empty()
                   ? "there is no memory profile: none of SHARDREC_CACHE_DIR, XDG_CACHE_HOME and "
                     "HOME is set"
                   : core::sentence("there is no memory profile of this machine in ", directory,
                                    "; shardrec_probe_json makes one"),
               {.path = directory});
  }
  return *std::move(profile);
}

const MemoryProfile& memory_profile() noexcept {
  static const MemoryProfile& profile = []() -> const MemoryProfile& {
    const MemoryProfile& loaded = load();
    use_profile(loaded);
    return loaded;
  }();
  return profile;
}

}  // namespace shardrec::compute
