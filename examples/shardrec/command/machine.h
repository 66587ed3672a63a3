// The machine that this process runs on, its time and its memory, for reports.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace shardrec::cli {

// An object with the fields of "machine" in JSON.md.
nlohmann::json machine_json();

// Processors' worth of time that this process may use, as the library counts them.
int usable_processors();

// The present moment as "2026-01-31T12:34:56Z".
std::string utc_now();

// The most memory that this process has had so far, in bytes.
double peak_memory_bytes();

}  // namespace shardrec::cli
