#include "train/load_rules.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "command/numbers.h"
#include "command/text_table.h"
#include "command/user_error.h"

namespace shardrec::cli {
namespace {

// "table a, layers top"; empty where there are none.
std::string names(const nlohmann::json& list) {
  std::string text;
  for (const nlohmann::json& one : list) {
    text += (text.empty() ? "" : ", ") + one.at("kind").get<std::string>() + " " +
            one.at("name").get<std::string>();
  }
  return text;
}

std::string dtype_text(const nlohmann::json& table) {
  const auto dtype = table.at("dtype").get<std::string>();
  const auto from = table.at("from_dtype").get<std::string>();
  return dtype == from ? dtype : from + " to " + dtype;
}

std::string table_text(const nlohmann::json& tables) {
  TextTable table({{"loaded", TextTable::Align::kLeft},
                   {"from", TextTable::Align::kLeft},
                   {"rows"},
                   {"new rows"},
                   {"left out"},
                   {"dtype", TextTable::Align::kLeft},
                   {"states", TextTable::Align::kLeft}});
  for (const nlohmann::json& one : tables) {
    table.add({one.at("name").get<std::string>(), one.at("from").get<std::string>(),
               with_separators(one.at("rows").get<int64_t>()),
               with_separators(one.at("new_rows").get<int64_t>()),
               with_separators(one.at("dropped_rows").get<int64_t>()), dtype_text(one),
               one.at("state").get<std::string>()});
  }
  return table.text();
}

}  // namespace

std::string load_rules(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (text.empty())
    throw UserError(path + " cannot be read, or is empty: rules of a load are expected.");
  return text;
}

std::string load_text(const std::string& report) {
  const nlohmann::json loaded = nlohmann::json::parse(report);
  std::string text = table_text(loaded.at("tables"));
  for (const nlohmann::json& one : loaded.at("layers")) {
    text += "layers " + one.at("name").get<std::string>() + " loaded\n";
  }
  const auto add = [&](const char* title, const char* list) {
    if (const std::string all = names(loaded.at(list)); !all.empty()) text += title + all + "\n";
  };
  add("not in the checkpoint, new: ", "missing");
  add("left as they are: ", "left_out");
  add("in the checkpoint only: ", "extra");
  return text;
}

}  // namespace shardrec::cli
