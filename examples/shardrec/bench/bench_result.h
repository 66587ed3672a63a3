// What a benchmark ends with: its line of JSON, and with --report a page about it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "report/report_file.h"

namespace shardrec::cli {

// Adds --report; serve: the option of rounds, which have no report.
void add_report_option(CLI::App* command, std::string& report, CLI::Option* serve);

class BenchResult {
 public:
  // name: of what is measured. report: a path, or empty. engine: only the process of rank 0 writes. Throws UserError
  // where the file cannot be written.
  BenchResult(std::string name, const std::string& report, const std::string& engine);

  // Of rank 0; with --report once. text: printed in place of the line; empty: the line is.
  void print(std::string line, const std::string& text = "");

 private:
  std::string name_;
  bool has_report_;
  ReportFile report_;
};

}  // namespace shardrec::cli
