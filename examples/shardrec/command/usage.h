// What is said of a command line that cannot be used: one sentence, with the nearest name there is.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace shardrec::cli {

// Whether the subcommand asked for does not exist, which parsing itself does not see beside --help.
bool names_no_subcommand(const CLI::App& app);

// With a newline. `error` is what parsing has thrown.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

// The name that `word` is a misspelling of; empty: none is near.
std::string nearest_name(const std::string& word, const std::vector<std::string>& names);

// For --version: the library, its API, the engines that are installed, the devices, the processor.
std::string version_text();

}  // namespace shardrec::cli
