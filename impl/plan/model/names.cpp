#include "plan/model/names.h"

#include <array>
#include <cstddef>
#include <utility>

#include "compute/optimizer.h"

namespace shardrec::plan {

namespace {

template <class Enum>
struct Name {
  Enum value;
  const char* name;
};

template <class Enum>
struct Names;

template <>
struct Names<shardrec_optimizer> {
  static constexpr auto kAll = []<size_t... kIndex>(std::index_sequence<kIndex...> /*all*/) {
    return std::to_array<Name<shardrec_optimizer>>(
        {{compute::kOptimizers[kIndex].optimizer, compute::kOptimizers[kIndex].name}...});
  }(std::make_index_sequence<compute::kOptimizers.size()>{});
};

template <>
struct Names<shardrec_weight_decay> {
  static constexpr auto kAll = std::to_array<Name<shardrec_weight_decay>>({
      {SHARDREC_WEIGHT_DECAY_NONE, "none"},
      {SHARDREC_WEIGHT_DECAY_L2, "l2"},
      {SHARDREC_WEIGHT_DECAY_DECOUPLE, "decouple"},
  });
};

template <>
struct Names<shardrec_row_statistics> {
  static constexpr auto kAll = std::to_array<Name<shardrec_row_statistics>>({
      {SHARDREC_ROW_STATISTICS_ROW, "row"},
      {SHARDREC_ROW_STATISTICS_SHARD, "shard"},
  });
};

template <>
struct Names<shardrec_rounding> {
  static constexpr auto kAll = std::to_array<Name<shardrec_rounding>>({
      {SHARDREC_ROUNDING_NEAREST, "nearest"},
      {SHARDREC_ROUNDING_STOCHASTIC, "stochastic"},
  });
};

template <>
struct Names<shardrec_init> {
  static constexpr auto kAll = std::to_array<Name<shardrec_init>>({
      {SHARDREC_INIT_UNIFORM, "uniform"},
      {SHARDREC_INIT_ZEROS, "zeros"},
  });
};

template <>
struct Names<shardrec_sharding> {
  static constexpr auto kAll = std::to_array<Name<shardrec_sharding>>({
      {SHARDREC_SHARDING_AUTO, "auto"},
      {SHARDREC_SHARDING_TABLE_WISE, "table_wise"},
      {SHARDREC_SHARDING_ROW_WISE, "row_wise"},
      {SHARDREC_SHARDING_COLUMN_WISE, "column_wise"},
      {SHARDREC_SHARDING_TABLE_ROW_WISE, "table_row_wise"},
      {SHARDREC_SHARDING_TABLE_COLUMN_WISE, "table_column_wise"},
      {SHARDREC_SHARDING_GRID, "grid"},
      {SHARDREC_SHARDING_DATA_PARALLEL, "data_parallel"},
      {SHARDREC_SHARDING_MIXED, "mixed"},
  });
};

template <>
struct Names<shardrec_replication> {
  static constexpr auto kAll = std::to_array<Name<shardrec_replication>>({
      {SHARDREC_REPLICATION_AUTO, "auto"},
      {SHARDREC_REPLICATION_SAMPLES, "samples"},
      {SHARDREC_REPLICATION_ROWS, "rows"},
      {SHARDREC_REPLICATION_DENSE, "dense"},
  });
};

template <>
struct Names<shardrec_balance> {
  static constexpr auto kAll = std::to_array<Name<shardrec_balance>>({
      {SHARDREC_BALANCE_BYTES, "bytes"},
      {SHARDREC_BALANCE_TIME, "time"},
  });
};

template <>
struct Names<shardrec_pooling> {
  static constexpr auto kAll = std::to_array<Name<shardrec_pooling>>({
      {SHARDREC_POOLING_SUM, "sum"},
      {SHARDREC_POOLING_MEAN, "mean"},
      {SHARDREC_POOLING_NONE, "none"},
  });
};

template <>
struct Names<shardrec_dtype> {
  static constexpr auto kAll = std::to_array<Name<shardrec_dtype>>({
      {SHARDREC_UINT8, "uint8"},
      {SHARDREC_INT32, "int32"},
      {SHARDREC_INT64, "int64"},
      {SHARDREC_FLOAT16, "float16"},
      {SHARDREC_BFLOAT16, "bfloat16"},
      {SHARDREC_FLOAT32, "float32"},
      {SHARDREC_FLOAT64, "float64"},
  });
};

template <>
struct Names<shardrec_out_of_range> {
  static constexpr auto kAll = std::to_array<Name<shardrec_out_of_range>>({
      {SHARDREC_OUT_OF_RANGE_ERROR, "error"},
      {SHARDREC_OUT_OF_RANGE_DROP, "drop"},
      {SHARDREC_OUT_OF_RANGE_CLAMP, "clamp"},
  });
};

template <class Enum>
const char* find_name(Enum value) noexcept {
  for (const auto& entry : Names<Enum>::kAll) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

}  // namespace

const char* name_of(shardrec_optimizer value) noexcept { return find_name(value); }
const char* name_of(shardrec_weight_decay value) noexcept { return find_name(value); }
const char* name_of(shardrec_row_statistics value) noexcept { return find_name(value); }
const char* name_of(shardrec_rounding value) noexcept { return find_name(value); }
const char* name_of(shardrec_init value) noexcept { return find_name(value); }
const char* name_of(shardrec_sharding value) noexcept { return find_name(value); }
const char* name_of(shardrec_replication value) noexcept { return find_name(value); }
const char* name_of(shardrec_balance value) noexcept { return find_name(value); }
const char* name_of(shardrec_pooling value) noexcept { return find_name(value); }
const char* name_of(shardrec_dtype value) noexcept { return find_name(value); }
const char* name_of(shardrec_out_of_range value) noexcept { return find_name(value); }

template <class Enum>
std::optional<Enum> value_of(std::string_view name) noexcept {
  for (const auto& entry : Names<Enum>::kAll) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

template <class Enum>
std::string names_of() {
  std::string out;
  for (const auto& entry : Names<Enum>::kAll) {
    if (!out.empty()) out += ", ";
    out += entry.name;
  }
  return out;
}

template std::optional<shardrec_optimizer> value_of<shardrec_optimizer>(std::string_view) noexcept;
template std::string names_of<shardrec_optimizer>();
template std::optional<shardrec_weight_decay> value_of<shardrec_weight_decay>(
    std::string_view) noexcept;
template std::string names_of<shardrec_weight_decay>();
template std::optional<shardrec_row_statistics> value_of<shardrec_row_statistics>(
    std::string_view) noexcept;
template std::string names_of<shardrec_row_statistics>();
template std::optional<shardrec_rounding> value_of<shardrec_rounding>(std::string_view) noexcept;
template std::string names_of<shardrec_rounding>();
template std::optional<shardrec_init> value_of<shardrec_init>(std::string_view) noexcept;
template std::string names_of<shardrec_init>();
template std::optional<shardrec_sharding> value_of<shardrec_sharding>(std::string_view) noexcept;
template std::string names_of<shardrec_sharding>();
template std::optional<shardrec_replication> value_of<shardrec_replication>(
    std::string_view) noexcept;
template std::string names_of<shardrec_replication>();
template std::optional<shardrec_balance> value_of<shardrec_balance>(std::string_view) noexcept;
template std::string names_of<shardrec_balance>();
template std::optional<shardrec_pooling> value_of<shardrec_pooling>(std::string_view) noexcept;
template std::string names_of<shardrec_pooling>();
template std::optional<shardrec_dtype> value_of<shardrec_dtype>(std::string_view) noexcept;
template std::string names_of<shardrec_dtype>();
template std::optional<shardrec_out_of_range> value_of<shardrec_out_of_range>(
    std::string_view) noexcept;
template std::string names_of<shardrec_out_of_range>();

}  // namespace shardrec::plan
