// One checkpoint as it is served: read and verified once, then immutable, for any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/read/load.h"
#include "core/control.h"
#include "plan/model/model.h"
#include "serving/dense_half.h"
#include "serving/served_table.h"

namespace shardrec::serving {

struct Settings {
  shardrec_served_tables tables = SHARDREC_SERVED_TABLES_MEMORY;
  std::string collection;  // empty: the only one
  std::string bottom;      // empty: "bottom", where it is there and fits
  std::string top;
  bool logits = false;
  // Of NaN and infinities in dense inputs and weights of ids; not SKIP.
  shardrec_non_finite non_finite = SHARDREC_NON_FINITE_ALLOW;
};

struct Version {
  std::shared_ptr<const checkpoint::Opened> opened;  // the checkpoint
  int64_t step = 0;
  plan::Model model;
  plan::OutputLayout outputs;
  std::vector<ServedTable> tables;        // by table of the model
  std::shared_ptr<DenseHalf> dense;       // null: none that fits
  std::shared_ptr<dense::GemmRoom> gemm;  // null: no plug-in
  std::string why_no_scores;              // where either is null

  // The feature of an output that is not 0.
  int32_t sequence(int32_t output) const {
    return outputs.sequences[static_cast<size_t>(output) - 1];
  }
  const ServedTable& table_of(int32_t feature) const {
    return tables[static_cast<size_t>(model.features[static_cast<size_t>(feature)].table)];
  }
  int64_t columns(int32_t output) const {
    return output == 0 ? outputs.width : table_of(sequence(output)).dim;
  }
  bool is(const checkpoint::Opened& other) const {
    return opened->directory == other.directory && opened->checksum == other.checksum;
  }
};

// Errors: shardrec_scorer_open's.
std::unique_ptr<Version> load_version(const std::shared_ptr<const checkpoint::Opened>& opened,
                                      const Settings& settings, core::Control* control,
                                      core::Environment& environment);

// Of a delta whose chain has `now`: the tables of `now` with the rows that have changed since staged beside them, in the
// same memory, and all else as load_version() has it. Null: it is no such delta, or is to be read whole.
std::unique_ptr<Version> stage_version(const std::shared_ptr<const checkpoint::Opened>& opened,
                                       const Settings& settings, const Version& now,
                                       core::Control* control, core::Environment& environment);
// The same with all rows in the tables' memory; write_staged() writes them there, when nobody reads a version without
// these rows staged any more.
std::unique_ptr<const Version> without_staged(const Version& staged);
void write_staged(const std::vector<ServedTable>& tables) noexcept;

// Throws INVALID_ARGUMENT where `next` cannot take the place of `now`: what callers know of the model
// (features, dims, columns of the dense half) would not be so any more.
void require_same_shape(const Version& now, const Version& next);

}  // namespace shardrec::serving
