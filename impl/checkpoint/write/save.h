// Writing a checkpoint into a directory: a safetensors file per rank that has something to write,
// then the manifest, by which it becomes a checkpoint. Nothing that is there is written to or
// removed: files get names of their own, and the manifest appears under its name only when no other
// has taken it, so that of two savers one is refused.
//
// Collective: ends the same way on all ranks; an error of one rank (status, path) is thrown on
// every rank, naming it. After an error the directory holds no new checkpoint, and what this save
// wrote is gone. control, which may be null, counts bytes and cancels between chunks.
//
// Thread rule: one thread at a time per Group.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "checkpoint/contents/contents.h"
#include "checkpoint/format/manifest.h"
#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "core/control.h"
#include "core/environment.h"
#include "core/function_ref.h"

namespace shardrec::checkpoint {

struct SaveAs {
  std::string directory;
  int64_t step = 0;
  std::string run = {};
  int64_t commit = 0;
  // Must the directory be new? Else it may hold anything but a checkpoint.
  bool new_directory = false;
  // Of a delta, the same on all ranks.
  std::optional<ManifestBase> base = {};
};

// A save in its parts, for one that is written while the caller goes on. After open(), one of close() and
// abandon() comes last.
class SaveInParts {
 public:
  explicit SaveInParts(SaveAs as, core::Environment& environment = core::default_environment());
  SaveInParts(const SaveInParts&) = delete;
  SaveInParts& operator=(const SaveInParts&) = delete;

  // Collective: makes the directory, compares what the ranks bring. After an error nothing is left.
  void open(const Group& group, const Contents& contents);
  // Not collective, by any thread: writes the file of this rank; returns its part of the manifest.
  std::string write(const Contents& contents, core::Control* control);
  // Collective: written returns what write() did, or throws what it threw. Then as save().
  void close(const Group& group, core::FunctionRef<std::string()> written,
             core::FunctionRef<void()> published);
  // Not collective, by any thread, in place of close(): removes what this rank has written.
  void abandon() noexcept;

  // Of the manifest, on rank 0 behind close().
  uint64_t checksum() const { return manifest_checksum(manifest_); }

 private:
  template <class Body>
  void or_take_back(const Group& group, Body body);
  void prepare_directory();
  void share_suffix(const Group& group);
  void publish(std::span<const comm::ConstBytes> texts, core::FunctionRef<void()> published);
  void look_for_files(const Manifest& whole);
  void take_back();
  bool published_by_us();
  void remove_own_file() noexcept;

  const SaveAs as_;
  core::Environment& environment_;
  const comm::Operation operation_;
  int rank_ = 0;
  int ranks_ = 1;
  bool made_directory_ = false;     // on rank 0, as the next
  bool files_may_go_ = true;        // after a failure: no manifest names them
  bool manifest_possible_ = false;  // all ranks have written
  std::string suffix_;
  std::string own_file_;  // once it is made
  std::string manifest_;  // on rank 0, once it may be there
};

// published: runs on rank 0 when the manifest has its name; where it throws, the manifest loses it
// again. Throws INVALID_ARGUMENT (a checkpoint is there, a bad path), IO_ERROR, CANCELLED,
// OUT_OF_MEMORY, DISAGREEMENT (ranks bring different things); INTERNAL when boxes do not tile.
void save(const Group& group, const SaveAs& as, const Contents& contents, core::Control* control,
          core::FunctionRef<void()> published,
          core::Environment& environment = core::default_environment());
void save(const Group& group, const SaveAs& as, const Contents& contents, core::Control* control,
          core::Environment& environment = core::default_environment());

}  // namespace shardrec::checkpoint
