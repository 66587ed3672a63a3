#include "checkpoint/contents/gathering.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "core/error.h"
#include "dense/fsdp/stack_units.h"

namespace shardrec::checkpoint {
namespace {

bool has_no_states(const CollectionContents& collection) {
  return std::ranges::all_of(collection.tables, [](const ManifestTable& table) {
    return part_count(table.optimizer) == 1;
  });
}

}  // namespace

void Gathering::add(const std::string& name, training::Tables& tables) {
  tables_.emplace_back(name, &tables);
}

void Gathering::add(const std::string& name, dense::Ddp& parameters) {
  parameters_.emplace_back(name, DdpState(parameters));
}

void Gathering::add(const std::string& name, dense::Fsdp& parameters) {
  sharded_.emplace_back(name, FsdpState(parameters));
  sets_.push_back(&parameters);
}

void Gathering::add(const std::string& name, dense::Mlp& layers,
                    const comm::Communicator& communicator) {
  layers_.emplace_back(name, LayersState(layers, set_of(name, layers, communicator)));
}

// That has the parameters of the stack; null: the stack has them.
dense::Fsdp* Gathering::set_of(const std::string& name, const dense::Mlp& layers,
                               const comm::Communicator& communicator) {
  dense::StackUnits* const units = dense::stack_units(layers);
  if (units == nullptr) return nullptr;
  for (dense::Fsdp* set : sets_) {
    if (units->are_of(*set)) return set;
  }
  units_.emplace_back(*units);
  dense::Fsdp& set = units->set();
  if (&set.world() != &communicator) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("the sharded parameters of stack \"", name,
                              "\" were made on another communicator than the checkpoint; the same "
                              "one is accepted"));
  }
  return sets_.emplace_back(&set);
}

std::string Gathering::names_of_sharded() const {
  std::string names;
  for (const auto& [name, state] : layers_) {
    if (state.is_sharded()) names += core::sentence("stack \"", name, "\";");
  }
  for (const auto& [name, state] : sharded_) names += core::sentence("\"", name, "\";");
  return names;
}

void Gathering::gather_shards() {
  for (auto& [name, state] : layers_) {
    if (state.is_sharded()) state.gather();
  }
  for (auto& [name, state] : sharded_) state.gather();
}

template <class ContentsOf>
Contents Gathering::contents_with(const HostTensors& tensors, ContentsOf contents_of) const {
  require_any(!tensors.empty());
  Contents contents;
  for (size_t c = 0; const auto& [name, tables] : tables_) {
    contents.collections.push_back(contents_of(c++, name, *tables));
  }
  add_dense(contents, false);
  for (ItemContents& item : tensors.items()) contents.items.push_back(std::move(item));
  return contents;
}

Contents Gathering::to_save(const HostTensors& tensors) const {
  return contents_with(tensors, [](size_t, const std::string& name, training::Tables& tables) {
    return contents_to_save(tables, name);
  });
}

Contents Gathering::changes_to_save(const HostTensors& tensors, std::span<const MarkedTables> since,
                                    DeltaStates states) const {
  Contents contents =
      contents_with(tensors, [&](size_t c, const std::string& name, training::Tables& tables) {
        return checkpoint::changes_to_save(tables, name, *since[c].mark, states);
      });
  contents.states =
      states == DeltaStates::kWritten || std::ranges::all_of(contents.collections, &has_no_states);
  return contents;
}

std::vector<MarkedTables> Gathering::mark() const {
  std::vector<MarkedTables> marked;
  for (const auto& [name, tables] : tables_) {
    marked.push_back({.name = name,
                      .collection = tables->shared_collection(),
                      .mark = tables->collection().mark_rows()});
  }
  return marked;
}

bool Gathering::is_of(std::span<const MarkedTables> marked) const noexcept {
  return std::ranges::equal(tables_, marked, [](const auto& added, const MarkedTables& each) {
    return added.first == each.name && added.second->shared_collection() == each.collection.lock();
  });
}

std::unique_ptr<Frozen> Gathering::freeze(Contents& contents) const {
  auto frozen = std::make_unique<Frozen>();
  for (ItemContents& item : contents.items) frozen->add(item);
  for (size_t c = 0; const auto& [name, tables] : tables_) {
    frozen->add(*tables, contents.collections[c++]);
  }
  return frozen;
}

uint64_t Gathering::bytes_to_freeze(const Contents& contents) const {
  uint64_t bytes = 0;
  for (const ItemContents& item : contents.items) bytes += checkpoint::bytes_to_freeze(item);
  for (size_t c = 0; const auto& [name, tables] : tables_) {
    bytes += checkpoint::bytes_to_freeze(*tables, contents.collections[c++]);
  }
  return bytes;
}

Contents Gathering::to_load() const {
  require_any(false);
  Contents contents;
  for (const auto& [name, tables] : tables_) {
    contents.collections.push_back(contents_to_load(*tables, name));
  }
  add_dense(contents, true);
  return contents;
}

void Gathering::begin_filling(const Contents& wanted) const noexcept {
  for (size_t c = 0; const auto& [name, tables] : tables_) {
    if (wanted.collections[c++].loaded) tables->begin_filling();
  }
}

void Gathering::apply(const Contents& loaded) noexcept {
  for (size_t c = 0; const auto& [name, tables] : tables_) {
    const CollectionContents& collection = loaded.collections[c++];
    if (collection.loaded) apply_loaded(*tables, collection);
  }
  size_t item = 0;  // as add_dense() lists them
  for (auto& [name, state] : layers_) {
    if (loaded.items[item++].loaded) state.apply();
  }
  for (auto& [name, state] : parameters_) {
    if (loaded.items[item++].loaded) state.apply();
  }
  for (auto& [name, state] : sharded_) {
    if (loaded.items[item++].loaded) state.apply();
  }
}

void Gathering::require_any(bool others) const {
  if (others || !tables_.empty() || !layers_.empty() || !parameters_.empty() || !sharded_.empty()) {
    return;
  }
  core::fail(SHARDREC_INVALID_STATE, "nothing was added to this checkpoint");
}

void Gathering::add_dense(Contents& contents, bool to_load) const {
  for (const auto& [name, state] : layers_) {
    contents.items.push_back({.kind = ItemKind::kLayers,
                              .name = name,
                              .description = state.description(),
                              .tensors = state.tensors(to_load)});
  }
  for (const auto& [name, state] : parameters_) {
    contents.items.push_back({.kind = ItemKind::kParameters,
                              .name = name,
                              .description = {},
                              .tensors = state.tensors()});
  }
  for (const auto& [name, state] : sharded_) {
    contents.items.push_back({.kind = ItemKind::kParameters,
                              .name = name,
                              .description = {},
                              .tensors = state.tensors()});
  }
}

}  // namespace shardrec::checkpoint
