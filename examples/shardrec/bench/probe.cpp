// `shardrec probe`: what this machine's memory does, or a device's, as a table or as JSON.
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <shardrec/shardrec.hpp>
#include <string>
#include <vector>

#include "command/commands.h"
#include "command/numbers.h"
#include "command/text_table.h"
#include "launch/devices.h"

namespace shardrec::cli {

namespace {

struct ProbeOptions {
  int32_t threads = 0;
  bool cached = false;
  bool json = false;
  std::string device = "cpu";
};

std::string profile(const ProbeOptions& options) {
  return options.cached ? probe_cached_json() : shardrec::probe_json("cpu", options.threads);
}

// What the library had to say about the cache.
void print_warnings() {
  while (const auto message = next_log(0)) {
    if (message->level >= SHARDREC_LOG_WARNING) {
      std::cerr << "shardrec: " << message->text << "\n";
    }
  }
}

std::string rate(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? "-" : fixed(found->get<double>(), 1);
}

void print_table(const nlohmann::json& json) {
  const auto& machine = json.at("machine");
  const auto mib = [&](const char* name) {
    return fixed(machine.at(name).get<double>() / (1 << 20), 0);
  };
  std::cout << machine.at("cpu").get<std::string>() << ", " << machine.at("processors")
            << " processors, L2 " << mib("l2_bytes") << " MiB, L3 " << mib("l3_bytes") << " MiB, "
            << machine.at("instruction_set").get<std::string>() << "; measured in "
            << fixed(json.at("seconds").get<double>(), 1) << " s\n";
  for (const auto& copy : json.at("copies")) {
    std::cout << "copy, " << copy.at("threads")
              << (copy.at("threads") == 1 ? " thread: " : " threads: ")
              << rate(copy, "gb_per_second") << " GB/s read and written\n";
  }
  using Align = TextTable::Align;
  TextTable table({{"access", Align::kLeft},
                   {"row bytes"},
                   {"bag"},
                   {"threads"},
                   {"hint", Align::kLeft},
                   {"rows ahead"},
                   {"pages", Align::kLeft},
                   {"stores", Align::kLeft},
                   {"GB/s"},
                   {"none"},
                   {"t0"},
                   {"t1"},
                   {"nta"},
                   {"streaming"},
                   {"small pages"},
                   {"kernels", Align::kLeft}});
  for (const auto& row : json.at("rows")) {
    const bool gather = row.at("access") == "gather";
    const bool prefetches = row.at("hint") != "none";
    const auto& hints = row.at("by_hint");
    table.add(
        {row.at("access"), row.at("row_bytes").dump(), gather ? row.at("bag_length").dump() : "-",
         row.at("threads").dump(), row.at("hint"),
         prefetches ? row.at("distance_rows").dump() : "-", row.at("pages"), row.at("stores"),
         rate(row, "gb_per_second"), rate(hints, "none"), rate(hints, "t0"), rate(hints, "t1"),
         rate(hints, "nta"), rate(row, "streaming"), rate(row, "small_pages"),
         row.at("kernel_hint").get<std::string>() + " " + row.at("kernel_distance_rows").dump()});
  }
  std::cout << "\n"
            << table.text()
            << "\nGB/s: of the fastest way, then of each hint (huge pages, plain "
               "stores), of streaming stores, of small pages. Kernels: how this "
               "library's prefetch, and how many rows ahead.\n";
}

void print_device_table(const nlohmann::json& json) {
  const auto& machine = json.at("machine");
  std::cout << machine.at("device").get<std::string>() << ", "
            << machine.at("name").get<std::string>() << ", compute capability "
            << machine.at("compute_capability").get<std::string>() << ", "
            << fixed(machine.at("memory_bytes").get<double>() / (1 << 30), 1)
            << " GiB; measured in " << fixed(json.at("seconds").get<double>(), 1) << " s"
            << (json.at("quiet").get<bool>() ? "" : ", while other work disturbed it") << "\n";
  for (const auto& copy : json.at("copies")) {
    std::cout << "copy, " << copy.at("from").get<std::string>() << " to "
              << copy.at("to").get<std::string>() << ": " << rate(copy, "gb_per_second")
              << " GB/s\n";
  }
  TextTable table({{"access", TextTable::Align::kLeft}, {"row bytes"}, {"bag"}, {"GB/s"}});
  for (const auto& row : json.at("rows")) {
    table.add({row.at("access"), row.at("row_bytes").dump(), row.at("bag_length").dump(),
               rate(row, "gb_per_second")});
  }
  std::cout << "\n" << table.text();
}

int probe_device(const ProbeOptions& options) {
  const int64_t device = TablesOn(options.device).device_of({}, 0);
  const auto json = nlohmann::json::parse(shardrec::probe_json("cuda:" + std::to_string(device)));
  if (options.json) {
    std::cout << json.dump() << "\n";
  } else {
    print_device_table(json);
  }
  return 0;
}

int probe(const ProbeOptions& options) {
  if (options.device != "cpu") return probe_device(options);
  const auto json = nlohmann::json::parse(profile(options));
  print_warnings();
  if (options.json) {
    std::cout << json.dump() << "\n";
  } else {
    print_table(json);
  }
  return 0;
}

}  // namespace

Run add_probe(CLI::App& app) {
  auto options = std::make_shared<ProbeOptions>();
  CLI::App* command = app.add_subcommand(
      "probe",
      "Measure this machine's memory in three seconds and keep the result for the kernels; the "
      "machine should be idle.");
  auto* threads =
      command->add_option("--threads", options->threads, "Beside one; default: all processors")
          ->check(CLI::Range(1, 4096));
  auto* cached =
      command->add_flag("--cached", options->cached, "Show what was kept, measure nothing");
  add_device_option(command, options->device,
                    "Whose memory: cpu, cuda:N, or cuda: the first; nothing is kept of a device")
      ->excludes(threads)
      ->excludes(cached);
  command->add_flag("--json", options->json, "One line of JSON");
  return [options] { return probe(*options); };
}

}  // namespace shardrec::cli
