// What `train` has saved, read through the C API on one rank, whatever plan wrote it.
#pragma once

#include <map>
#include <shardrec/shardrec.hpp>
#include <string>
#include <vector>

#include "launch/ranks.h"

namespace shardrec::cli::test {

// Weights and optimizer states of every table ("C1/0", "C1/1"), parameters of the layers
// ("bottom/0"), of the newest checkpoint in a directory.
using SavedModel = std::map<std::string, std::vector<float>>;

// Made again from a checkpoint alone.
struct RestoredModel {
  Model model;
  Collection tables;
  Mlp bottom, top;
};
RestoredModel restore(Comm& comm, const std::string& directory);

SavedModel saved_model(const std::string& directory);

// The same names, and the same bytes behind them.
bool same_bytes(const SavedModel& a, const SavedModel& b);

}  // namespace shardrec::cli::test
