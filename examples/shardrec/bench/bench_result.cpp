#include "bench/bench_result.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "command/machine.h"
#include "launch/engines.h"
#include "launch/processes.h"
#include "report/bench_page.h"

namespace shardrec::cli {

void add_report_option(CLI::App* command, std::string& report, CLI::Option* serve) {
  command
      ->add_option("--report", report,
                   "File for a page about it, to be opened in a browser: what was measured as "
                   "bars, the machine. It "
                   "needs no network, and holds the line of JSON, to which it adds fields")
      ->excludes(serve);
}

BenchResult::BenchResult(std::string name, const std::string& report, const std::string& engine)
    : name_(std::move(name)),
      has_report_(!report.empty()),
      report_(in_processes(engine) && own_rank(engine) != 0 ? "" : report) {}

void BenchResult::print(std::string line, const std::string& text) {
  if (has_report_) {
    auto document = nlohmann::ordered_json::parse(line);
    document["measured"] = utc_now();
    document["machine"] = machine_json();
    line = document.dump();
  }
  std::cout << (text.empty() ? line + "\n" : text) << std::flush;
  if (has_report_) report_.write(bench_page(name_, line));
}

}  // namespace shardrec::cli
