#include "checkpoint/read/match.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/error.h"
#include "plan/model/names.h"

namespace shardrec::checkpoint {

namespace {

using core::fail;
using core::sentence;

const char* name_of(ItemKind kind) {
  switch (kind) {
    case ItemKind::kLayers:
      return "stack of layers";
    case ItemKind::kParameters:
      return "set of DDP parameters";
    case ItemKind::kHostTensor:
      return "host tensor";
  }
  return "item";
}

void check_table(const Opened& opened, const ManifestTable& saved, const ManifestTable& wanted) {
  const core::ErrorParts parts{.table = wanted.name, .path = opened.directory};
  if (saved.rows != wanted.rows || saved.dim != wanted.dim) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", wanted.name, "\" has ", saved.rows, " rows and ", saved.dim,
                  " columns in the checkpoint ", opened.directory, ", ", wanted.rows, " and ",
                  wanted.dim, " in the model"),
         parts);
  }
  if (saved.dtype != wanted.dtype) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", wanted.name, "\" is ", plan::name_of(saved.dtype),
                  " in the checkpoint ", opened.directory, ", ", plan::name_of(wanted.dtype),
                  " in the model"),
         parts);
  }
  if (saved.optimizer != wanted.optimizer) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", wanted.name, "\" of the checkpoint ", opened.directory,
                  " was trained with ", plan::name_of(saved.optimizer), ", the model has ",
                  plan::name_of(wanted.optimizer)),
         parts);
  }
}

}  // namespace

int32_t find_collection(const Opened& opened, const std::string& name) {
  const auto& all = opened.manifest.collections;
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const ManifestCollection& saved) { return saved.name == name; });
  if (found == all.end()) {
    fail(SHARDREC_NOT_FOUND,
         sentence("the checkpoint ", opened.directory, " has no collection \"", name, "\""),
         {.path = opened.directory});
  }
  return static_cast<int32_t>(found - all.begin());
}

MatchedCollection match(const Opened& opened, const CollectionContents& wanted) {
  MatchedCollection out{.collection = find_collection(opened, wanted.name), .tables = {}};
  const ManifestCollection& saved =
      opened.manifest.collections[static_cast<size_t>(out.collection)];
  std::unordered_map<std::string_view, int32_t> index;
  for (const ManifestTable& table : saved.tables) {
    index.emplace(table.name, static_cast<int32_t>(index.size()));
  }
  for (const ManifestTable& table : wanted.tables) {
    const auto found = index.find(table.name);
    if (found == index.end()) {
      fail(SHARDREC_NOT_FOUND,
           sentence("the checkpoint ", opened.directory, " has no table \"", table.name, "\""),
           {.table = table.name, .path = opened.directory});
    }
    check_table(opened, saved.tables[static_cast<size_t>(found->second)], table);
    out.tables.push_back(found->second);
  }
  return out;
}

const ManifestItem& find_item(const Opened& opened, ItemKind kind, const std::string& name,
                              int32_t rank) {
  const auto& all = opened.manifest.items;
  const auto found = std::find_if(all.begin(), all.end(), [&](const ManifestItem& item) {
    return item.kind == kind && item.name == name && item.rank == rank;
  });
  if (found == all.end()) {
    fail(SHARDREC_NOT_FOUND,
         sentence("the checkpoint ", opened.directory, " has no ", name_of(kind), " \"", name,
                  "\" of rank ", rank),
         {.value = rank, .path = opened.directory});
  }
  return *found;
}

std::vector<const ManifestDense*> match(const Opened& opened, const ManifestItem& item,
                                        const ItemContents& wanted) {
  const auto refuse = [&](const std::string& what) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("\"", item.name, "\" of the checkpoint ", opened.directory, " is another ",
                  name_of(item.kind), ": ", what),
         {.path = opened.directory});
  };
  std::vector<const ManifestDense*> out;
  for (const DenseTensor& tensor : wanted.tensors) {
    const auto found =
        std::find_if(item.tensors.begin(), item.tensors.end(),
                     [&](const ManifestDense& saved) { return saved.name == tensor.name; });
    if (found == item.tensors.end()) {
      refuse(sentence("it has no tensor \"", tensor.name, "\""));
    }
    if (found->dtype != tensor.dtype || found->shape != tensor.shape) {
      refuse(sentence("tensor \"", tensor.name, "\" has another dtype or shape"));
    }
    out.push_back(&*found);
  }
  if (out.size() != item.tensors.size()) {
    refuse(sentence("it holds ", item.tensors.size(), " tensors, ", out.size(), " are expected"));
  }
  return out;
}

}  // namespace shardrec::checkpoint
