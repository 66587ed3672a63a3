// Help texts of options that several subcommands have, so that they say the same.
#pragma once

namespace shardrec::cli {

// What --forward-compression and --backward-compression take.
inline constexpr const char* kCompressions = "none, float16, bfloat16 or int8";
// What --optimizer takes.
inline constexpr const char* kTableOptimizers =
    "Of the tables: sgd, adagrad, rowwise_adagrad, adam, partial_rowwise_adam, lamb, "
    "partial_rowwise_lamb or lars_sgd";

}  // namespace shardrec::cli
