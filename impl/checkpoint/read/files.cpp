#include "checkpoint/read/files.h"

#include <algorithm>
#include <unordered_map>

#include "checkpoint/format/safetensors.h"
#include "core/error.h"
#include "core/hash.h"

namespace shardrec::checkpoint {

namespace {

using core::fail;
using core::sentence;

// What a tensor may take of a header beside its name: dtype, shape, offsets.
constexpr int64_t kHeaderBytesPerTensor = 512;

}  // namespace

Files::Files(const Opened& opened, core::Environment& environment)
    : opened_(opened), environment_(environment), files_(opened.manifest.files.size()) {}

std::string Files::path_of(const Stored& stored) const {
  return core::join_path(opened_.directory, opened_.manifest.file_of(stored).name);
}

void Files::fail_damaged(const Stored& stored, const std::string& table) const {
  const std::string path = path_of(stored);
  fail(SHARDREC_CORRUPT_DATA,
       sentence("tensor \"", stored.name, "\" of ", path,
                " is damaged: its checksum does not match"),
       {.table = table, .path = path});
}

void Files::check_chunk(const ManifestTensor& tensor, int64_t number,
                        std::span<const std::byte> bytes) const {
  if (opened_.manifest.format == 1) return;
  if (core::hash64(0, bytes) != tensor.checksums[static_cast<size_t>(number)]) {
    fail_damaged(tensor.stored, opened_.manifest.table_of(tensor).name);
  }
}

void Files::check_chunk(const ManifestList& list, int64_t number,
                        std::span<const std::byte> bytes) const {
  if (core::hash64(0, bytes) == list.checksums[static_cast<size_t>(number)]) return;
  fail_damaged(list.stored, opened_.manifest.collections[static_cast<size_t>(list.collection)]
                                .tables[static_cast<size_t>(list.table)]
                                .name);
}

void Files::read(const Stored& stored, int64_t begin, std::span<std::byte> out) {
  const File& file = open(stored.file);
  int64_t start = stored.offset;
  if (opened_.manifest.format == 1) {
    const auto found = std::lower_bound(
        file.starts.begin(), file.starts.end(), stored.name,
        [](const auto& entry, const std::string& name) { return entry.first < name; });
    start = found->second;  // read_starts has found every tensor of the manifest
  }
  file.file->read_at(start + begin, out);
}

void Files::check_share(int rank, int size) {
  for (size_t f = static_cast<size_t>(rank); f < files_.size(); f += static_cast<size_t>(size)) {
    open(static_cast<int32_t>(f));
  }
  close();
}

void Files::close() noexcept {
  for (File& file : files_) file = {};
}

Files::File& Files::open(int32_t index) {
  File& file = files_[static_cast<size_t>(index)];
  if (file.file != nullptr) return file;
  // Only the one in use stays open: a checkpoint may have more files than a process descriptors.
  close();
  const ManifestFile& about = opened_.manifest.files[static_cast<size_t>(index)];
  const std::string path = core::join_path(opened_.directory, about.name);
  // A file that the manifest lists and that is not there is damage, not a missing checkpoint.
  if (!environment_.exists(path)) {
    fail(SHARDREC_CORRUPT_DATA, sentence("the checkpoint's file ", path, " is missing"),
         {.path = path});
  }
  auto opened = environment_.open(path);
  if (opened->size() != about.bytes) {
    fail(SHARDREC_CORRUPT_DATA,
         sentence("the file ", path, " has ", opened->size(), " bytes, the manifest says ",
                  about.bytes),
         {.path = path});
  }
  file.file = std::move(opened);
  try {
    if (opened_.manifest.format == 1) {
      read_starts(path, index, file);
    } else {
      check_header(path, about, *file.file);
    }
  } catch (...) {
    file = {};
    throw;
  }
  return file;
}

void Files::check_header(const std::string& path, const ManifestFile& about,
                         const core::ReadFile& file) {
  constexpr int64_t kBlock = 1 << 16;
  core::StreamingHash hash;
  std::vector<std::byte> buffer;
  for (int64_t at = 0; at < about.header_bytes; at += kBlock) {
    buffer.resize(static_cast<size_t>(std::min(kBlock, about.header_bytes - at)));
    file.read_at(at, buffer);
    hash.update(buffer);
  }
  if (hash.digest() != about.header_checksum) {
    fail(SHARDREC_CORRUPT_DATA,
         sentence("the header of ", path, " is damaged: its checksum does not match"),
         {.path = path});
  }
}

void Files::read_starts(const std::string& path, int32_t index, File& file) {
  std::vector<const ManifestTensor*> tensors;
  int64_t most = 64 + kHeaderBytesPerTensor;
  for (const ManifestTensor& tensor : opened_.manifest.tensors) {
    if (tensor.stored.file != index) continue;
    tensors.push_back(&tensor);
    most += 6 * std::ssize(tensor.stored.name) + kHeaderBytesPerTensor;  // "\u0000" at worst
  }
  const SafetensorsHeader header = read_safetensors_header(*file.file, path, most);
  std::unordered_map<std::string_view, const TensorInfo*> by_name;
  for (const TensorInfo& info : header.tensors) by_name.emplace(info.name, &info);
  if (header.tensors.size() != tensors.size()) {
    fail(SHARDREC_CORRUPT_DATA,
         sentence("the file ", path, " has ", header.tensors.size(),
                  " tensors, the manifest lists ", tensors.size()),
         {.path = path});
  }
  for (const ManifestTensor* tensor : tensors) {
    std::vector<int64_t> shape = {tensor->cells.rows};
    if (!tensor->layout.by_row) shape.push_back(tensor->cells.cols);
    const auto found = by_name.find(tensor->stored.name);
    if (found == by_name.end() || found->second->dtype != safetensors_dtype(tensor->layout.dtype) ||
        found->second->shape != shape) {
      fail(SHARDREC_CORRUPT_DATA,
           sentence("the file ", path, " has no tensor \"", tensor->stored.name,
                    "\" of the dtype and shape that the manifest lists"),
           {.path = path});
    }
    file.starts.emplace_back(tensor->stored.name, header.data_start + found->second->begin);
  }
  std::sort(file.starts.begin(), file.starts.end());
}

}  // namespace shardrec::checkpoint
