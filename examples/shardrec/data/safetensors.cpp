// How a safetensors file is read and checked.
#include "data/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "command/user_error.h"

namespace shardrec::cli {
namespace {

static_assert(std::endian::native == std::endian::little,
              "sizes and arrays are copied as they lie in the file");

size_t element_size(const std::string& dtype) {
  if (dtype == "F64" || dtype == "I64") return 8;
  if (dtype == "F32" || dtype == "I32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16") return 2;
  return dtype == "I8" || dtype == "U8" || dtype == "BOOL" ? 1 : 0;
}

// False where the file ends early.
bool read(std::ifstream& file, void* to, size_t bytes) {
  file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  return static_cast<size_t>(file.gcount()) == bytes;
}

}  // namespace

Safetensors::Safetensors(const std::string& path) : path_(path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) throw UserError("Cannot read " + path + ".");
  uint64_t header_size = 0;
  if (size < sizeof header_size || !read(file, &header_size, sizeof header_size) ||
      header_size > size - sizeof header_size) {
    throw UserError(path + " is not a safetensors file: its header is longer than the file.");
  }
  std::string header(header_size, '\0');
  data_.resize(size - sizeof header_size - header_size);
  if (!read(file, header.data(), header.size()) || !read(file, data_.data(), data_.size())) {
    throw UserError("Cannot read " + path + ".");
  }
  try {
    read_header(header);
  } catch (const nlohmann::json::exception& problem) {
    throw UserError(path + ": bad header: " + problem.what());
  }
  check_layout();
}

void Safetensors::read_header(const std::string& text) {
  const nlohmann::json header = nlohmann::json::parse(text);
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    Entry entry;
    entry.dtype = value.at("dtype").get<std::string>();
    const auto offsets = value.at("data_offsets").get<std::vector<int64_t>>();
    const size_t size = element_size(entry.dtype);
    if (size == 0)
      throw UserError(path_ + ": " + name + " has the unknown dtype " + entry.dtype + ".");
    entry.elements = 1;
    for (const int64_t dimension : value.at("shape").get<std::vector<int64_t>>()) {
      const auto limit = static_cast<int64_t>(data_.size());
      if (dimension < 0 || (dimension > 0 && entry.elements > limit / dimension)) {
        throw UserError(path_ + ": " + name + " has a shape that does not fit the file.");
      }
      entry.elements *= dimension;
    }
    if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] ||
        static_cast<size_t>(offsets[1]) > data_.size() ||
        static_cast<size_t>(offsets[1] - offsets[0]) !=
            static_cast<size_t>(entry.elements) * size) {
      throw UserError(path_ + ": " + name +
                      " lies outside the file or is not as long as its shape says.");
    }
    entry.begin = static_cast<size_t>(offsets[0]);
    entry.end = static_cast<size_t>(offsets[1]);
    entries_.emplace(name, std::move(entry));
  }
}

void Safetensors::check_layout() const {
  std::vector<std::pair<size_t, size_t>> ranges;
  for (const auto& [name, entry] : entries_) ranges.emplace_back(entry.begin, entry.end);
  std::sort(ranges.begin(), ranges.end());
  size_t at = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != at)
      throw UserError(path_ + ": tensors overlap or leave a hole at byte " + std::to_string(at) +
                      ".");
    at = end;
  }
  if (at != data_.size()) throw UserError(path_ + ": data behind the last tensor.");
}

template <typename T>
std::vector<T> Safetensors::copy(const std::string& name, const char* dtype,
                                 int64_t elements) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw UserError(path_ + " has no array " + name + ".");
  const Entry& entry = found->second;
  if (entry.dtype != dtype || entry.elements != elements) {
    throw UserError(path_ + ": " + name + " has " + std::to_string(entry.elements) +
                    " elements of " + entry.dtype + ", not " + std::to_string(elements) + " of " +
                    dtype + ".");
  }
  std::vector<T> values(static_cast<size_t>(elements));
  if (!values.empty())
    std::memcpy(values.data(), data_.data() + entry.begin, entry.end - entry.begin);
  return values;
}

std::vector<float> Safetensors::floats(const std::string& name, int64_t elements) const {
  return copy<float>(name, "F32", elements);
}

std::vector<int64_t> Safetensors::integers(const std::string& name, int64_t elements) const {
  return copy<int64_t>(name, "I64", elements);
}

}  // namespace shardrec::cli
