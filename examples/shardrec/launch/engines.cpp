#include "launch/engines.h"

#include "command/user_error.h"

namespace shardrec::cli {

const Engine& find_engine(std::string_view name) {
  for (const Engine& engine : kEngines) {
    if (engine.name == name) return engine;
  }
  throw UserError("There is no engine " + std::string(name) + ".");
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const Engine& engine : kEngines) names.emplace_back(engine.name);
  return names;
}

std::vector<std::string> process_engine_names() {
  std::vector<std::string> names;
  for (const Engine& engine : kEngines) {
    if (engine.in_processes) names.emplace_back(engine.name);
  }
  return names;
}

}  // namespace shardrec::cli
