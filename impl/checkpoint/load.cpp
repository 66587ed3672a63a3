#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "checkpoint/blocks.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "comm/agree.h"
#include "core/error.h"
#include "core/hash.h"
#include "plan/names.h"

namespace shardrec::checkpoint {

namespace {

using core::Control;
using core::Environment;
using core::fail;
using core::join_path;
using core::sentence;

constexpr int64_t kMostManifestBytes = int64_t{1} << 32;

// One rank's reading of a checkpoint: first everything is checked, then pieces are filled.
class Loader {
 public:
  Loader(Environment& environment, const std::string& directory, const plan::Model& model,
         std::span<const Piece> pieces, Control* control)
      : environment_(environment),
        directory_(directory),
        model_(model),
        pieces_(pieces),
        control_(control) {}

  // Reads and checks the manifest, the headers of the files this rank needs, and the checksums of
  // its share of all tensors.
  void check(int rank, int size) {
    const std::string path = join_path(directory_, kManifestName);
    if (!environment_.exists(path)) {
      fail(SHARDREC_NOT_FOUND,
           sentence("the directory ", directory_, " holds no checkpoint: there is no ", path),
           {.path = path});
    }
    const std::string text = core::read_file(environment_, path, kMostManifestBytes);
    manifest_ = manifest_from_text(text, path);
    check_coverage(manifest_, SHARDREC_CORRUPT_DATA, path);
    fingerprint_ = core::hash64(0, text);
    match_model(path);
    plan_copies();
    plan_verification(rank, size);
    start_control();
    read_headers();
    verify();
  }

  void copy() {
    std::vector<std::byte> buffer;
    std::unique_ptr<core::ReadFile> file;
    int32_t opened = -1;
    for (const Copy& copy : copies_) {
      const ManifestTensor& tensor = manifest_.tensors[copy.overlap.tensor];
      if (tensor.file != opened) {
        file = environment_.open(path_of(tensor.file));
        opened = tensor.file;
      }
      copy_overlap(*file, starts_[copy.overlap.tensor], tensor, copy.overlap, pieces_[copy.piece],
                   buffer, [&](int64_t bytes) {
                     if (control_ != nullptr) control_->add(bytes);
                   });
    }
  }

  int64_t step() const { return manifest_.step; }
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  struct Copy {
    Overlap overlap;
    size_t piece = 0;
  };

  std::string path_of(int32_t file) const {
    return join_path(directory_, manifest_.files[static_cast<size_t>(file)].name);
  }

  void match_model(const std::string& path) {
    std::unordered_map<std::string_view, int32_t> index;
    for (const ManifestTable& table : manifest_.tables) {
      index.emplace(table.name, static_cast<int32_t>(index.size()));
    }
    for (const plan::Table& table : model_.tables) {
      const auto found = index.find(table.name);
      if (found == index.end()) {
        fail(SHARDREC_NOT_FOUND,
             sentence("the checkpoint ", directory_, " has no table \"", table.name, "\""),
             {.table = table.name, .path = path});
      }
      const ManifestTable& saved = manifest_.tables[static_cast<size_t>(found->second)];
      if (saved.rows != table.rows || saved.dim != table.dim) {
        fail(SHARDREC_INVALID_ARGUMENT,
             sentence("table \"", table.name, "\" has ", saved.rows, " rows and ", saved.dim,
                      " columns in the checkpoint ", directory_, ", ", table.rows, " and ",
                      table.dim, " in the model"),
             {.table = table.name, .path = path});
      }
      if (saved.dtype != table.dtype) {
        fail(SHARDREC_INVALID_ARGUMENT,
             sentence("table \"", table.name, "\" is ", plan::name_of(saved.dtype),
                      " in the checkpoint ", directory_, ", ", plan::name_of(table.dtype),
                      " in the model"),
             {.table = table.name, .path = path});
      }
      const shardrec_optimizer optimizer =
          model_.optimizer_of(static_cast<int32_t>(saved_table_.size())).kind;
      if (saved.optimizer != optimizer) {
        fail(SHARDREC_INVALID_ARGUMENT,
             sentence("table \"", table.name, "\" of the checkpoint ", directory_,
                      " was trained with ", plan::name_of(saved.optimizer), ", the model has ",
                      plan::name_of(optimizer)),
             {.table = table.name, .path = path});
      }
      saved_table_.push_back(found->second);
    }
  }

  // Lists what each piece takes from which tensor, ordered by file and position.
  void plan_copies() {
    std::map<std::pair<int32_t, Part>, std::vector<size_t>> tensors;
    for (size_t i = 0; i < manifest_.tensors.size(); ++i) {
      const ManifestTensor& tensor = manifest_.tensors[i];
      tensors[{tensor.table, tensor.part}].push_back(i);
    }
    for (size_t p = 0; p < pieces_.size(); ++p) {
      const Piece& piece = pieces_[p];
      check_piece(piece, model_);
      const int32_t saved = saved_table_[static_cast<size_t>(piece.table)];
      for (const size_t t : tensors[{saved, piece.part}]) add_copy(p, t);
    }
    std::sort(copies_.begin(), copies_.end(), [&](const Copy& a, const Copy& b) {
      const auto key = [&](const Copy& copy) {
        return std::tuple(manifest_.tensors[copy.overlap.tensor].file, copy.overlap.tensor,
                          copy.overlap.row, copy.piece);
      };
      return key(a) < key(b);
    });
  }

  void add_copy(size_t p, size_t t) {
    const Piece& piece = pieces_[p];
    const ManifestTensor& tensor = manifest_.tensors[t];
    Copy copy{.overlap = {.tensor = t}, .piece = p};
    Overlap& overlap = copy.overlap;
    overlap.row = std::max(piece.row, tensor.row);
    overlap.rows = std::min(piece.row + piece.rows, tensor.row + tensor.rows) - overlap.row;
    overlap.col = std::max(piece.col, tensor.col);
    overlap.cols = std::min(piece.col + piece.cols, tensor.col + tensor.cols) - overlap.col;
    if (overlap.rows <= 0 || overlap.cols <= 0) return;
    if (tensor.layout.by_row && (tensor.col != piece.col || tensor.cols != piece.cols)) {
      const std::string& name = model_.tables[static_cast<size_t>(piece.table)].name;
      fail(SHARDREC_UNSUPPORTED,
           sentence("the checkpoint ", directory_, " holds the optimizer state of table \"", name,
                    "\" over columns [", tensor.col, ", ", tensor.col + tensor.cols,
                    "), this plan needs it over [", piece.col, ", ", piece.col + piece.cols,
                    "): a statistic of shards loads into the same column cuts only"),
           {.table = name, .path = directory_});
    }
    copies_.push_back(copy);
  }

  // Every tensor is verified by one rank: cut by bytes, so that ranks have about as much to read.
  void plan_verification(int rank, int size) {
    double total = 1;
    for (const ManifestTensor& tensor : manifest_.tensors) {
      total += static_cast<double>(bytes_of(tensor));
    }
    double before = 0;
    for (size_t i = 0; i < manifest_.tensors.size(); ++i) {
      if (static_cast<int>(before / total * size) == rank) share_.push_back(i);
      before += static_cast<double>(bytes_of(manifest_.tensors[i]));
    }
    std::sort(share_.begin(), share_.end(), [&](size_t a, size_t b) {
      return std::pair(manifest_.tensors[a].file, a) < std::pair(manifest_.tensors[b].file, b);
    });
  }

  void start_control() {
    if (control_ == nullptr) return;
    int64_t total = 0;
    for (const size_t t : share_) total += bytes_of(manifest_.tensors[t]);
    for (const Copy& copy : copies_) {
      total += bytes_read(copy.overlap, manifest_.tensors[copy.overlap.tensor]);
    }
    control_->start(total);
    control_->check();
  }

  // Finds where each needed tensor begins in its file.
  void read_headers() {
    std::vector<std::vector<size_t>> tensors_of(manifest_.files.size());
    for (size_t i = 0; i < manifest_.tensors.size(); ++i) {
      tensors_of[static_cast<size_t>(manifest_.tensors[i].file)].push_back(i);
    }
    std::vector<bool> needed(manifest_.files.size(), false);
    const auto need = [&](size_t tensor) {
      needed[static_cast<size_t>(manifest_.tensors[tensor].file)] = true;
    };
    for (const size_t t : share_) need(t);
    for (const Copy& copy : copies_) need(copy.overlap.tensor);
    starts_.assign(manifest_.tensors.size(), 0);
    for (size_t f = 0; f < needed.size(); ++f) {
      if (needed[f]) read_header(static_cast<int32_t>(f), tensors_of[f]);
    }
  }

  void read_header(int32_t f, const std::vector<size_t>& tensors) {
    const std::string path = path_of(f);
    const int64_t bytes = manifest_.files[static_cast<size_t>(f)].bytes;
    const auto file = open_existing(path);
    if (file->size() != bytes) {
      fail(SHARDREC_CORRUPT_DATA,
           sentence("the file ", path, " has ", file->size(), " bytes, the manifest says ", bytes),
           {.path = path});
    }
    const SafetensorsHeader header = read_safetensors_header(*file, path);
    std::unordered_map<std::string_view, const TensorInfo*> by_name;
    for (const TensorInfo& info : header.tensors) by_name.emplace(info.name, &info);
    if (header.tensors.size() != tensors.size()) {
      fail(SHARDREC_CORRUPT_DATA,
           sentence("the file ", path, " has ", header.tensors.size(),
                    " tensors, the manifest lists ", tensors.size()),
           {.path = path});
    }
    for (const size_t t : tensors) {
      const ManifestTensor& tensor = manifest_.tensors[t];
      std::vector<int64_t> shape = {tensor.rows};
      if (!tensor.layout.by_row) shape.push_back(tensor.cols);
      const auto found = by_name.find(tensor.name);
      if (found == by_name.end() ||
          found->second->dtype != safetensors_dtype(tensor.layout.dtype) ||
          found->second->shape != shape) {
        fail(SHARDREC_CORRUPT_DATA,
             sentence("the file ", path, " has no tensor \"", tensor.name,
                      "\" of the dtype and shape that the manifest lists"),
             {.path = path});
      }
      starts_[t] = header.data_start + found->second->begin;
    }
  }

  // A file that the manifest lists and that is not there is damage, not a missing checkpoint.
  std::unique_ptr<core::ReadFile> open_existing(const std::string& path) {
    if (!environment_.exists(path)) {
      fail(SHARDREC_CORRUPT_DATA, sentence("the checkpoint's file ", path, " is missing"),
           {.path = path});
    }
    return environment_.open(path);
  }

  void verify() {
    std::vector<std::byte> buffer;
    std::unique_ptr<core::ReadFile> file;
    int32_t opened = -1;
    for (const size_t t : share_) {
      const ManifestTensor& tensor = manifest_.tensors[t];
      if (tensor.file != opened) {
        file = environment_.open(path_of(tensor.file));
        opened = tensor.file;
      }
      core::StreamingHash hash;
      const int64_t bytes = bytes_of(tensor);
      for (int64_t done = 0; done < bytes; done += kBlockBytes) {
        const int64_t block = std::min(kBlockBytes, bytes - done);
        buffer.resize(static_cast<size_t>(block));
        file->read_at(starts_[t] + done, buffer);
        hash.update(buffer);
        if (control_ != nullptr) control_->advance(block);
      }
      if (hash.digest() != tensor.checksum) {
        fail(SHARDREC_CORRUPT_DATA,
             sentence("tensor \"", tensor.name, "\" of ", path_of(tensor.file),
                      " is damaged: its checksum does not match"),
             {.table = manifest_.tables[static_cast<size_t>(tensor.table)].name,
              .path = path_of(tensor.file)});
      }
    }
  }

  Environment& environment_;
  const std::string& directory_;
  const plan::Model& model_;
  std::span<const Piece> pieces_;
  Control* control_;
  Manifest manifest_;
  uint64_t fingerprint_ = 0;
  std::vector<int32_t> saved_table_;  // index in the manifest, by table of the model
  std::vector<Copy> copies_;
  std::vector<size_t> share_;    // tensors whose checksum this rank verifies
  std::vector<int64_t> starts_;  // byte of the file where each needed tensor begins
};

// Ranks that do not see the same files would load a mixture.
void compare_manifests(const Group& group, const comm::Operation& operation, uint64_t fingerprint,
                       const std::string& directory) {
  std::array<std::byte, sizeof fingerprint> mine = {};
  std::memcpy(mine.data(), &fingerprint, sizeof fingerprint);
  const auto all = group.collectives.all_gather(operation, mine);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (!std::equal(all[rank].begin(), all[rank].end(), all[0].begin(), all[0].end())) {
      fail(SHARDREC_IO_ERROR,
           sentence("rank ", rank, " sees another checkpoint in ", directory,
                    " than rank 0; all ranks must read the same directory"),
           {.rank = static_cast<int64_t>(rank), .path = directory});
    }
  }
}

}  // namespace

int64_t load(const Group& group, const std::string& directory, const plan::Model& model,
             std::span<const Piece> pieces, Control* control, Environment& environment) {
  const comm::Operation operation{
      .name = "load", .detail = core::hash64(0, directory), .patience = comm::Patience::kSetup};
  Loader loader(environment, directory, model, pieces, control);
  comm::agree(group.collectives, operation, [&] { loader.check(group.rank, group.size); });
  compare_manifests(group, operation, loader.fingerprint(), directory);
  comm::agree(group.collectives, operation, [&] { loader.copy(); });
  return loader.step();
}

}  // namespace shardrec::checkpoint
