#include "checkpoint/store/root_files.h"

#include <algorithm>
#include <map>
#include <span>

#include "core/error.h"
#include "core/hash.h"

namespace shardrec::checkpoint {
namespace {

using core::Environment;
using core::fail;
using core::join_path;
using core::sentence;

constexpr std::string_view kStepPrefix = "step_";
constexpr size_t kStepDigits = 12;
constexpr int64_t kMostLatestBytes = 512;
constexpr int64_t kMostManifestBytes = int64_t{1} << 32;

std::string latest_text(const std::string& name) {
  return name + " " + core::to_hex(core::hash64(0, name)) + "\n";
}

}  // namespace

std::string step_name(int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kStepDigits) digits.insert(0, kStepDigits - digits.size(), '0');
  return std::string(kStepPrefix) + digits;
}

bool is_step_name(std::string_view name) {
  if (!name.starts_with(kStepPrefix) || name.size() > 64) return false;
  name.remove_prefix(kStepPrefix.size());
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

bool is_unpublished_latest(std::string_view name) {
  return name.starts_with(std::string(kLatestName) + ".") && name.ends_with(".tmp");
}

std::string read_latest(const std::string& root, Environment& environment) {
  const std::string path = join_path(root, kLatestName);
  if (!environment.exists(path)) return {};
  const std::string text = core::read_text_file(environment, path, kMostLatestBytes);
  const std::string name = text.substr(0, text.find(' '));
  if (!is_step_name(name) || text != latest_text(name)) {
    fail(SHARDREC_CORRUPT_DATA,
         sentence("the file ", path,
                  " is damaged; checkpoints beside it can be opened by their step"),
         {.path = path});
  }
  return name;
}

void write_latest(const std::string& root, const std::string& name, Environment& environment) {
  const std::string text = latest_text(name);
  core::write_file_atomically(environment, root, kLatestName, std::as_bytes(std::span(text)));
}

std::optional<Manifest> try_manifest(const std::string& directory, Environment& environment) {
  const std::string path = join_path(directory, kManifestName);
  try {
    if (!environment.exists(path)) return std::nullopt;
    return manifest_from_text(core::read_text_file(environment, path, kMostManifestBytes), path);
  } catch (const core::Error& error) {
    if (error.status() != SHARDREC_CORRUPT_DATA && error.status() != SHARDREC_UNSUPPORTED) throw;
    return std::nullopt;
  }
}

std::vector<std::string> step_names(const std::string& root, Environment& environment) {
  std::vector<std::string> names;
  if (!environment.exists(root)) return names;
  for (std::string& name : environment.list(root)) {
    if (is_step_name(name)) names.push_back(std::move(name));
  }
  return names;
}

Entry entry_of(const std::string& name, const Manifest& manifest) {
  Entry entry{.name = name, .step = manifest.step, .commit = manifest.commit, .run = manifest.run};
  for (const ManifestFile& file : manifest.files) entry.bytes += file.bytes;
  if (manifest.base) entry.base = manifest.base->commit;
  entry.states = manifest.states;
  return entry;
}

std::set<int64_t> with_bases(std::span<const Entry> entries, std::set<int64_t> commits) {
  // Bases have smaller numbers: one pass from the largest on.
  std::map<int64_t, int64_t> base_of;
  for (const Entry& entry : entries) base_of[entry.commit] = entry.base;
  for (auto entry = base_of.rbegin(); entry != base_of.rend(); ++entry) {
    if (entry->second != 0 && commits.contains(entry->first)) commits.insert(entry->second);
  }
  return commits;
}

void require_base(const std::string& root, const ManifestBase& base, Environment& environment) {
  const std::string path = join_path(join_path(root, base.directory), kManifestName);
  if (environment.exists(path) && manifest_checksum(core::read_text_file(
                                      environment, path, kMostManifestBytes)) == base.checksum) {
    return;
  }
  fail(SHARDREC_NOT_FOUND,
       sentence("the checkpoint of step ", base.step,
                " that a delta would be a change of is not in ", root,
                " any more: shardrec_checkpoint_commit writes a whole one"),
       {.value = base.step, .path = path});
}

int64_t newest_of(const Listing& listing, const std::string& run) {
  int64_t newest = 0;
  for (const Entry& entry : listing.entries) {
    if (entry.run == run) newest = std::max(newest, entry.commit);
  }
  return newest;
}

void remove_step(const std::string& root, const std::string& name, Environment& environment) {
  const std::string directory = join_path(root, name);
  environment.remove(join_path(directory, kManifestName));
  for (const std::string& file : environment.list(directory)) {
    if (file.starts_with("rank_") || file.starts_with(std::string(kManifestName) + ".")) {
      environment.remove(join_path(directory, file));
    }
  }
  environment.remove_directory(directory);
}

comm::Operation operation_on(const char* name, const std::string& root, int64_t step) {
  return {.name = name,
          .detail = core::hash64(static_cast<uint64_t>(step), root),
          .deadline_kind = comm::DeadlineKind::kSetup};
}

std::string share_text(const Group& group, const comm::Operation& operation,
                       const std::string& text) {
  const auto all = group.collectives.all_gather(
      operation, group.rank == 0 ? std::as_bytes(std::span(text)) : comm::ConstBytes{});
  std::string out(all[0].size(), '\0');
  std::copy(all[0].begin(), all[0].end(), std::as_writable_bytes(std::span(out)).begin());
  return out;
}

}  // namespace shardrec::checkpoint
