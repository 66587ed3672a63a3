#include "checkpoint/mlp_file.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.h"
#include "core/error.h"

namespace shardrec::checkpoint {
namespace {

// A tensor of the file and the floats that it holds.
struct Entry {
  TensorInfo info;
  std::span<float> floats;
};

std::vector<Entry> entries_of(const dense::Mlp& mlp) {
  const dense::Parameters& parameters = mlp.parameters();
  const std::vector<std::string> states = dense::state_names(parameters.optimizer().kind);
  std::vector<Entry> entries;
  const auto add = [&](std::string name, const dense::ParameterInfo& info, float* floats) {
    entries.push_back({.info = {.name = std::move(name), .dtype = "F32", .shape = info.shape},
                       .floats = {floats, static_cast<size_t>(info.size)}});
  };
  for (const dense::ParameterInfo& info : parameters.infos()) {
    add(info.name, info, parameters.values(info.offset));
    for (size_t s = 0; s < states.size(); ++s) {
      add(info.name + "." + states[s], info, parameters.state(static_cast<int>(s), info.offset));
    }
  }
  return entries;
}

TensorInfo steps_info() { return {.name = "steps", .dtype = "I64", .shape = {1}}; }

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

}  // namespace

void save_mlp(const dense::Mlp& mlp, const std::string& path, core::Environment& environment) {
  const std::vector<Entry> entries = entries_of(mlp);
  std::vector<TensorInfo> infos;
  size_t bytes = sizeof(int64_t);
  for (const Entry& entry : entries) {
    infos.push_back(entry.info);
    bytes += entry.floats.size_bytes();
  }
  infos.push_back(steps_info());
  std::string file = make_safetensors_header(infos);
  size_t at = file.size();
  file.resize(at + bytes);
  const auto put = [&](std::span<const std::byte> data) {
    if (!data.empty()) std::memcpy(file.data() + at, data.data(), data.size());
    at += data.size();
  };
  for (const Entry& entry : entries) put(std::as_bytes(entry.floats));
  const int64_t steps = mlp.parameters().steps();
  put(std::as_bytes(std::span(&steps, 1)));

  const std::filesystem::path parts(path);
  const std::string directory = parts.has_parent_path() ? parts.parent_path().string() : ".";
  core::write_file_atomically(environment, directory, parts.filename().string(),
                              std::as_bytes(std::span(file)));
}

void load_mlp(dense::Mlp& mlp, const std::string& path, core::Environment& environment) {
  const auto file = environment.open(path);
  const SafetensorsHeader header = read_safetensors_header(*file, path);
  const std::vector<Entry> entries = entries_of(mlp);
  if (header.tensors.size() != entries.size() + 1) {
    refuse(path, core::sentence("it holds ", header.tensors.size(), " tensors, this stack has ",
                                entries.size() + 1));
  }
  const auto read = [&](const TensorInfo& wanted, std::span<std::byte> out) {
    file->read_at(header.data_start + find(header, wanted, path).begin, out);
  };
  int64_t steps = 0;
  read(steps_info(), std::as_writable_bytes(std::span(&steps, 1)));
  if (steps < 0) {
    core::fail(SHARDREC_CORRUPT_DATA, core::sentence(path, " has the step count ", steps),
               {.value = steps, .path = path});
  }
  std::vector<std::vector<float>> values;
  for (const Entry& entry : entries) {
    values.emplace_back(entry.floats.size());
    read(entry.info, std::as_writable_bytes(std::span(values.back())));
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    std::copy(values[i].begin(), values[i].end(), entries[i].floats.begin());
  }
  mlp.parameters().set_steps(steps);
}

}  // namespace shardrec::checkpoint
