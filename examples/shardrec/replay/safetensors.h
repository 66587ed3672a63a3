// A safetensors file, read whole and checked: 8 bytes of header length (lowest first), a JSON
// header, the data. Nothing is trusted: sizes fit the file, tensors lie side by side without holes,
// each is as long as its shape says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardrec::cli {

class Safetensors {
 public:
  explicit Safetensors(const std::string& path);  // UserError

  [[nodiscard]] bool has(const std::string& name) const { return entries_.contains(name); }
  // UserError when there is none, its dtype is another one or its number of elements is not
  // `elements`.
  [[nodiscard]] std::vector<float> floats(const std::string& name, int64_t elements) const;
  [[nodiscard]] std::vector<int64_t> integers(const std::string& name, int64_t elements) const;
  [[nodiscard]] int64_t elements(const std::string& name) const;

 private:
  struct Entry {
    std::string dtype;
    std::vector<int64_t> shape;
    int64_t elements = 0;
    size_t begin = 0;
    size_t end = 0;
  };
  [[nodiscard]] const Entry& find(const std::string& name) const;
  template <typename T>
  [[nodiscard]] std::vector<T> copy(const std::string& name, const char* dtype,
                                    int64_t elements) const;
  void read_header(const std::string& text);
  void check_layout() const;

  std::string path_;
  std::map<std::string, Entry> entries_;
  std::vector<std::byte> data_;
};

}  // namespace shardrec::cli
