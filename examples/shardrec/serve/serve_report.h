// What `serve-bench` prints: tables for people, or a line of JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serve/refresher.h"
#include "serve/serve_load.h"
#include "serve/serve_options.h"
#include "serve/served_model.h"

namespace shardrec::cli {

struct ServeReport {
  int64_t step = 0;         // that was opened
  double open = 0;          // seconds
  int64_t bytes_read = 0;   // when it was opened
  int64_t table_bytes = 0;  // as they are served
  ServedModel model;
  double ids = 0;  // of a batch, mean
  double unique_rows = 0;
  std::vector<ServeResult> results;
  Refresher::Counts refreshes;
};

// What is served, and how it is called: known before anything is measured.
std::string serve_header(const ServeOptions& options, const ServeReport& report);
// A line for each result.
std::string serve_rates(const ServeOptions& options, const ServeReport& report);
std::string serve_json(const ServeOptions& options, const ServeReport& report);
// One round of --serve.
std::string serve_round_json(const ServeOptions& options, const ServeLoad& load,
                             const ServeResult& result);

}  // namespace shardrec::cli
