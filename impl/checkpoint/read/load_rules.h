// What a load may leave out, and what may differ between what was added and the checkpoint: the rules of a warm
// start. The default is strict: each thing is in the checkpoint under its own name, with the same rows, dtype and
// optimizer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/format/manifest.h"

namespace shardrec::checkpoint {

// How many rows a table may have beside those of the checkpoint. The first rows of both are the same ones.
enum class RowsRule : uint8_t { kSame, kMore, kFewer, kAny };
enum class DtypeRule : uint8_t { kSame, kConvert };
// States of the optimizer: read, read of an older checkpoint in the chain where a delta has none, set to 0 as those of a
// new table, or left as they are. The optimizers are of one kind where states are read. With them go a learning rate
// that was set and what is frozen.
enum class StateRule : uint8_t { kLoad, kBase, kReset, kKeep };
constexpr bool reads_states(StateRule rule) {
  return rule == StateRule::kLoad || rule == StateRule::kBase;
}
enum class StepRule : uint8_t { kLoad, kKeep };

struct TableRules {
  bool load = true;                      // else it stays as it is
  std::optional<std::string> from = {};  // its name in the checkpoint, where that is another one
  RowsRule rows = RowsRule::kSame;
  DtypeRule dtype = DtypeRule::kSame;
  StateRule state = StateRule::kLoad;
};

struct CollectionRules {
  bool load = true;
  std::optional<std::string> from = {};
  StepRule step = StepRule::kLoad;
  TableRules others = {};                         // of tables that have none of their own
  std::map<std::string, TableRules> tables = {};  // by name

  const TableRules& of(const std::string& table) const;
};

// Layers or DDP parameters.
struct ItemRules {
  bool load = true;
  std::optional<std::string> from = {};
};

struct LoadRules {
  bool keep_missing = false;  // what the checkpoint has not stays as it is; else it is an error
  bool ignore_extra = false;  // what of the checkpoint nothing has the name of; else it is an error
  CollectionRules other_collections = {};
  std::map<std::string, CollectionRules> collections = {};
  ItemRules other_items = {};
  std::map<std::string, ItemRules> layers = {};
  std::map<std::string, ItemRules> parameters = {};

  const CollectionRules& of(const std::string& collection) const;
  // Of kLayers or kParameters.
  const ItemRules& of(ItemKind kind, const std::string& name) const;
};

// The document that shardrec_checkpoint_load_partial takes. Throws INVALID_ARGUMENT.
LoadRules load_rules_from_json(std::string_view json);

}  // namespace shardrec::checkpoint
