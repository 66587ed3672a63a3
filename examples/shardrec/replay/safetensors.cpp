#include "replay/safetensors.h"

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
              "arrays are copied as they lie in the file");

size_t element_size(const std::string& dtype) {
  static const std::map<std::string, size_t> kSizes{{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2},
                                                    {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1},
                                                    {"U8", 1},  {"BOOL", 1}};
  const auto found = kSizes.find(dtype);
  return found == kSizes.end() ? 0 : found->second;
}

}  // namespace

Safetensors::Safetensors(const std::string& path) : path_(path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) throw UserError("Cannot read " + path + ".");
  std::array<unsigned char, 8> prefix{};
  for (unsigned char& byte : prefix) byte = static_cast<unsigned char>(file.get());
  uint64_t header_size = 0;
  for (size_t i = 0; i < 8; ++i) header_size |= uint64_t{prefix[i]} << (8 * i);
  if (!file || header_size > size - 8) {
    throw UserError(path + " is not a safetensors file: its header is longer than the file.");
  }
  std::string header(header_size, '\0');
  file.read(header.data(), static_cast<std::streamsize>(header_size));
  const std::string rest((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  data_.resize(rest.size());
  if (!rest.empty()) std::memcpy(data_.data(), rest.data(), rest.size());
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
    entry.shape = value.at("shape").get<std::vector<int64_t>>();
    const auto offsets = value.at("data_offsets").get<std::vector<int64_t>>();
    const size_t size = element_size(entry.dtype);
    if (size == 0)
      throw UserError(path_ + ": " + name + " has the unknown dtype " + entry.dtype + ".");
    entry.elements = 1;
    for (const int64_t dimension : entry.shape) {
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

const Safetensors::Entry& Safetensors::find(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw UserError(path_ + " has no array " + name + ".");
  return found->second;
}

int64_t Safetensors::elements(const std::string& name) const { return find(name).elements; }

template <typename T>
std::vector<T> Safetensors::copy(const std::string& name, const char* dtype,
                                 int64_t elements) const {
  const Entry& entry = find(name);
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
