#include "checkpoint/write/save.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "checkpoint/write/rank_file.h"
#include "comm/collective/agree.h"
#include "core/error.h"
#include "core/hash.h"

namespace shardrec::checkpoint {

namespace {

using core::Control;
using core::Environment;
using core::fail;
using core::join_path;
using core::sentence;

std::string file_name(int rank, const std::string& suffix) {
  std::string digits = std::to_string(rank);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return "rank_" + digits + suffix + ".safetensors";
}

[[noreturn]] void refuse_second(const std::string& directory) {
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("the directory ", directory,
                " already holds a checkpoint; save to another one or remove it"),
       {.path = join_path(directory, kManifestName)});
}

// Hashes that all ranks must have alike, each with what errors call it.
struct SharedHash {
  std::string name;
  uint64_t hash = 0;
};

std::vector<SharedHash> shared_hashes(const Contents& contents) {
  std::vector<SharedHash> out(1);
  std::string names;
  for (const CollectionContents& collection : contents.collections) {
    names += sentence("collection ", collection.name, ";", collection.step, ";");
  }
  for (const ItemContents& item : contents.items) {
    if (item.kind == ItemKind::kHostTensor) continue;
    names += sentence("item ", item.name, ";", item.description, ";");
    core::StreamingHash hash;
    for (const DenseTensor& tensor : item.tensors) {
      names += sentence(tensor.name, ";", tensor.bytes(), ";");
      hash.update(tensor.span());
    }
    out.push_back({sentence("\"", item.name, "\""), hash.digest()});
  }
  out[0] = {"what was added", core::hash64(0, names)};
  return out;
}

// Layers that differ between ranks would be saved as rank 0 has them.
void compare_shared(const Group& group, const comm::Operation& operation,
                    const Contents& contents) {
  if (group.size == 1) return;
  const std::vector<SharedHash> mine = shared_hashes(contents);
  std::vector<uint64_t> hashes;
  for (const SharedHash& shared : mine) hashes.push_back(shared.hash);
  const auto all = group.collectives.all_gather(operation, std::as_bytes(std::span(hashes)));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    for (size_t i = 0; i < mine.size(); ++i) {
      const size_t at = i * sizeof(uint64_t);
      const bool same =
          at + sizeof(uint64_t) <= std::min(all[rank].size(), all[0].size()) &&
          std::memcmp(all[rank].data() + at, all[0].data() + at, sizeof(uint64_t)) == 0;
      if (same) continue;
      const std::string what =
          i == 0 ? "names, steps or shapes of what was added" : "values of " + mine[i].name;
      throw comm::AgreedError(
          SHARDREC_DISAGREEMENT,
          sentence("rank ", rank, " has other ", what,
                   " than rank 0: what is saved once must be the same on all ranks"),
          {.rank = static_cast<int64_t>(rank), .operation = operation.name});
    }
  }
}

// Appends a rank's part to the whole.
void merge(const Manifest& part, Manifest& whole) {
  const auto first_file = static_cast<int32_t>(whole.files.size());
  const auto first_list = static_cast<int32_t>(whole.lists.size());
  whole.files.insert(whole.files.end(), part.files.begin(), part.files.end());
  for (ManifestItem item : part.items) {
    for (ManifestDense& tensor : item.tensors) tensor.stored.file += first_file;
    whole.items.push_back(std::move(item));
  }
  for (ManifestList list : part.lists) {
    list.stored.file += first_file;
    whole.lists.push_back(std::move(list));
  }
  for (ManifestTensor tensor : part.tensors) {
    tensor.stored.file += first_file;
    if (tensor.listed) tensor.listed->list += first_list;
    whole.tensors.push_back(std::move(tensor));
  }
}

void forget_errors(core::FunctionRef<void()> work) {
  try {
    work();
  } catch (...) {  // NOLINT(bugprone-empty-catch): the first failure is the one to report
  }
}

}  // namespace

SaveInParts::SaveInParts(SaveAs as, Environment& environment)
    : as_(std::move(as)),
      environment_(environment),
      operation_{.name = "save",
                 .detail = core::hash64(static_cast<uint64_t>(as_.step), as_.directory),
                 .deadline_kind = comm::DeadlineKind::kSetup} {}

void SaveInParts::open(const Group& group, const Contents& contents) {
  rank_ = group.rank;
  ranks_ = group.size;
  comm::agree(group.collectives, operation_, [&] {
    if (group.rank == 0) prepare_directory();
  });
  or_take_back(group, [&] {
    compare_shared(group, operation_, contents);
    share_suffix(group);
  });
}

void SaveInParts::close(const Group& group, core::FunctionRef<std::string()> written,
                        core::FunctionRef<void()> published) {
  or_take_back(group, [&] {
    std::string text;
    comm::agree(group.collectives, operation_, [&] { text = written(); });
    manifest_possible_ = true;
    const auto texts = group.collectives.all_gather(operation_, std::as_bytes(std::span(text)));
    comm::agree(group.collectives, operation_, [&] {
      if (group.rank == 0) publish(texts, published);
    });
  });
}

void SaveInParts::abandon() noexcept {
  if (manifest_possible_) return;
  remove_own_file();
  if (made_directory_) forget_errors([&] { environment_.remove_directory(as_.directory); });
}

template <class Body>
void SaveInParts::or_take_back(const Group& group, Body body) {
  try {
    body();
  } catch (const comm::AgreedError&) {
    // All ranks are here; rank 0 says whether a manifest is left that needs the files.
    const std::byte mine{files_may_go_ ? std::byte{1} : std::byte{0}};
    const auto all = group.collectives.all_gather(operation_, {&mine, 1});
    if (!all[0].empty() && all[0][0] == std::byte{1}) remove_own_file();
    group.collectives.barrier(operation_);
    if (group.rank == 0 && made_directory_) {
      forget_errors([&] { environment_.remove_directory(as_.directory); });
    }
    throw;
  } catch (...) {
    // The communicator is gone, and what the others have done is not known.
    if (!manifest_possible_) remove_own_file();
    throw;
  }
}

void SaveInParts::prepare_directory() {
  const std::string& directory = as_.directory;
  if (directory.empty()) {
    fail(SHARDREC_INVALID_ARGUMENT, "the directory of a checkpoint has no name");
  }
  if (as_.new_directory) {
    made_directory_ = environment_.make_directory(directory);
    if (!made_directory_) refuse_second(directory);
    return;
  }
  if (environment_.exists(directory)) {
    environment_.make_directories(directory);  // an error where it is none
  } else {
    std::string parent = directory;
    while (parent.size() > 1 && parent.ends_with('/')) parent.pop_back();
    const size_t slash = parent.rfind('/');
    if (slash != std::string::npos && slash != 0) {
      environment_.make_directories(parent.substr(0, slash));
    }
    made_directory_ = environment_.make_directory(parent);
  }
  if (environment_.exists(join_path(directory, kManifestName))) refuse_second(directory);
}

// In a directory that others may use, files get names that nobody else has.
void SaveInParts::share_suffix(const Group& group) {
  std::array<char, 17> suffix = {};
  if (group.rank == 0 && !made_directory_) {
    const std::string unique = "." + core::unique_suffix();
    std::copy(unique.begin(), unique.end(), suffix.begin());
  }
  group.collectives.broadcast(operation_, 0, std::as_writable_bytes(std::span(suffix)));
  if (suffix[0] != '\0') suffix_.assign(suffix.data(), suffix.size());
}

std::string SaveInParts::write(const Contents& contents, Control* control) {
  if (control != nullptr) {
    control->start(bytes_to_write(contents, rank_));
    control->check();
  }
  const std::string name = file_name(rank_, suffix_);
  Manifest own = describe_rank(contents, rank_, name);
  own.run = as_.run;
  own.commit = as_.commit;
  own.step = as_.step;
  own.ranks = ranks_;
  own.base = as_.base;
  own.states = contents.states;
  if (!own.files.empty()) {
    const std::string path = join_path(as_.directory, name);
    if (!environment_.exists(as_.directory)) {
      fail(SHARDREC_IO_ERROR,
           sentence("the directory ", as_.directory,
                    " that rank 0 made is not there: all ranks must share it"),
           {.path = as_.directory});
    }
    const auto file = environment_.create(path);
    own_file_ = path;  // only what this rank has made is taken back
    write_rank_file(*file, contents, control, own);
    environment_.sync_directory(as_.directory);
  }
  return manifest_to_text(own);
}

void SaveInParts::publish(std::span<const comm::ConstBytes> texts,
                          core::FunctionRef<void()> published) {
  Manifest whole;
  const auto part_of = [&](comm::ConstBytes bytes) {
    std::string text(bytes.size(), '\0');
    std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(text)).begin());
    return manifest_from_text(text, as_.directory);
  };
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    const Manifest part = part_of(texts[rank]);
    if (rank == 0) {
      whole = part;
    } else {
      merge(part, whole);
    }
  }
  try {
    check_coverage(whole, SHARDREC_INTERNAL, as_.directory);
    check_files(whole, as_.directory);
    look_for_files(whole);
    manifest_ = manifest_to_text(whole);
    if (!core::write_new_file_atomically(environment_, as_.directory, kManifestName,
                                         std::as_bytes(std::span(manifest_)))) {
      refuse_second(as_.directory);
    }
    published();
  } catch (...) {
    take_back();
    throw;
  }
}

// Files of a rank that does not share the directory would be missing in the checkpoint.
void SaveInParts::look_for_files(const Manifest& whole) {
  for (const ManifestFile& file : whole.files) {
    const std::string path = join_path(as_.directory, file.name);
    const bool there = environment_.exists(path);
    const int64_t bytes = there ? environment_.open(path)->size() : 0;
    if (there && bytes == file.bytes) continue;
    fail(SHARDREC_IO_ERROR,
         sentence("rank 0 does not see the ", file.bytes, " bytes of ", path,
                  " that were written: all ranks must share the directory"),
         {.path = path});
  }
}

// Where the manifest cannot be removed the files stay, and with them a whole checkpoint.
void SaveInParts::take_back() {
  files_may_go_ = false;
  forget_errors([&] {
    if (published_by_us()) environment_.remove(join_path(as_.directory, kManifestName));
    files_may_go_ = true;
  });
}

// write_new_file_atomically may fail after the manifest got its name.
bool SaveInParts::published_by_us() {
  const std::string path = join_path(as_.directory, kManifestName);
  return !manifest_.empty() && environment_.exists(path) &&
         core::read_text_file(environment_, path, INT64_MAX) == manifest_;
}

void SaveInParts::remove_own_file() noexcept {
  if (own_file_.empty()) return;
  forget_errors([&] { environment_.remove(own_file_); });
}

void save(const Group& group, const SaveAs& as, const Contents& contents, Control* control,
          core::FunctionRef<void()> published, Environment& environment) {
  SaveInParts saving(as, environment);
  saving.open(group, contents);
  saving.close(group, [&] { return saving.write(contents, control); }, published);
}

void save(const Group& group, const SaveAs& as, const Contents& contents, Control* control,
          Environment& environment) {
  save(group, as, contents, control, [] {}, environment);
}

}  // namespace shardrec::checkpoint
