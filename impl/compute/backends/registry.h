// Back ends by their names: "cpu", "cuda", and those that a program adds.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "compute/backend.h"
#include "compute/booked_memory.h"
#include "core/threads.h"

namespace shardrec::compute {

struct BackendOptions {
  core::Threads& threads;  // of the host; they outlive the back end
  // Number among the devices that the name stands for; of those that the host's memory is, it is not read.
  int32_t device = -1;
  // All ranks of the collection live in this process: their back ends may read each other's memory.
  bool peers_in_process = false;
  // Bytes of what its operations, and those who use its memory, have allocated, but for tables; null: nobody counts.
  BookedBytes booked = nullptr;
};

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
