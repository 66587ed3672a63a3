// Saving and loading beside dd, in the same run and on the same disk: the rate of the tables' bytes,
// and what memory it takes beside the tables.
//
//   checkpoint_bench DIRECTORY [GIB=4] [RANKS=2]
//
// Writing is timed until all is on the disk (dd: conv=fsync). Reading is timed twice: from the disk,
// where the system's cache can be dropped (root), and from the cache.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "shardrec/shardrec.hpp"
#include "support/tables_alone.h"

namespace {

constexpr int64_t kDim = 128;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// "VmRSS" now, or "VmHWM", the most since reset_peak(); MiB.
double memory(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == key + ":" && status >> kib) return kib / 1024;
  }
  return 0;
}
void reset_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

bool drop_caches() {
  ::sync();
  std::ofstream file("/proc/sys/vm/drop_caches");
  file << 3 << std::flush;
  return file.good();
}

double dd(const std::string& arguments) {
  return seconds_of([&] {
    if (std::system(("dd bs=1M status=none " + arguments).c_str()) != 0) std::exit(1);
  });
}

struct World {
  World(int ranks, int64_t rows, shardrec_sharding sharding) : group(ranks) {
    for (int rank = 0; rank < ranks; ++rank) comms.emplace_back(group, rank);
    std::vector<std::optional<shardrec::Collection>> made(static_cast<size_t>(ranks));
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < made.size(); ++rank) {
      threads.emplace_back(
          [&, rank] { made[rank].emplace(make(comms[rank], ranks, rows, sharding)); });
    }
    for (std::thread& thread : threads) thread.join();
    for (auto& own : made) tables.push_back(std::move(*own));
  }

  static shardrec::Collection make(shardrec::Comm& comm, int ranks, int64_t rows,
                                   shardrec_sharding sharding) {
    shardrec::Model model;
    shardrec::Options table(SHARDREC_OPTIONS_TABLE);
    table.set(SHARDREC_OPTION_INIT_MIN, -1.0);  // every page is touched
    table.set(SHARDREC_OPTION_INIT_MAX, 1.0);
    model.add_feature(model.add_table("table", rows, kDim, table), "id");
    shardrec::Options kind(SHARDREC_OPTIONS_PLAN);
    kind.set(SHARDREC_OPTION_SHARDING, sharding);
    return shardrec::Collection(comm, model,
                                shardrec::Plan(model, shardrec::Topology(ranks), kind));
  }

  shardrec::Local group;
  std::vector<shardrec::Comm> comms;
  std::vector<shardrec::Collection> tables;
};

using Body = std::function<void(shardrec::Comm&, shardrec::Collection&)>;

// Runs body on every rank; the time of all.
double on_ranks(World& world, const Body& body) {
  return seconds_of([&] {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < world.tables.size(); ++rank) {
      threads.emplace_back([&, rank] { body(world.comms[rank], world.tables[rank]); });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

void report(const char* what, double ours, double theirs, double gib, double extra_mib, int ranks) {
  std::printf("%-34s %8.2f s %8.2f GiB/s   dd %8.2f GiB/s   %5.2f of dd   +%.0f MiB a rank\n", what,
              ours, gib / ours, gib / theirs, theirs / ours, extra_mib / ranks);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: checkpoint_bench DIRECTORY [GIB=4] [RANKS=2]\n");
    return 2;
  }
  const std::string root = std::string(argv[1]) + "/checkpoint_bench";
  const double gib = argc > 2 ? std::atof(argv[2]) : 4;
  const int ranks = argc > 3 ? std::atoi(argv[3]) : 2;
  const auto rows = static_cast<int64_t>(gib * (1 << 30) / (kDim * 4));
  const std::string plain = root + "/plain";
  const std::string blocks = std::to_string(static_cast<int64_t>(gib * 1024));
  std::filesystem::create_directories(root);
  // From the tables themselves while memory is measured; each line in turn with its dd.
  const auto measured = [&](const char* what, double theirs, World& world, const Body& body) {
    reset_peak();
    const double before = memory("VmRSS");
    const double ours = on_ranks(world, body);
    report(what, ours, theirs, gib, memory("VmHWM") - before, ranks);
  };
  {
    World world(ranks, rows, SHARDREC_SHARDING_ROW_WISE);
    const double write = dd("if=/dev/zero of=" + plain + " count=" + blocks + " conv=fsync");
    ::sync();
    measured("save, row-wise", write, world, [&](shardrec::Comm& comm, shardrec::Collection& own) {
      shardrec::test::save_tables(comm, own, root + "/saved");
    });
  }
  for (const auto& [name, sharding] : {std::pair("row-wise", SHARDREC_SHARDING_ROW_WISE),
                                       std::pair("column-wise", SHARDREC_SHARDING_COLUMN_WISE),
                                       std::pair("table-wise", SHARDREC_SHARDING_TABLE_WISE)}) {
    World world(ranks, rows, sharding);
    const auto load = [&](shardrec::Comm& comm, shardrec::Collection& own) {
      shardrec::test::load_tables(comm, own, root + "/saved");
    };
    if (drop_caches()) {
      const double cold = dd("if=" + plain + " of=/dev/null");
      drop_caches();
      measured((std::string("load, ") + name + ", from the disk").c_str(), cold, world, load);
    }
    dd("if=" + plain + " of=/dev/null");
    const double warm = dd("if=" + plain + " of=/dev/null");
    on_ranks(world, load);  // into the cache
    measured((std::string("load, ") + name + ", from the cache").c_str(), warm, world, load);
  }
  std::filesystem::remove_all(root);
  return 0;
}
