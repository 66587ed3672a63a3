#include <algorithm>
#include <memory>
#include <utility>

#include "checkpoint/blocks.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "comm/agree.h"
#include "core/error.h"
#include "core/hash.h"

namespace shardrec::checkpoint {

namespace {

using core::Control;
using core::Environment;
using core::fail;
using core::join_path;
using core::sentence;

// What a save has put into the directory so far; removed again unless the checkpoint is complete.
class Leftovers {
 public:
  Leftovers(Environment& environment, const std::string& directory)
      : environment_(environment), directory_(directory) {}
  ~Leftovers() {
    // The manifest, added last, goes first: what is half removed is no checkpoint.
    for (auto name = names_.rbegin(); name != names_.rend(); ++name) {
      try {
        environment_.remove(join_path(directory_, *name));
      } catch (...) {
        // A file without a manifest is no checkpoint, so one that stays does no harm.
      }
    }
  }
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

  void add(std::string name) { names_.push_back(std::move(name)); }
  void keep() noexcept { names_.clear(); }

 private:
  Environment& environment_;
  const std::string& directory_;
  std::vector<std::string> names_;
};

std::string file_name(int rank) {
  std::string digits = std::to_string(rank);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return "rank_" + digits + ".safetensors";
}

Manifest manifest_of(const plan::Model& model, int64_t step) {
  Manifest manifest;
  manifest.step = step;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const plan::Table& table = model.tables[t];
    const plan::Optimizer& optimizer = model.optimizer_of(static_cast<int32_t>(t));
    manifest.tables.push_back(
        {table.name, table.rows, table.dim, table.dtype, optimizer.kind, optimizer.row_statistics});
  }
  return manifest;
}

// Describes the pieces, as tensors of file 0; sets the header of the file.
std::string describe(const plan::Model& model, std::span<const Piece> pieces, Manifest& manifest) {
  std::vector<TensorInfo> infos;
  for (const Piece& piece : pieces) {
    check_piece(piece, model);
    ManifestTensor tensor{.table = piece.table,
                          .part = piece.part,
                          .layout = piece.layout,
                          .row = piece.row,
                          .rows = piece.rows,
                          .col = piece.col,
                          .cols = piece.cols};
    tensor.name = sentence(model.tables[static_cast<size_t>(piece.table)].name, "/",
                           name_of(model.optimizer_of(piece.table).kind, piece.part), "/",
                           piece.row, "_", piece.col);
    TensorInfo info{
        .name = tensor.name, .dtype = safetensors_dtype(piece.layout.dtype), .shape = {piece.rows}};
    if (!piece.layout.by_row) info.shape.push_back(piece.cols);
    infos.push_back(std::move(info));
    manifest.tensors.push_back(std::move(tensor));
  }
  return make_safetensors_header(infos);
}

// Writes this rank's file and adds it and its tensors, with checksums, to the manifest.
void write_rank_file(Environment& environment, const std::string& directory, const Group& group,
                     const plan::Model& model, std::span<const Piece> pieces, Control* control,
                     Manifest& manifest, Leftovers& leftovers) {
  if (pieces.empty()) return;
  const std::string name = file_name(group.rank);
  const std::string temporary = name + ".tmp";
  const std::string header = describe(model, pieces, manifest);
  int64_t bytes = std::ssize(header);

  leftovers.add(temporary);
  const auto file = environment.create(join_path(directory, temporary));
  file->append(std::as_bytes(std::span(header)));
  for (size_t i = 0; i < pieces.size(); ++i) {
    core::StreamingHash hash;
    for_each_block(pieces[i], [&](std::span<const std::byte> block) {
      file->append(block);
      hash.update(block);
      if (control != nullptr) control->advance(std::ssize(block));
    });
    manifest.tensors[i].checksum = hash.digest();
    bytes += bytes_of(manifest.tensors[i]);
  }
  file->sync();
  file->close();
  leftovers.add(name);
  environment.rename(join_path(directory, temporary), join_path(directory, name));
  environment.sync_directory(directory);
  manifest.files.push_back({name, bytes});
}

void prepare_directory(Environment& environment, const std::string& directory) {
  if (directory.empty()) {
    fail(SHARDREC_INVALID_ARGUMENT, "the directory of a checkpoint has no name");
  }
  environment.make_directories(directory);
  const std::string path = join_path(directory, kManifestName);
  if (environment.exists(path)) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("the directory ", directory,
                  " already holds a checkpoint; save to another one or remove it"),
         {.path = path});
  }
}

// Appends a rank's part to the whole.
void merge(const Manifest& part, Manifest& whole) {
  const auto first_file = static_cast<int32_t>(whole.files.size());
  whole.files.insert(whole.files.end(), part.files.begin(), part.files.end());
  for (ManifestTensor tensor : part.tensors) {
    tensor.file += first_file;
    whole.tensors.push_back(std::move(tensor));
  }
}

}  // namespace

void save(const Group& group, const std::string& directory, const plan::Model& model, int64_t step,
          std::span<const Piece> pieces, Control* control, Environment& environment) {
  const comm::Operation operation{.name = "save",
                                  .detail = core::hash64(static_cast<uint64_t>(step), directory),
                                  .patience = comm::Patience::kSetup};
  Leftovers leftovers(environment, directory);
  comm::agree(group.collectives, operation, [&] {
    if (group.rank == 0) prepare_directory(environment, directory);
  });

  std::string text;
  comm::agree(group.collectives, operation, [&] {
    if (control != nullptr) {
      int64_t total = 0;
      for (const Piece& piece : pieces) {
        total += piece.rows * piece.layout.row_width(piece.cols) * piece.layout.element_bytes();
      }
      control->start(total);
      control->check();
    }
    Manifest own = manifest_of(model, step);
    write_rank_file(environment, directory, group, model, pieces, control, own, leftovers);
    text = manifest_to_text(own);
  });
  // From here on rank 0 may complete the checkpoint at any moment, so only it takes files back.
  if (group.rank != 0) leftovers.keep();

  const auto texts = group.collectives.all_gather(operation, std::as_bytes(std::span(text)));
  comm::agree(group.collectives, operation, [&] {
    if (group.rank != 0) return;
    Manifest whole = manifest_of(model, step);
    for (const comm::ConstBytes bytes : texts) {
      std::string part(bytes.size(), '\0');
      std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(part)).begin());
      merge(manifest_from_text(part, directory), whole);
    }
    for (const ManifestFile& file : whole.files) leftovers.add(file.name);
    check_coverage(whole, SHARDREC_INTERNAL, directory);
    const std::string manifest = manifest_to_text(whole);
    leftovers.add(kManifestName);
    core::write_file_atomically(environment, directory, kManifestName,
                                std::as_bytes(std::span(manifest)));
    leftovers.keep();
  });
}

}  // namespace shardrec::checkpoint
