// What `bench dense` found: one line of JSON.
#pragma once

#include <string>
#include <vector>

#include "bench/dense_options.h"
#include "bench/dense_rank.h"

namespace shardrec::cli {

// What one rank has measured.
struct DenseTimes {
  std::vector<DenseStep> steps;
  double loss = 0;  // DenseRank::loss
};

// To and from plain numbers, for the rank that prints.
std::vector<double> numbers_of(const DenseTimes& times);
DenseTimes dense_times_from(const std::vector<double>& numbers);

// ranks: at least one, with as many steps each, at least one. parameters: elements of the layers.
std::string dense_report(const DenseBenchOptions& options, int64_t parameters,
                         const std::vector<DenseTimes>& ranks);

}  // namespace shardrec::cli
