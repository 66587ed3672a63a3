// Prometheus' text format: families of samples, each family in one place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardrec::core {

class Exposition {
 public:
  // Begins a family; the samples that follow are its own.
  void family(std::string_view name, std::string_view type, std::string_view help);
  // labels: empty, or what label() makes, with commas between them.
  void sample(std::string_view labels, int64_t value);
  void sample(std::string_view labels, double value);
  const std::string& text() const noexcept { return text_; }

 private:
  void line(std::string_view labels, std::string_view value);

  std::string name_;
  std::string text_;
};

// name="value", escaped as the format wants it.
std::string label(std::string_view name, std::string_view value);

}  // namespace shardrec::core
