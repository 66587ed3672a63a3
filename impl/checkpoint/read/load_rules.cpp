#include "checkpoint/read/load_rules.h"

#include <span>
#include <utility>

#include "core/json.h"

namespace shardrec::checkpoint {
namespace {

using core::JsonValue;

template <class Value>
struct Word {
  const char* text;
  Value value;
};

constexpr Word<RowsRule> kRows[] = {{"same", RowsRule::kSame},
                                    {"more", RowsRule::kMore},
                                    {"fewer", RowsRule::kFewer},
                                    {"any", RowsRule::kAny}};
constexpr Word<DtypeRule> kDtypes[] = {{"same", DtypeRule::kSame},
                                       {"convert", DtypeRule::kConvert}};
constexpr Word<StateRule> kStates[] = {{"load", StateRule::kLoad},
                                       {"base", StateRule::kBase},
                                       {"reset", StateRule::kReset},
                                       {"keep", StateRule::kKeep}};
constexpr Word<StepRule> kSteps[] = {{"load", StepRule::kLoad}, {"keep", StepRule::kKeep}};
constexpr Word<bool> kMissing[] = {{"error", false}, {"keep", true}};
constexpr Word<bool> kExtra[] = {{"error", false}, {"ignore", true}};

// How much of a thing is loaded.
enum class Extent : uint8_t { kAll, kListed, kNone };
constexpr Word<Extent> kOfDocument[] = {{"all", Extent::kAll}, {"listed", Extent::kListed}};
constexpr Word<Extent> kOfCollection[] = {
    {"all", Extent::kAll}, {"listed", Extent::kListed}, {"none", Extent::kNone}};
constexpr Word<bool> kOfOne[] = {{"all", true}, {"none", false}};

template <class Value>
Value read_word(const JsonValue& object, const char* key, std::span<const Word<Value>> words,
                Value otherwise) {
  const auto member = object.find(key);
  if (!member) return otherwise;
  std::string accepted;
  for (const Word<Value>& word : words) {
    if (member->text() == word.text) return word.value;
    accepted += (accepted.empty() ? "" : ", ") + std::string(word.text);
  }
  member->fail("\"" + member->text() + "\" is unknown; accepted: " + accepted);
}

template <class Value, size_t kCount>
Value read_word(const JsonValue& object, const char* key, const Word<Value> (&words)[kCount],
                Value otherwise) {
  return read_word(object, key, std::span<const Word<Value>>(words), otherwise);
}

std::optional<std::string> read_from(const JsonValue& object) {
  const auto from = object.find("from");
  return from ? std::optional(from->text()) : std::nullopt;
}

// rows, dtype and state, in place of those that hold around the object.
void read_differences(const JsonValue& object, TableRules& rules) {
  rules.rows = read_word(object, "rows", kRows, rules.rows);
  rules.dtype = read_word(object, "dtype", kDtypes, rules.dtype);
  rules.state = read_word(object, "state", kStates, rules.state);
}

// Reads an array of objects, each of which names another thing.
template <class Rules, class Read>
std::map<std::string, Rules> read_named(const JsonValue& object, const char* key, Read read) {
  std::map<std::string, Rules> out;
  const auto array = object.find(key);
  if (!array) return out;
  (void)array->array_size();
  for (auto entry = array->first(); entry; entry = entry->next()) {
    const JsonValue name = entry->at("name");
    if (!out.emplace(name.text(), read(*entry)).second) {
      name.fail("\"" + name.text() + "\" is named twice");
    }
  }
  return out;
}

CollectionRules read_collection(const JsonValue& object, CollectionRules rules) {
  object.expect_keys({"name", "from", "load", "rows", "dtype", "state", "step", "tables"});
  const Extent extent = read_word(object, "load", kOfCollection, Extent::kAll);
  rules.load = extent != Extent::kNone;
  rules.from = read_from(object);
  rules.step = read_word(object, "step", kSteps, rules.step);
  read_differences(object, rules.others);
  rules.tables = read_named<TableRules>(object, "tables", [&](const JsonValue& entry) {
    entry.expect_keys({"name", "from", "load", "rows", "dtype", "state"});
    TableRules table = rules.others;
    table.load = read_word(entry, "load", kOfOne, true);
    table.from = read_from(entry);
    read_differences(entry, table);
    return table;
  });
  if (extent == Extent::kNone && !rules.tables.empty()) {
    object.at("tables").fail("its collection is not loaded: \"load\" is \"none\"");
  }
  rules.others.load = extent == Extent::kAll;
  return rules;
}

ItemRules read_item(const JsonValue& object) {
  object.expect_keys({"name", "from", "load"});
  return {.load = read_word(object, "load", kOfOne, true), .from = read_from(object)};
}

}  // namespace

const TableRules& CollectionRules::of(const std::string& table) const {
  const auto own = tables.find(table);
  return own == tables.end() ? others : own->second;
}

const CollectionRules& LoadRules::of(const std::string& collection) const {
  const auto own = collections.find(collection);
  return own == collections.end() ? other_collections : own->second;
}

const ItemRules& LoadRules::of(ItemKind kind, const std::string& name) const {
  const auto& named = kind == ItemKind::kLayers ? layers : parameters;
  const auto own = named.find(name);
  return own == named.end() ? other_items : own->second;
}

LoadRules load_rules_from_json(std::string_view json) {
  const core::JsonDocument document(json, "rules of a load", SHARDREC_INVALID_ARGUMENT);
  const JsonValue root = document.root();
  const JsonValue version = root.at("version");
  if (version.integer(1, INT32_MAX) != 1) {
    version.fail(core::sentence("version ", version.integer(1, INT32_MAX),
                                " is of a later release; 1 is accepted"));
  }
  root.expect_keys({"version", "missing", "extra", "load", "rows", "dtype", "state", "step",
                    "collections", "layers", "parameters"});
  LoadRules rules;
  rules.keep_missing = read_word(root, "missing", kMissing, false);
  rules.ignore_extra = read_word(root, "extra", kExtra, false);
  CollectionRules& others = rules.other_collections;
  others.step = read_word(root, "step", kSteps, StepRule::kLoad);
  read_differences(root, others.others);
  rules.collections = read_named<CollectionRules>(
      root, "collections", [&](const JsonValue& entry) { return read_collection(entry, others); });
  rules.layers = read_named<ItemRules>(root, "layers", read_item);
  rules.parameters = read_named<ItemRules>(root, "parameters", read_item);
  const bool all = read_word(root, "load", kOfDocument, Extent::kAll) == Extent::kAll;
  others.load = all;
  rules.other_items.load = all;
  return rules;
}

}  // namespace shardrec::checkpoint
