// The files of an open checkpoint, as one rank reads them: opened when they are first needed, their
// size and header checked then.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "checkpoint/read/load.h"

namespace shardrec::checkpoint {

class Files {
 public:
  Files(const Opened& opened, core::Environment& environment);

  // Fills `out` from the bytes of a tensor, `begin` bytes behind its first one.
  void read(const Stored& stored, int64_t begin, std::span<std::byte> out);

  // Opens and checks this rank's share of all files, and closes them again.
  void check_share(int rank, int size);
  // Closes what is open; a later read opens it again. Of many checkpoints that are read one after the other, as the
  // deltas of a chain are, only one need have a file open.
  void close() noexcept;

  std::string path_of(const Stored& stored) const;

  // Throws CORRUPT_DATA unless the bytes of chunk `number` of a table's tensor have its checksum. In
  // format 1, which has one of the whole tensor, nothing is compared.
  void check_chunk(const ManifestTensor& tensor, int64_t number,
                   std::span<const std::byte> bytes) const;
  void check_chunk(const ManifestList& list, int64_t number,
                   std::span<const std::byte> bytes) const;

  // "tensor X of PATH is damaged": throws CORRUPT_DATA. table may be empty.
  [[noreturn]] void fail_damaged(const Stored& stored, const std::string& table) const;

 private:
  // In format 1 the header says where tensors begin, later the manifest does.
  struct File {
    std::unique_ptr<core::ReadFile> file;
    std::vector<std::pair<std::string, int64_t>> starts;  // sorted by name
  };

  File& open(int32_t index);
  void check_header(const std::string& path, const ManifestFile& about, const core::ReadFile& file);
  void read_starts(const std::string& path, int32_t index, File& file);

  const Opened& opened_;
  core::Environment& environment_;
  std::vector<File> files_;
};

}  // namespace shardrec::checkpoint
