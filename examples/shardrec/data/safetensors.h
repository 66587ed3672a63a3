// The arrays of recorded cases: a safetensors file, read whole into memory and checked.
//
// The library reads such files only as parts of its checkpoints, whose manifest says more of them
// than the file itself; a recording has none, hence this reader. The format is 8 bytes of header
// length (lowest first), a JSON header, the data. Nothing is trusted: sizes fit the file before memory
// is taken for them, tensors lie side by side without holes, each is as long as its shape says.
//
// Thread rule: any number of readers at once.
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
  // Copies of an array. UserError when there is none, its dtype is another one or its number of
  // elements is not `elements`.
  [[nodiscard]] std::vector<float> floats(const std::string& name, int64_t elements) const;
  [[nodiscard]] std::vector<int64_t> integers(const std::string& name, int64_t elements) const;

 private:
  struct Entry {
    std::string dtype;
    int64_t elements = 0;
    size_t begin = 0;  // of its bytes in the data
    size_t end = 0;
  };
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
