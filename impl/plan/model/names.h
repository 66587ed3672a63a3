// The lower-case names of the enumerators that models, plans and checkpoints spell out as text, the
// same that shardrec_options_set_text takes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "shardrec/model.h"
#include "shardrec/options.h"
#include "shardrec/tensor.h"

namespace shardrec::plan {

// The name of a value; "unknown" for a number that is no enumerator.
const char* name_of(shardrec_optimizer value) noexcept;
const char* name_of(shardrec_weight_decay value) noexcept;
const char* name_of(shardrec_row_statistics value) noexcept;
const char* name_of(shardrec_rounding value) noexcept;
const char* name_of(shardrec_init value) noexcept;
const char* name_of(shardrec_sharding value) noexcept;
const char* name_of(shardrec_replication value) noexcept;
const char* name_of(shardrec_balance value) noexcept;
const char* name_of(shardrec_pooling value) noexcept;
const char* name_of(shardrec_dtype value) noexcept;
const char* name_of(shardrec_out_of_range value) noexcept;

// The value of a name, of one of the types above; empty for a name that is none.
template <class Enum>
std::optional<Enum> value_of(std::string_view name) noexcept;

// The accepted names, "a, b, c", for sentences.
template <class Enum>
std::string names_of();

}  // namespace shardrec::plan
