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

// What a document of rules says to allow what a sentence refuses.
std::string allowed_by(const char* key, const char* value) {
  return sentence("; shardrec_checkpoint_load_partial accepts it with \"", key, "\": \"", value,
                  "\"");
}

void check_rows(const Opened& opened, const ManifestTable& saved, const ManifestTable& wanted,
                RowsRule rule) {
  const bool rows_fit =
      saved.rows == wanted.rows || rule == RowsRule::kAny ||
      (wanted.rows > saved.rows ? rule == RowsRule::kMore : rule == RowsRule::kFewer);
  if (rows_fit && saved.dim == wanted.dim) return;
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("table \"", wanted.name, "\" has ", saved.rows, " rows and ", saved.dim,
                " columns in the checkpoint ", opened.directory, ", ", wanted.rows, " and ",
                wanted.dim, " in the model",
                saved.dim != wanted.dim    ? std::string()
                : wanted.rows > saved.rows ? allowed_by("rows", "more")
                                           : allowed_by("rows", "fewer")),
       {.table = wanted.name, .path = opened.directory});
}

void check_table(const Opened& opened, const ManifestTable& saved, const ManifestTable& wanted,
                 const TableRules& rules) {
  const core::ErrorParts parts{.table = wanted.name, .path = opened.directory};
  check_rows(opened, saved, wanted, rules.rows);
  if (saved.dtype != wanted.dtype && rules.dtype == DtypeRule::kSame) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", wanted.name, "\" is ", plan::name_of(saved.dtype),
                  " in the checkpoint ", opened.directory, ", ", plan::name_of(wanted.dtype),
                  " in the model", allowed_by("dtype", "convert")),
         parts);
  }
  if (saved.optimizer != wanted.optimizer && reads_states(rules.state)) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", wanted.name, "\" of the checkpoint ", opened.directory,
                  " was trained with ", plan::name_of(saved.optimizer), ", the model has ",
                  plan::name_of(wanted.optimizer), allowed_by("state", "reset")),
         parts);
  }
  if (rules.state == StateRule::kLoad && !opened.manifest.states &&
      part_count(saved.optimizer) > 1) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("the checkpoint ", opened.directory, " of step ", opened.manifest.step,
                  " is a delta for scorers, without the states of ", plan::name_of(saved.optimizer),
                  " of table \"", wanted.name,
                  "\"; a training goes on from the whole checkpoint of step ",
                  opened.whole().manifest.step, ", or", allowed_by("state", "base").substr(1),
                  " and takes older states"),
         parts);
  }
}

int32_t collection_of(const Opened& opened, const std::string& name) {
  const auto& all = opened.manifest.collections;
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const ManifestCollection& saved) { return saved.name == name; });
  return found == all.end() ? -1 : static_cast<int32_t>(found - all.begin());
}

[[noreturn]] void fail_missing(const Opened& opened, const char* kind, const std::string& name,
                               core::ErrorParts parts = {}) {
  parts.path = opened.directory;
  fail(SHARDREC_NOT_FOUND,
       sentence("the checkpoint ", opened.directory, " has no ", kind, " \"", name, "\""),
       std::move(parts));
}

// Rules are of tables that there are.
void check_names(const CollectionContents& wanted, const CollectionRules& rules) {
  for (const auto& [name, rule] : rules.tables) {
    if (std::ranges::find(wanted.tables, name, &ManifestTable::name) != wanted.tables.end()) {
      continue;
    }
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("the rules name table \"", name, "\", which collection \"", wanted.name,
                  "\" has not"),
         {.table = name});
  }
}

}  // namespace

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

int32_t find_collection(const Opened& opened, const std::string& name) {
  const int32_t found = collection_of(opened, name);
  if (found < 0) fail_missing(opened, "collection", name);
  return found;
}

MatchedCollection match(const Opened& opened, const CollectionContents& wanted,
                        const CollectionRules& rules, MissingRule missing) {
  // What the rules name by another name they mean to be there.
  const auto may_miss = [&](const std::optional<std::string>& from) {
    return missing == MissingRule::kKeep && !from;
  };
  check_names(wanted, rules);
  const std::string& name = rules.from ? *rules.from : wanted.name;
  MatchedCollection out{.collection = collection_of(opened, name)};
  out.tables.resize(wanted.tables.size());
  if (!rules.load) return out;
  if (out.collection < 0) {
    if (!may_miss(rules.from)) fail_missing(opened, "collection", name);
    out.fate = Fate::kMissing;
    return out;
  }
  out.fate = Fate::kLoaded;
  const ManifestCollection& saved =
      opened.manifest.collections[static_cast<size_t>(out.collection)];
  std::unordered_map<std::string_view, int32_t> index;
  for (const ManifestTable& table : saved.tables) {
    index.emplace(table.name, static_cast<int32_t>(index.size()));
  }
  for (size_t t = 0; t < wanted.tables.size(); ++t) {
    const ManifestTable& table = wanted.tables[t];
    const TableRules& rule = rules.of(table.name);
    const std::string& from = rule.from ? *rule.from : table.name;
    MatchedTable& matched = out.tables[t];
    matched.state = rule.state;
    if (const auto found = index.find(from); found != index.end()) matched.saved = found->second;
    if (!rule.load) continue;
    matched.fate = matched.saved < 0 ? Fate::kMissing : Fate::kLoaded;
    if (matched.fate == Fate::kLoaded) {
      check_table(opened, saved.tables[static_cast<size_t>(matched.saved)], table, rule);
    } else if (!may_miss(rule.from)) {
      fail_missing(opened, "table", from, {.table = table.name});
    }
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
  size_t count = 0;
  for (const DenseTensor& tensor : wanted.tensors) {
    const auto found =
        std::find_if(item.tensors.begin(), item.tensors.end(),
                     [&](const ManifestDense& saved) { return saved.name == tensor.name; });
    if (found == item.tensors.end()) {
      if (!tensor.may_miss) refuse(sentence("it has no tensor \"", tensor.name, "\""));
      out.push_back(nullptr);
      continue;
    }
    if (found->dtype != tensor.dtype || found->shape != tensor.shape) {
      refuse(sentence("tensor \"", tensor.name, "\" has another dtype or shape"));
    }
    out.push_back(&*found);
    ++count;
  }
  if (count != item.tensors.size()) {
    refuse(sentence("it holds ", item.tensors.size(), " tensors, ", count, " are expected"));
  }
  return out;
}

}  // namespace shardrec::checkpoint
