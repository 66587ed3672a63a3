// The engines that carry the messages of communicators, one row each. Everything that names, loads,
// lists or accepts an engine reads these rows.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "comm/communicator.h"
#include "shardrec/comm.h"

namespace shardrec::comm {

struct EngineRow {
  std::string_view name;
  // The C API's value; empty: its groups are made by a function of their own.
  std::optional<shardrec_engine> value{};
  std::string_view constant{};  // the C API's name of the value
  // The package that brings the plug-in libshardrec_NAME.so; empty: the engine is part of the
  // library.
  std::string_view package{};
  // What carries bodies between devices. kNccl: the plug-in carries these alone, and messages of hosts go by another
  // engine.
  DeviceBodies bodies = DeviceBodies::kHost;

  constexpr bool is_plugin() const noexcept { return !package.empty(); }
  // Does its plug-in carry the messages of hosts?
  constexpr bool is_transport() const noexcept {
    return is_plugin() && bodies == DeviceBodies::kHost;
  }
};

inline constexpr std::array kEngines{
    EngineRow{.name = "local"},
    EngineRow{.name = "gloo",
              .value = SHARDREC_ENGINE_GLOO,
              .constant = "SHARDREC_ENGINE_GLOO",
              .package = "libshardrec's Gloo plug-in (built with libgloo-dev, needs libgloo0)"},
    EngineRow{
        .name = "mpi",
        .value = SHARDREC_ENGINE_MPI,
        .constant = "SHARDREC_ENGINE_MPI",
        .package = "libshardrec's MPI plug-in (built with libopenmpi-dev, needs openmpi-bin)"},
    EngineRow{.name = "nccl",
              .value = SHARDREC_ENGINE_NCCL,
              .constant = "SHARDREC_ENGINE_NCCL",
              .package = "libshardrec's NCCL plug-in (package libshardrec-nccl)",
              .bodies = DeviceBodies::kNccl},
};

// An engine between processes; null: there is none of that value.
constexpr const EngineRow* find_engine(shardrec_engine value) noexcept {
  for (const EngineRow& row : kEngines) {
    if (row.value == value) return &row;
  }
  return nullptr;
}
// An engine between processes, by its name; null: there is none of that name.
constexpr const EngineRow* find_process_engine(std::string_view name) noexcept {
  for (const EngineRow& row : kEngines) {
    if (row.value && row.name == name) return &row;
  }
  return nullptr;
}

// The names, or the C API's constants, of all engines between processes, for sentences.
inline std::string process_engine_names(std::string_view between,
                                        std::string_view EngineRow::* which = &EngineRow::name) {
  std::string names;
  for (const EngineRow& row : kEngines) {
    if (!row.value) continue;
    if (!names.empty()) names += between;
    names += row.*which;
  }
  return names;
}

}  // namespace shardrec::comm
