#include "checkpoint/read/load_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/json.h"
#include "plan/model/names.h"

namespace shardrec::checkpoint {
namespace {

using core::JsonWriter;
using Style = JsonWriter::Style;

const char* state_text(const Opened& opened, const ManifestTable& table, StateRule rule) {
  if (part_count(table.optimizer) == 1) return "none";
  switch (rule) {
    case StateRule::kLoad:
      return "loaded";
    case StateRule::kBase:
      return opened.manifest.states ? "loaded" : "base";
    case StateRule::kReset:
      return "reset";
    case StateRule::kKeep:
      return "kept";
  }
  return "";
}

class Report {
 public:
  Report(const Opened& opened, const Contents& wanted, const MatchedLoad& matched,
         const LoadRules& rules, std::span<const NarrowedTable> narrowed)
      : opened_(opened), wanted_(wanted), matched_(matched), rules_(rules) {
    for (const NarrowedTable& table : narrowed) {
      saturated_[{table.wanted_collection, table.wanted_table}] = table.saturated;
    }
  }

  std::string text() {
    json_.begin_object(Style::kLines);
    json_.key("version").integer(1);
    json_.key("directory").text(opened_.directory);
    json_.key("step").integer(opened_.manifest.step);
    write_collections();
    write_tables();
    write_items("layers", ItemKind::kLayers);
    write_items("parameters", ItemKind::kParameters);
    write_not_loaded("missing", Fate::kMissing);
    write_not_loaded("left_out", Fate::kLeftOut);
    json_.key("extra").begin_array(Style::kLines);
    for (const Extra& extra : matched_.extra) write_name(extra.kind, extra.collection, extra.name);
    json_.end_array();
    json_.end_object();
    return json_.take();
  }

 private:
  const ManifestCollection& saved(size_t c) const {
    return opened_.manifest.collections[static_cast<size_t>(matched_.collections[c].collection)];
  }

  void write_collections() {
    json_.key("collections").begin_array(Style::kLines);
    for (size_t c = 0; c < wanted_.collections.size(); ++c) {
      const CollectionContents& collection = wanted_.collections[c];
      if (!collection.loaded) continue;
      json_.begin_object();
      json_.key("name").text(collection.name);
      json_.key("from").text(saved(c).name);
      json_.key("step").integer(collection.step);
      json_.key("step_loaded").boolean(rules_.of(collection.name).step == StepRule::kLoad);
      json_.end_object();
    }
    json_.end_array();
  }

  void write_tables() {
    json_.key("tables").begin_array(Style::kLines);
    for (size_t c = 0; c < matched_.collections.size(); ++c) {
      const std::vector<MatchedTable>& tables = matched_.collections[c].tables;
      for (size_t t = 0; t < tables.size(); ++t) {
        if (tables[t].fate == Fate::kLoaded) write_table(c, t, tables[t]);
      }
    }
    json_.end_array();
  }

  void write_table(size_t c, size_t t, const MatchedTable& matched) {
    const ManifestTable& table = wanted_.collections[c].tables[t];
    const ManifestTable& from = saved(c).tables[static_cast<size_t>(matched.saved)];
    const int64_t rows = std::min(table.rows, from.rows);
    json_.begin_object();
    json_.key("collection").text(wanted_.collections[c].name);
    json_.key("name").text(table.name);
    json_.key("from").text(from.name);
    json_.key("rows").integer(rows);
    json_.key("new_rows").integer(table.rows - rows);
    json_.key("dropped_rows").integer(from.rows - rows);
    json_.key("dtype").text(plan::name_of(table.dtype));
    json_.key("from_dtype").text(plan::name_of(from.dtype));
    json_.key("saturated").integer(saturated(c, t));
    json_.key("state").text(state_text(opened_, table, matched.state));
    json_.end_object();
  }

  int64_t saturated(size_t c, size_t t) const {
    const auto found = saturated_.find({c, t});
    return found == saturated_.end() ? 0 : found->second;
  }

  void write_items(const char* key, ItemKind kind) {
    json_.key(key).begin_array(Style::kLines);
    for (size_t i = 0; i < wanted_.items.size(); ++i) {
      if (wanted_.items[i].kind != kind || !wanted_.items[i].loaded) continue;
      json_.begin_object();
      json_.key("name").text(wanted_.items[i].name);
      json_.key("from").text(matched_.items[i].saved->name);
      json_.end_object();
    }
    json_.end_array();
  }

  // What of that was added stays as it is.
  void write_not_loaded(const char* key, Fate fate) {
    json_.key(key).begin_array(Style::kLines);
    for (size_t c = 0; c < matched_.collections.size(); ++c) {
      const CollectionContents& collection = wanted_.collections[c];
      const MatchedCollection& matched = matched_.collections[c];
      if (matched.fate == fate) write_name("collection", {}, collection.name);
      if (matched.fate != Fate::kLoaded) continue;
      for (size_t t = 0; t < matched.tables.size(); ++t) {
        if (matched.tables[t].fate != fate) continue;
        write_name("table", collection.name, collection.tables[t].name);
      }
    }
    for (size_t i = 0; i < wanted_.items.size(); ++i) {
      if (matched_.items[i].fate != fate) continue;
      write_name(kind_of(wanted_.items[i].kind), {}, wanted_.items[i].name);
    }
    json_.end_array();
  }

  void write_name(std::string_view kind, const std::string& collection, const std::string& name) {
    json_.begin_object();
    json_.key("kind").text(kind);
    if (kind == "table") json_.key("collection").text(collection);
    json_.key("name").text(name);
    json_.end_object();
  }

  const Opened& opened_;
  const Contents& wanted_;
  const MatchedLoad& matched_;
  const LoadRules& rules_;
  std::map<std::pair<size_t, size_t>, int64_t> saturated_;  // by collection and table
  JsonWriter json_;
};

}  // namespace

std::string load_report(const Opened& opened, const Contents& wanted, const MatchedLoad& matched,
                        const LoadRules& rules, std::span<const NarrowedTable> narrowed) {
  return Report(opened, wanted, matched, rules, narrowed).text();
}

}  // namespace shardrec::checkpoint
