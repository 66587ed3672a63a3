// Options as values: what a shardrec_options handle holds, and what create calls read from one. The
// keys, types, defaults and accepted values are rows of a table (option_table.cpp).
//
//   const Options options = read_options(handle, SHARDREC_OPTIONS_COLLECTION);  // NULL: defaults
//   options.i64(SHARDREC_OPTION_SEED); options.find_i64(SHARDREC_OPTION_THREADS);
//
// Invariant: every value that is set was accepted by its row. Not thread-safe; the handle's calls
// are exclusive.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "handle.h"
#include "plan/model/model.h"
#include "planner/planner.h"
#include "shardrec/options.h"

namespace shardrec::capi {

struct OptionRow;

class Options {
 public:
  // Throws INVALID_ARGUMENT for a kind that is none.
  explicit Options(shardrec_options_kind kind);

  shardrec_options_kind kind() const noexcept { return kind_; }

  // Each throws INVALID_ARGUMENT or UNSUPPORTED and leaves the options as they were.
  void set_i64(shardrec_option key, int64_t value);
  void set_f64(shardrec_option key, double value);
  void set_text(shardrec_option key, std::string_view text);

  // The value set, else the default; throws NOT_FOUND where the default depends on the use.
  int64_t i64(shardrec_option key) const;
  double f64(shardrec_option key) const;
  // For keys of type text the value or its default; for others the text that set_text() takes.
  std::string text(shardrec_option key) const;

  // The same, empty in place of NOT_FOUND.
  std::optional<int64_t> find_i64(shardrec_option key) const;
  std::optional<double> find_f64(shardrec_option key) const;

  // For keys whose values are enumerators: always one of them.
  template <class Enum>
  Enum choice(shardrec_option key) const {
    return static_cast<Enum>(i64(key));
  }

 private:
  using Value = std::variant<int64_t, double, std::string>;
  const OptionRow& row(shardrec_option key) const;

  shardrec_options_kind kind_;
  std::map<shardrec_option, Value> values_;
};

template <>
struct Handle<shardrec_options> {
  using Object = Options;
  static constexpr Kind kKind = Kind::kOptions;
};

// A copy of what a create call was given; NULL: the defaults of the kind. Throws INVALID_HANDLE,
// CLOSED, BUSY, and INVALID_ARGUMENT when the options are of another kind.
Options read_options(const shardrec_options* handle, shardrec_options_kind kind);

// For create calls that no kind of options is for yet: throws INVALID_ARGUMENT where there are some, naming
// what is made.
void refuse_options(const shardrec_options* handle, const char* what);

planner::PlanOptions plan_options(const shardrec_options* handle);
// Reads the keys 100 to 199 of options of kind OPTIMIZER or MLP.
plan::Optimizer optimizer_from(const Options& options);
// A table as options of kind TABLE describe it.
plan::Table table_from(const Options& options, std::string_view name, int64_t rows, int64_t dim);

}  // namespace shardrec::capi
