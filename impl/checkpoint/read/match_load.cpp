#include "checkpoint/read/match_load.h"

#include <algorithm>
#include <ranges>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace shardrec::checkpoint {
namespace {

using core::fail;
using core::sentence;

const ManifestItem* item_of(const Opened& opened, ItemKind kind, const std::string& name) {
  for (const ManifestItem& item : opened.manifest.items) {
    if (item.kind == kind && item.name == name && item.rank == 0) return &item;
  }
  return nullptr;
}

MatchedItem match_item(const Opened& opened, const ItemContents& wanted, const LoadRules& rules) {
  const ItemRules& rule = rules.of(wanted.kind, wanted.name);
  const std::string& name = rule.from ? *rule.from : wanted.name;
  MatchedItem out{.saved = item_of(opened, wanted.kind, name)};
  if (!rule.load) return out;
  if (out.saved == nullptr && rules.keep_missing && !rule.from) {
    out.fate = Fate::kMissing;
    return out;
  }
  out.tensors = match(opened, find_item(opened, wanted.kind, name), wanted);
  out.fate = Fate::kLoaded;
  return out;
}

// Rules are of what is wanted.
template <class Rules, class Names>
void check_names(const char* kind, const Rules& rules, Names names) {
  for (const auto& [name, rule] : rules) {
    if (std::ranges::find(names, name) != std::ranges::end(names)) continue;
    fail(SHARDREC_INVALID_ARGUMENT, sentence("the rules name ", kind, " \"", name,
                                             "\", which were not added to this checkpoint"));
  }
}

void check_names(const Contents& wanted, const LoadRules& rules) {
  check_names("the tables of collection", rules.collections,
              wanted.collections | std::views::transform(&CollectionContents::name));
  const auto of_kind = [&](ItemKind kind) {
    return wanted.items |
           std::views::filter([kind](const ItemContents& item) { return item.kind == kind; }) |
           std::views::transform(&ItemContents::name);
  };
  check_names("the layers", rules.layers, of_kind(ItemKind::kLayers));
  check_names("the parameters", rules.parameters, of_kind(ItemKind::kParameters));
}

// Does the load give every cell of the tables and of their states a value?
bool covers(const Opened& opened, const CollectionContents& wanted,
            const MatchedCollection& matched) {
  for (size_t t = 0; t < matched.tables.size(); ++t) {
    const MatchedTable& table = matched.tables[t];
    if (table.fate != Fate::kLoaded) return false;
    const ManifestTable& saved =
        opened.manifest.collections[static_cast<size_t>(matched.collection)]
            .tables[static_cast<size_t>(table.saved)];
    if (saved.rows < wanted.tables[t].rows) return false;
    if (table.state == StateRule::kKeep && part_count(wanted.tables[t].optimizer) > 1) return false;
  }
  return true;
}

void note_loaded(const Opened& opened, CollectionContents& wanted,
                 const MatchedCollection& matched) {
  wanted.loaded =
      matched.fate == Fate::kLoaded &&
      (matched.tables.empty() || std::ranges::find(matched.tables, Fate::kLoaded,
                                                   &MatchedTable::fate) != matched.tables.end());
  if (!wanted.loaded || wanted.not_one_model.empty() || covers(opened, wanted, matched)) return;
  fail(SHARDREC_INVALID_STATE, sentence("collection \"", wanted.name,
                                        "\" cannot be loaded in part: ", wanted.not_one_model));
}

std::vector<Extra> extra_of(const Opened& opened, const MatchedLoad& matched) {
  std::vector<Extra> out;
  for (size_t c = 0; c < opened.manifest.collections.size(); ++c) {
    const ManifestCollection& saved = opened.manifest.collections[c];
    std::vector<char> known(saved.tables.size(), 0);
    bool matched_any = false;
    for (const MatchedCollection& each : matched.collections) {
      if (each.collection != static_cast<int32_t>(c)) continue;
      matched_any = true;
      for (const MatchedTable& table : each.tables) {
        if (table.saved >= 0) known[static_cast<size_t>(table.saved)] = 1;
      }
      // What is left out as a whole is known as a whole.
      if (each.fate == Fate::kLeftOut) std::ranges::fill(known, char{1});
    }
    if (!matched_any) {
      out.push_back({"collection", {}, saved.name});
      continue;
    }
    for (size_t t = 0; t < saved.tables.size(); ++t) {
      if (known[t] == 0) out.push_back({"table", saved.name, saved.tables[t].name});
    }
  }
  for (const ManifestItem& item : opened.manifest.items) {
    if (item.kind == ItemKind::kHostTensor) continue;
    if (std::ranges::find(matched.items, &item, &MatchedItem::saved) != matched.items.end()) {
      continue;
    }
    out.push_back({kind_of(item.kind), {}, item.name});
  }
  return out;
}

[[noreturn]] void fail_extra(const Opened& opened, const std::vector<Extra>& extra) {
  constexpr size_t kNamed = 8;
  std::string names;
  for (size_t i = 0; i < std::min(kNamed, extra.size()); ++i) {
    names += sentence(i == 0 ? "" : ", ", extra[i].kind, " \"", extra[i].name, "\"");
  }
  if (extra.size() > kNamed) names += sentence(" and ", extra.size() - kNamed, " more");
  fail(SHARDREC_NOT_FOUND,
       sentence("the checkpoint ", opened.directory,
                " holds what nothing that was added has the name of: ", names,
                "; \"extra\": \"ignore\" accepts that"),
       {.path = opened.directory});
}

}  // namespace

const char* kind_of(ItemKind kind) { return kind == ItemKind::kLayers ? "layers" : "parameters"; }

MatchedLoad match(const Opened& opened, Contents& wanted, const LoadRules& rules) {
  check_names(wanted, rules);
  MatchedLoad out;
  for (CollectionContents& collection : wanted.collections) {
    out.collections.push_back(match(opened, collection, rules.of(collection.name),
                                    rules.keep_missing ? MissingRule::kKeep : MissingRule::kError));
    note_loaded(opened, collection, out.collections.back());
  }
  for (ItemContents& item : wanted.items) {
    out.items.push_back(match_item(opened, item, rules));
    item.loaded = out.items.back().fate == Fate::kLoaded;
  }
  out.extra = extra_of(opened, out);
  if (!rules.ignore_extra && !out.extra.empty()) fail_extra(opened, out.extra);
  return out;
}

std::vector<NarrowedTable> narrowed_tables(const Opened& opened, const Contents& wanted,
                                           const MatchedLoad& matched) {
  std::vector<NarrowedTable> out;
  for (size_t c = 0; c < matched.collections.size(); ++c) {
    const MatchedCollection& collection = matched.collections[c];
    for (size_t t = 0; t < collection.tables.size(); ++t) {
      const MatchedTable& table = collection.tables[t];
      if (table.fate != Fate::kLoaded) continue;
      const ManifestTable& to = wanted.collections[c].tables[t];
      const ManifestTable& from =
          opened.manifest.collections[static_cast<size_t>(collection.collection)]
              .tables[static_cast<size_t>(table.saved)];
      if (to.dtype != SHARDREC_FLOAT16 || from.dtype == SHARDREC_FLOAT16) continue;
      out.push_back({.wanted_collection = c,
                     .wanted_table = t,
                     .collection = collection.collection,
                     .table = table.saved,
                     .rows = to.rows});
    }
  }
  // Ranks may have added collections in different orders.
  std::ranges::sort(out, {}, [&](const NarrowedTable& table) {
    const CollectionContents& collection = wanted.collections[table.wanted_collection];
    return std::pair(std::string_view(collection.name),
                     std::string_view(collection.tables[table.wanted_table].name));
  });
  return out;
}

}  // namespace shardrec::checkpoint
