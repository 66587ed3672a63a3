// Numbers of a JSON document as elements of a page, each with the place where it stands in the document and its
// exact value:
//
//   <data data-json="/steps" value="1234">1,234</data>
//
// A test, or whoever reads the page by a program, finds there what the document holds.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace shardrec::cli {

enum class Unit {
  kCount,
  kNumber,
  kQuality,
  kSeconds,
  kMilliseconds,
  kBytes,
  kBandwidth,
  kPercent,
  kText
};

// "1,234", "0.1235", "0.74321", "1.25 s", "0.42 ms", "1.2 MiB", "81 %"; "–" for null.
std::string shown(const nlohmann::json& value, Unit unit);
// The same of a number that no document holds, such as a sum of those that it does.
std::string shown(double value, Unit unit);

// The same with four digits that count, however small the number: for what a pointer shows.
std::string shown_precisely(double value, Unit unit);

class Figures {
 public:
  explicit Figures(const nlohmann::json& document) : document_(document) {}

  [[nodiscard]] const nlohmann::json& document() const { return document_; }
  // pointer: a JSON pointer to a value that is there.
  [[nodiscard]] const nlohmann::json& at(const std::string& pointer) const {
    return document_.at(nlohmann::json::json_pointer(pointer));
  }
  [[nodiscard]] std::string element(const std::string& pointer, Unit unit) const;

 private:
  const nlohmann::json& document_;
};

}  // namespace shardrec::cli
