// What a disk holds after a power cut, by what POSIX promises: the bytes of a file as they were
// when it was last synced, and the names in a directory as they were when that was. What was not
// synced may be there too, or in part.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "file_faults.h"

namespace shardrec::checkpoint_faults {

// What of the unsynced survives.
struct Survives {
  bool names_of_root = false;
  bool names_of_others = false;
  enum class Bytes { kSynced, kAll, kZeros } bytes = Bytes::kSynced;  // kZeros: all, but as zeros
};

class DiskModel {
 public:
  // Of a directory as it is now, all of it synced.
  explicit DiskModel(const std::string& directory);

  void apply(const file_faults::Change& change);
  // Writes what the disk holds after a power cut to a new directory. False: the same was written
  // before.
  bool write(const Survives& survives, const std::string& directory);

 private:
  struct Node;
  using Names = std::map<std::string, std::shared_ptr<Node>>;
  struct Node {
    bool is_directory = false;
    std::string bytes, synced_bytes;
    Names names, synced_names;
  };

  static std::shared_ptr<Node> read(const std::string& path);
  Node& node_of(const std::string& path) const;
  // The directory of a path and the name in it.
  std::pair<Node*, std::string> place_of(const std::string& path) const;
  std::string text_of(const Node& node, const Survives& survives) const;
  void write_node(const Node& node, const Survives& survives, const std::string& path) const;
  const Names& names_of(const Node& node, const Survives& survives) const;
  static std::string bytes_of(const Node& node, const Survives& survives);

  std::string directory_;
  std::shared_ptr<Node> root_;
  std::set<std::string> written_;
};

}  // namespace shardrec::checkpoint_faults
