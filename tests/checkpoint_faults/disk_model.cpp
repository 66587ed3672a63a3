#include "disk_model.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace shardrec::checkpoint_faults {

namespace fs = std::filesystem;
using file_faults::Change;

DiskModel::DiskModel(const std::string& directory)
    : directory_(directory), root_(read(directory)) {}

std::shared_ptr<DiskModel::Node> DiskModel::read(const std::string& path) {
  auto node = std::make_shared<Node>();
  node->is_directory = fs::is_directory(path);
  if (node->is_directory) {
    for (const auto& entry : fs::directory_iterator(path)) {
      node->names[entry.path().filename().string()] = read(entry.path().string());
    }
    node->synced_names = node->names;
  } else {
    std::ifstream file(path, std::ios::binary);
    node->bytes = node->synced_bytes = std::string{std::istreambuf_iterator<char>(file), {}};
  }
  return node;
}

std::pair<DiskModel::Node*, std::string> DiskModel::place_of(const std::string& path) const {
  if (!path.starts_with(directory_ + "/")) throw std::logic_error(path + " is elsewhere");
  Node* node = root_.get();
  size_t begin = directory_.size() + 1;
  for (;;) {
    const size_t end = path.find('/', begin);
    if (end == std::string::npos) return {node, path.substr(begin)};
    node = node->names.at(path.substr(begin, end - begin)).get();
    begin = end + 1;
  }
}

DiskModel::Node& DiskModel::node_of(const std::string& path) const {
  if (path == directory_) return *root_;
  const auto [directory, name] = place_of(path);
  return *directory->names.at(name);
}

void DiskModel::apply(const Change& change) {
  if (change.kind == Change::Kind::kAppend) {
    node_of(change.path).bytes += change.bytes;
    return;
  }
  if (change.kind == Change::Kind::kSync) {
    Node& node = node_of(change.path);
    node.synced_bytes = node.bytes;
    node.synced_names = node.names;
    return;
  }
  const auto [directory, name] = place_of(change.path);
  switch (change.kind) {
    case Change::Kind::kCreate:
      directory->names[name] = std::make_shared<Node>();
      break;
    case Change::Kind::kMakeDirectory:
      directory->names[name] = std::make_shared<Node>();
      directory->names[name]->is_directory = true;
      break;
    case Change::Kind::kRemove:
      directory->names.erase(name);
      break;
    case Change::Kind::kRename:
    case Change::Kind::kLink: {
      const auto [target, new_name] = place_of(change.to);
      target->names[new_name] = directory->names.at(name);
      if (change.kind == Change::Kind::kRename) directory->names.erase(name);
      break;
    }
    case Change::Kind::kAppend:
    case Change::Kind::kSync:
      break;
  }
}

const DiskModel::Names& DiskModel::names_of(const Node& node, const Survives& survives) const {
  const bool all = &node == root_.get() ? survives.names_of_root : survives.names_of_others;
  return all ? node.names : node.synced_names;
}

std::string DiskModel::bytes_of(const Node& node, const Survives& survives) {
  if (survives.bytes == Survives::Bytes::kAll) return node.bytes;
  std::string bytes = node.synced_bytes;
  if (survives.bytes == Survives::Bytes::kZeros) bytes.resize(node.bytes.size(), '\0');
  return bytes;
}

std::string DiskModel::text_of(const Node& node, const Survives& survives) const {
  if (!node.is_directory) return "file " + bytes_of(node, survives);
  std::string text = "directory ";
  for (const auto& [name, inner] : names_of(node, survives)) {
    const std::string inner_text = text_of(*inner, survives);
    text += name + " " + std::to_string(inner_text.size()) + " " + inner_text;
  }
  return text;
}

void DiskModel::write_node(const Node& node, const Survives& survives,
                           const std::string& path) const {
  if (!node.is_directory) {
    std::ofstream(path, std::ios::binary) << bytes_of(node, survives);
    return;
  }
  fs::create_directory(path);
  for (const auto& [name, inner] : names_of(node, survives)) {
    write_node(*inner, survives, path + "/" + name);
  }
}

bool DiskModel::write(const Survives& survives, const std::string& directory) {
  if (!written_.insert(text_of(*root_, survives)).second) return false;
  fs::remove_all(directory);
  write_node(*root_, survives, directory);
  return true;
}

}  // namespace shardrec::checkpoint_faults
