// How a misspelt command line is answered: edit distance to every name there is.
#include "command/usage.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <shardrec/shardrec.hpp>

#include "command/numbers.h"

namespace shardrec::cli {
namespace {

// The subcommand of a subcommand, as far as the command line names them.
const CLI::App& chosen(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

std::vector<std::string> subcommands_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand : command.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(subcommand->get_name());
  }
  return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return (parent == nullptr ? "" : full_name(*parent) + " ") + command.get_name();
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// Insertions, deletions, replacements and swaps of neighbours that make one of the other.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      size_t& here = table[i][j];
      if (i == 0 || j == 0) {
        here = i + j;
        continue;
      }
      const size_t replaced = table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      here = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        here = std::min(here, table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

std::string suggestion(const std::string& word, const std::vector<std::string>& names) {
  const std::string near = nearest_name(word, names);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

std::string about_word(const CLI::App& app, const CLI::App& command, const std::string& word) {
  if (word.starts_with("-") && word.size() > 1) {
    const std::string option = word.substr(0, word.find('='));
    const std::vector<std::string> options = options_of(command);
    if (&command != &app && std::find(options.begin(), options.end(), option) != options.end()) {
      return "the option " + option + " goes behind the subcommand.";
    }
    const std::string near = suggestion(option, options);
    return "there is no option " + option + (near.empty() ? "." : near);
  }
  const std::vector<std::string> subcommands = subcommands_of(command);
  if (subcommands.empty()) return "the argument '" + word + "' was not expected.";
  const std::string near = suggestion(word, subcommands);
  return "there is no subcommand '" + word + "'" +
         (near.empty() ? "; there are " + joined(subcommands) + "." : near);
}

std::string about(const CLI::App& app, const CLI::App& command, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining(true);
  if (!unknown.empty()) return about_word(app, command, unknown.front());
  const std::vector<std::string> subcommands = subcommands_of(command);
  if (!subcommands.empty()) return "a subcommand is needed: " + joined(subcommands) + ".";
  std::string text = error.what();
  text.erase(text.find_last_not_of(" \n.") + 1);
  return text + ".";
}

std::string listed(const nlohmann::json& names) {
  return joined(names.get<std::vector<std::string>>());
}

std::string listed_devices(const nlohmann::json& found) {
  constexpr double kGib = 1 << 30;
  std::string text = "cpu";
  for (const nlohmann::json& device : found.at("cuda_devices")) {
    text += ", cuda:" + device.at("index").dump() + " (" + device.at("name").get<std::string>() +
            ", " + fixed(device.at("memory_bytes").get<double>() / kGib, 1) + " GiB)";
  }
  return text;
}

}  // namespace

bool names_no_subcommand(const CLI::App& app) {
  const CLI::App& command = chosen(app);
  const std::vector<std::string> unknown = app.remaining(true);
  return !unknown.empty() && !unknown.front().starts_with("-") && !subcommands_of(command).empty();
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = chosen(app);
  const std::string name = full_name(command);
  return name + ": " + about(app, command, error) + " `" + name + " --help` lists what there is.\n";
}

std::string nearest_name(const std::string& word, const std::vector<std::string>& names) {
  const auto bare = [](const std::string& name) {
    const size_t start = name.find_first_not_of('-');
    return start == std::string::npos ? std::string() : name.substr(start);
  };
  const std::string wanted = bare(word);
  size_t least = std::max<size_t>(wanted.size() / 3, 2) + 1;
  std::string nearest;
  for (const std::string& name : names) {
    const size_t far = distance(wanted, bare(name));
    if (far < least && far < bare(name).size()) {
      least = far;
      nearest = name;
    }
  }
  return nearest;
}

std::string version_text() {
  const nlohmann::json found = nlohmann::json::parse(capabilities_json());
  const nlohmann::json& dense = found.at("dense");
  return "shardrec " + found.at("library_version").get<std::string>() + ", API version " +
         std::to_string(found.at("api_version").get<int>()) +
         "\nengines: " + listed(found.at("engines")) + "\ndevices: " + listed_devices(found) +
         "\nkernels: " + found.at("cpu_target").get<std::string>() + " (of " +
         listed(found.at("cpu_targets")) + ")\nlayers: " +
         (dense.is_null() ? "none (the GEMM plug-in is not installed)" : dense.get<std::string>());
}

}  // namespace shardrec::cli
