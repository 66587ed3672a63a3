// Back ends by their names: "cpu", "cuda", and those that a program adds.
//
// Thread rule: any thread.
#pragma once

#include <memory>
#include <string_view>

#include "compute/backend.h"
#include "compute/backend_options.h"

namespace shardrec::compute {

struct NamedBackend {
  std::string_view name;  // of static storage
  bool on_host = false;   // tables are in the host's memory
  // Throws UNSUPPORTED (no plug-in), INVALID_ARGUMENT (no such device), OUT_OF_MEMORY, DEVICE_ERROR.
  std::unique_ptr<Backend> (*make)(const BackendOptions& options) = nullptr;
};

// Throws INVALID_ARGUMENT, naming those that there are.
const NamedBackend& backend_named(std::string_view name);

// Adds one, at most eight in a process. Throws INTERNAL: the name is taken, or there is no room.
void add_backend(const NamedBackend& backend);

// The name of the back end of collections whose options name no device: "cpu", until another one is set.
std::string_view default_backend() noexcept;
void set_default_backend(std::string_view name);  // throws as backend_named()

}  // namespace shardrec::compute
