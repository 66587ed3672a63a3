// The machine that this process runs on, its time and its memory, for reports.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace shardrec::cli {

// An object with the fields of "machine" in JSON.md.
nlohmann::json machine_json();

// Processors that the calling thread may run on, at most the cgroup quota: as many as the library counts. The library
// looks for CUDA devices when it is asked.
int usable_processors();

// The present moment as "2026-01-31T12:34:56Z".
std::string utc_now();

// The most memory that this process has had so far, in bytes.
double peak_memory_bytes();

}  // namespace shardrec::cli
