#include "checkpoint/read/opened.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace shardrec::checkpoint {
namespace {

using core::Environment;
using core::fail;
using core::join_path;
using core::sentence;

constexpr int64_t kMostManifestBytes = int64_t{1} << 32;

// One manifest, without what it is a change of.
Opened open_one(const std::string& directory, Environment& environment) {
  const std::string path = join_path(directory, kManifestName);
  if (!environment.exists(path)) {
    fail(SHARDREC_NOT_FOUND,
         sentence("the directory ", directory, " holds no checkpoint: there is no ", path),
         {.path = path});
  }
  const std::string text = core::read_text_file(environment, path, kMostManifestBytes);
  Opened opened{.directory = directory,
                .manifest = manifest_from_text(text, path),
                .checksum = manifest_checksum(text)};
  check_coverage(opened.manifest, SHARDREC_CORRUPT_DATA, path);
  check_files(opened.manifest, path);
  return opened;
}

// The directory that a path names as the one above.
std::string above(std::string directory) {
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  const size_t slash = directory.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : directory.substr(0, slash);
}

// The directory of checkpoints that has this delta: the one that its path names where its base is there, else the one
// that the file system knows, as for a path that ends in "." or in a link.
std::string root_of(const Opened& delta, Environment& environment) {
  const ManifestBase& base = *delta.manifest.base;
  std::string named = above(delta.directory);
  const std::string path = join_path(join_path(named, base.directory), kManifestName);
  if (environment.exists(path) && manifest_checksum(core::read_text_file(
                                      environment, path, kMostManifestBytes)) == base.checksum) {
    return named;
  }
  return join_path(delta.directory, "..");
}

bool same_tables(const Manifest& one, const Manifest& other) {
  return std::ranges::equal(one.collections, other.collections,
                            [](const ManifestCollection& a, const ManifestCollection& b) {
                              return a.name == b.name && same_tables(a.tables, b.tables);
                            });
}

// Is `found` what the manifest of a delta says of its base?
void check_base(const Opened& delta, const Opened& found) {
  const ManifestBase& base = *delta.manifest.base;
  const int32_t deltas = found.manifest.base ? found.manifest.base->deltas : 0;
  if (found.checksum == base.checksum && found.manifest.run == delta.manifest.run &&
      found.manifest.commit == base.commit && found.manifest.step == base.step &&
      deltas + 1 == base.deltas && same_tables(found.manifest, delta.manifest) &&
      (found.manifest.states || !delta.manifest.states)) {
    return;
  }
  fail(SHARDREC_CORRUPT_DATA,
       sentence("the checkpoint ", delta.directory, " of step ", delta.manifest.step,
                " is a change of another checkpoint of step ", base.step, " than the one in ",
                found.directory),
       {.value = base.step, .path = found.directory});
}

Opened open_base(const std::string& root, const Opened& delta, Environment& environment) {
  const ManifestBase& base = *delta.manifest.base;
  const std::string directory = join_path(root, base.directory);
  try {
    return open_one(directory, environment);
  } catch (const core::Error& error) {
    core::ErrorParts parts = error.parts();
    parts.value = base.step;
    fail(error.status(),
         sentence("the checkpoint ", delta.directory, " of step ", delta.manifest.step,
                  " is a change of that of step ", base.step, ": ", error.sentence()),
         std::move(parts));
  }
}

// What a delta is a change of, in the chain of a checkpoint that was opened before; null: it is not there.
std::shared_ptr<const Opened> known_base(std::shared_ptr<const Opened> known,
                                         const std::string& root, const Opened& delta) {
  const ManifestBase& base = *delta.manifest.base;
  const std::string directory = join_path(root, base.directory);
  while (known != nullptr && (known->checksum != base.checksum || known->directory != directory)) {
    known = known->base;
  }
  return known;
}

}  // namespace

std::vector<const Opened*> Opened::deltas() const {
  std::vector<const Opened*> all;
  for (const Opened* each = this; each->base != nullptr; each = each->base.get()) {
    all.push_back(each);
  }
  std::ranges::reverse(all);
  return all;
}

Opened open_directory(const std::string& directory, Environment& environment,
                      const std::shared_ptr<const Opened>& known) {
  std::vector<Opened> chain;
  chain.push_back(open_one(directory, environment));
  std::shared_ptr<const Opened> base;
  std::string root = above(directory);  // of all
  // Each has one delta less than the one before: the chain ends.
  while (chain.back().manifest.base) {
    base = known_base(known, root, chain.back());
    if (base != nullptr) {
      check_base(chain.back(), *base);
      break;
    }
    if (chain.size() == 1) root = root_of(chain.back(), environment);
    Opened found = open_base(root, chain.back(), environment);
    check_base(chain.back(), found);
    chain.push_back(std::move(found));
  }
  for (size_t i = chain.size() - 1; i > 0; --i) {
    chain[i].base = std::move(base);
    base = std::make_shared<const Opened>(std::move(chain[i]));
  }
  chain.front().base = std::move(base);
  return std::move(chain.front());
}

}  // namespace shardrec::checkpoint
