#include "checkpoint/contents/mlp_file.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/contents/layers.h"
#include "checkpoint/format/safetensors.h"
#include "core/error.h"
#include "core/hash.h"

namespace shardrec::checkpoint {
namespace {

constexpr int64_t kHeaderBytesPerTensor = 1024;

TensorInfo info_of(const DenseTensor& tensor) {
  return {.name = tensor.name, .dtype = safetensors_dtype(tensor.dtype), .shape = tensor.shape};
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence(path, " is of another stack of layers or optimizer: ", what),
             {.path = path});
}

// Where the tensor stands; dtype and shape must be those of `wanted`.
const TensorInfo& find(const SafetensorsHeader& header, const TensorInfo& wanted,
                       const std::string& path) {
  const auto found = std::find_if(header.tensors.begin(), header.tensors.end(),
                                  [&](const TensorInfo& info) { return info.name == wanted.name; });
  if (found == header.tensors.end()) {
    refuse(path, core::sentence("it has no tensor \"", wanted.name, "\""));
  }
  if (found->dtype != wanted.dtype || found->shape != wanted.shape) {
    refuse(path, core::sentence("tensor \"", wanted.name, "\" has another dtype or shape"));
  }
  return *found;
}

// The checksum of a whole file, its own digits taken as zeros.
uint64_t checksum_of(std::string file, size_t digits) {
  std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(digits), kChecksumDigits, '0');
  return core::hash64(0, file);
}

// Files of earlier releases have no metadata, hence no checksum.
void check(const std::string& file, const SafetensorsHeader& header, const std::string& path) {
  if (!header.has_metadata) return;
  const std::string text = "\"" + std::string(kChecksumKey) + "\": \"";
  const std::string_view head(file.data(), static_cast<size_t>(header.data_start));
  const size_t at = head.find(text);
  const size_t digits = at + text.size();
  if (at == std::string_view::npos || head.size() - digits < kChecksumDigits ||
      head.substr(digits, kChecksumDigits) != core::to_hex(checksum_of(file, digits))) {
    core::fail(SHARDREC_CORRUPT_DATA,
               core::sentence(path, " is damaged: its checksum does not match"), {.path = path});
  }
}

}  // namespace

void save_mlp(const dense::Mlp& mlp, const std::string& path, core::Environment& environment) {
  std::vector<DenseTensor> tensors = layer_tensors(mlp);
  int64_t steps = mlp.parameters().steps();
  tensors.push_back({.name = "steps",
                     .dtype = SHARDREC_INT64,
                     .shape = {1},
                     .data = std::as_writable_bytes(std::span(&steps, 1)).data()});
  std::vector<TensorInfo> infos;
  for (const DenseTensor& tensor : tensors) infos.push_back(info_of(tensor));
  size_t digits = 0;
  std::string file = make_safetensors_header(infos, &digits);
  size_t at = file.size();
  file.resize(at + static_cast<size_t>(infos.back().end));
  for (const DenseTensor& tensor : tensors) {
    const auto bytes = static_cast<size_t>(tensor.bytes());
    if (bytes != 0) std::memcpy(file.data() + at, tensor.data, bytes);
    at += bytes;
  }
  file.replace(digits, kChecksumDigits, core::to_hex(checksum_of(file, digits)));

  const std::filesystem::path parts(path);
  const std::string directory = parts.has_parent_path() ? parts.parent_path().string() : ".";
  core::write_file_atomically(environment, directory, parts.filename().string(),
                              std::as_bytes(std::span(file)));
}

void load_mlp(dense::Mlp& mlp, const std::string& path, core::Environment& environment) {
  const auto opened = environment.open(path);
  std::vector<DenseTensor> tensors = layer_tensors(mlp);
  int64_t steps = 0;
  tensors.push_back({.name = "steps",
                     .dtype = SHARDREC_INT64,
                     .shape = {1},
                     .data = std::as_writable_bytes(std::span(&steps, 1)).data()});
  int64_t most_header = kHeaderBytesPerTensor;
  int64_t data_bytes = 0;
  for (const DenseTensor& tensor : tensors) {
    most_header += std::ssize(tensor.name) + kHeaderBytesPerTensor;
    data_bytes += tensor.bytes();
  }
  const SafetensorsHeader header = read_safetensors_header(*opened, path, most_header);
  if (header.tensors.size() != tensors.size()) {
    refuse(path, core::sentence("it holds ", header.tensors.size(), " tensors, this stack has ",
                                tensors.size()));
  }
  std::vector<int64_t> begins;
  for (const DenseTensor& tensor : tensors) {
    begins.push_back(find(header, info_of(tensor), path).begin);
  }
  // What is checked is what is loaded: one reading, of a size that the stack's shapes say.
  std::string file(static_cast<size_t>(header.data_start + data_bytes), '\0');
  opened->read_at(0, std::as_writable_bytes(std::span(file)));
  check(file, header, path);
  const char* data = file.data() + header.data_start;
  std::memcpy(&steps, data + begins.back(), sizeof steps);
  if (steps < 0) {
    core::fail(SHARDREC_CORRUPT_DATA, core::sentence(path, " has the step count ", steps),
               {.value = steps, .path = path});
  }
  for (size_t i = 0; i + 1 < tensors.size(); ++i) {
    const auto bytes = static_cast<size_t>(tensors[i].bytes());
    if (bytes != 0) std::memcpy(tensors[i].data, data + begins[i], bytes);
  }
  mlp.parameters().set_steps(steps);
}

}  // namespace shardrec::checkpoint
