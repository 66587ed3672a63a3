// A checkpoint whose manifest has been read and checked; of a delta with all that it is a change of, back to a whole
// checkpoint.
//
// Thread rule: immutable, any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/format/manifest.h"
#include "core/environment.h"

namespace shardrec::checkpoint {

// Of a delta all but the tables is in its own manifest, as of a whole one; what a table holds is that of whole(), with
// the rows of deltas() in place of its own, one delta after the other. The collections and tables of all of them are
// the same ones, in the same order.
struct Opened {
  std::string directory;
  Manifest manifest;
  uint64_t checksum = 0;                         // of the manifest
  std::shared_ptr<const Opened> base = nullptr;  // null: it is whole

  const Opened& whole() const noexcept { return base == nullptr ? *this : base->whole(); }
  // From the first one behind the whole checkpoint to this one.
  std::vector<const Opened*> deltas() const;
};

// Not collective. known: opened before, or null; manifests of its chain are not read again where the directory's chain
// has them. NOT_FOUND (no checkpoint, or one that it is a change of is not there), CORRUPT_DATA (also: a change of
// another one), UNSUPPORTED, IO_ERROR.
Opened open_directory(const std::string& directory,
                      core::Environment& environment = core::default_environment(),
                      const std::shared_ptr<const Opened>& known = nullptr);

}  // namespace shardrec::checkpoint
