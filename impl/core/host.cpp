#include "core/host.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "core/error.h"

namespace shardrec::core {
namespace {

// Not by streams: std::getline takes an allocation that failed for the end of the file. Files of
// /proc say that they have no bytes, so they are read to their end.
std::string text_of(const std::string& path) {
  int file = -1;
  do {
    file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (file < 0 && errno == EINTR);
  std::string text;
  if (file < 0) return text;
  const std::unique_ptr<int, void (*)(int*)> owner(&file, [](int* opened) { ::close(*opened); });
  std::array<char, 4096> block{};
  for (;;) {
    const ssize_t bytes = ::read(file, block.data(), block.size());
    if (bytes > 0) {
      text.append(block.data(), static_cast<size_t>(bytes));
    } else if (bytes == 0 || errno != EINTR) {
      return text;
    }
  }
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  const std::string text = text_of(path);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool contains(const std::vector<std::string_view>& items, std::string_view wanted) {
  return std::find(items.begin(), items.end(), wanted) != items.end();
}

std::optional<uint64_t> number(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// The number that a file begins with; nullopt also for "max" and "-1".
std::optional<uint64_t> number_in(const std::string& path) {
  const auto lines = lines_of(path);
  return lines.empty() ? std::nullopt : number(lines.front());
}

// The number behind a word that begins a line, as in "active_file 4096" and "MemFree:  12 kB".
std::optional<uint64_t> entry(const std::vector<std::string>& lines, std::string_view name) {
  for (const std::string& line : lines) {
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ' ') {
      return number(std::string_view(line).substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

enum class Version : uint8_t { kV1, kV2 };

// The kernel writes blanks in paths as "\040".
std::string unescaped(std::string_view path) {
  std::string out;
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '\\' && i + 3 < path.size()) {
      out +=
          static_cast<char>((path[i + 1] - '0') * 64 + (path[i + 2] - '0') * 8 + path[i + 3] - '0');
      i += 3;
    } else {
      out += path[i];
    }
  }
  return out;
}

// A mounted hierarchy of cgroups: its directory `top` is mounted at `point`.
struct Mount {
  std::string top;
  std::string point;
};

std::optional<Mount> find_mount(const std::string& root, Version version,
                                std::string_view controller) {
  for (const std::string& line : lines_of(root + "/proc/self/mountinfo")) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto about = split(std::string_view(line).substr(0, dash), ' ');
    const auto kind = split(std::string_view(line).substr(dash + 3), ' ');
    if (about.size() < 5 || kind.size() < 3) continue;
    const bool wanted = version == Version::kV2
                            ? kind[0] == "cgroup2"
                            : kind[0] == "cgroup" && contains(split(kind[2], ','), controller);
    if (wanted) return Mount{.top = unescaped(about[3]), .point = unescaped(about[4])};
  }
  return std::nullopt;
}

// The path of this process's cgroup in its hierarchy.
std::optional<std::string> own_cgroup(const std::string& root, Version version,
                                      std::string_view controller) {
  for (const std::string& line : lines_of(root + "/proc/self/cgroup")) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto controllers =
        split(std::string_view(line).substr(first + 1, second - first - 1), ',');
    const bool wanted =
        version == Version::kV2 ? line.starts_with("0::") : contains(controllers, controller);
    if (wanted) return line.substr(second + 1);
  }
  return std::nullopt;
}

// The directories of this process's cgroup and of those it lies in, from the inside out, as far as
// they can be seen from here. In a container the mount may show only the inner ones, or the own one
// at the mount point.
std::vector<std::string> cgroup_directories(const std::string& root, Version version,
                                            std::string_view controller) {
  const auto path = own_cgroup(root, version, controller);
  const auto mount = find_mount(root, version, controller);
  if (!path || !mount) return {};
  std::string inside = *path;
  if (mount->top != "/") {
    const bool below = inside.starts_with(mount->top) &&
                       (inside.size() == mount->top.size() || inside[mount->top.size()] == '/');
    inside = below ? inside.substr(mount->top.size()) : "";
  }
  if (inside.find("..") != std::string::npos) inside.clear();
  while (inside.ends_with('/')) inside.pop_back();
  std::vector<std::string> directories;
  for (;;) {
    std::string& directory = directories.emplace_back(root);
    directory += mount->point;
    directory += inside;
    if (inside.empty()) return directories;
    inside.erase(inside.rfind('/'));
  }
}

CgroupId id_of(const std::string& directory) {
  struct stat about{};
  if (::stat(directory.c_str(), &about) != 0) return {};
  return {.device = about.st_dev, .inode = about.st_ino};
}

// Processors' worth of time; 0: no limit.
double quota_of(const std::string& directory, Version version) {
  std::optional<uint64_t> quota;
  std::optional<uint64_t> period;
  if (version == Version::kV2) {
    const auto lines = lines_of(directory + "/cpu.max");  // "200000 100000" or "max 100000"
    if (lines.empty()) return 0;
    const auto parts = split(lines.front(), ' ');
    if (parts.size() < 2) return 0;
    quota = number(parts[0]);
    period = number(parts[1]);
  } else {
    quota = number_in(directory + "/cpu.cfs_quota_us");
    period = number_in(directory + "/cpu.cfs_period_us");
  }
  if (!quota || !period || *quota == 0 || *period == 0) return 0;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// Bytes below a cgroup's limit, files in memory that the kernel can drop counted as free.
uint64_t room_of(const std::string& directory, Version version) {
  const bool v2 = version == Version::kV2;
  auto limit = number_in(directory + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  const auto used = number_in(directory + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  const auto lines = lines_of(directory + "/memory.stat");
  // Of version 1, that of the cgroups around this one too, seen or not.
  const auto around = entry(lines, "hierarchical_memory_limit");
  if (!v2 && around) limit = std::min(limit.value_or(*around), *around);
  constexpr uint64_t kNoLimit = uint64_t{1} << 62;
  if (!limit || !used || *limit >= kNoLimit) return MemoryRoom::kUnknown;
  const uint64_t droppable =
      std::min(*used, entry(lines, v2 ? "active_file" : "total_active_file").value_or(0) +
                          entry(lines, v2 ? "inactive_file" : "total_inactive_file").value_or(0));
  const uint64_t held = *used - droppable;
  return held >= *limit ? 0 : *limit - held;
}

std::vector<uint8_t> affinity() {
  // The kernel wants room for all processors that it was built for.
  for (size_t most = 1024; most <= size_t{1} << 20; most *= 4) {
    std::vector<uint64_t> words(most / 64);
    auto* set = static_cast<cpu_set_t*>(static_cast<void*>(words.data()));
    if (sched_getaffinity(0, most / 8, set) != 0) continue;
    std::vector<uint8_t> bytes(most / 8);
    for (size_t p = 0; p < most; ++p) {
      const bool allowed = CPU_ISSET_S(p, most / 8, set);
      if (allowed) bytes[p / 8] = static_cast<uint8_t>(bytes[p / 8] | 1U << p % 8);
    }
    while (!bytes.empty() && bytes.back() == 0) bytes.pop_back();
    return bytes;
  }
  return {};
}

bool allows(const ProcessorLimits& limits, size_t processor) {
  return processor / 8 < limits.affinity.size() &&
         (limits.affinity[processor / 8] >> processor % 8 & 1) != 0;
}

}  // namespace

MachineId machine_id(const std::string& root) {
  MachineId id{};
  const auto lines = lines_of(root + "/proc/sys/kernel/random/boot_id");
  if (!lines.empty()) {
    std::copy_n(lines.front().data(), std::min(lines.front().size(), id.size()), id.data());
  } else if (::gethostname(id.data(), id.size()) != 0) {
    id = {};
  }
  return id;
}

ProcessorLimits processor_limits(const std::string& root) {
  ProcessorLimits limits{.affinity = affinity()};
  for (const Version version : {Version::kV2, Version::kV1}) {
    for (const std::string& directory : cgroup_directories(root, version, "cpu")) {
      const double quota = quota_of(directory, version);
      if (quota == 0) continue;
      // Of equal ones the outermost, which more ranks share.
      if (limits.quota == 0 || quota <= limits.quota) {
        limits.quota = quota;
        limits.quota_cgroup = id_of(directory);
      }
    }
  }
  return limits;
}

int processor_share(std::span<const ProcessorLimits> ranks, size_t own) {
  const ProcessorLimits& mine = ranks[own];
  double share = 0;
  for (size_t p = 0; p < mine.affinity.size() * 8; ++p) {
    if (!allows(mine, p)) continue;
    share += 1.0 / static_cast<double>(
                       std::count_if(ranks.begin(), ranks.end(),
                                     [&](const ProcessorLimits& rank) { return allows(rank, p); }));
  }
  if (mine.affinity.empty()) {
    share = static_cast<double>(std::thread::hardware_concurrency()) /
            static_cast<double>(ranks.size());
  }
  if (mine.quota > 0) {
    const auto sharing =
        std::count_if(ranks.begin(), ranks.end(), [&](const ProcessorLimits& rank) {
          return rank.quota > 0 && rank.quota_cgroup == mine.quota_cgroup;
        });
    share = std::min(share, mine.quota / static_cast<double>(sharing));
  }
  constexpr double kRounding = 1e-6;  // of the sums of fractions
  return std::max(1, static_cast<int>(share + kRounding));
}

MemoryRoom memory_room(const std::string& root) {
  MemoryRoom room;
  constexpr uint64_t kKibibyte = 1024;
  if (const auto available = entry(lines_of(root + "/proc/meminfo"), "MemAvailable:")) {
    room.machine = *available * kKibibyte;
  } else if (const long pages = sysconf(_SC_PHYS_PAGES); pages > 0) {
    room.machine = static_cast<uint64_t>(pages) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  for (const Version version : {Version::kV2, Version::kV1}) {
    for (const std::string& directory : cgroup_directories(root, version, "memory")) {
      const uint64_t left = room_of(directory, version);
      // Of equal ones the outermost, which more ranks share.
      if (left == MemoryRoom::kUnknown || left > room.cgroup) continue;
      room.cgroup = left;
      room.cgroup_id = id_of(directory);
      room.cgroup_path = directory;
    }
  }
  return room;
}

void require_memory(uint64_t bytes, const char* what, const std::string& root) {
  const MemoryRoom room = memory_room(root);
  if (bytes <= room.least()) return;
  const std::string where = room.cgroup < room.machine
                                ? sentence("the cgroup ", room.cgroup_path, " leaves ", room.cgroup)
                                : sentence("this machine has ", room.machine, " left");
  fail(SHARDREC_OUT_OF_MEMORY, sentence(what, " of ", bytes, " bytes is too large: ", where),
       {.value = static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX)),
        .limit = static_cast<int64_t>(std::min<uint64_t>(room.least(), INT64_MAX))});
}

std::string thread_limits(const std::string& root) {
  std::string text;
  rlimit limit{};
  if (getrlimit(RLIMIT_NPROC, &limit) == 0) {
    text = limit.rlim_cur == RLIM_INFINITY ? "RLIMIT_NPROC is unlimited"
                                           : sentence("RLIMIT_NPROC is ", uint64_t{limit.rlim_cur});
  }
  for (const Version version : {Version::kV2, Version::kV1}) {
    for (const std::string& directory : cgroup_directories(root, version, "pids")) {
      const auto most = number_in(directory + "/pids.max");
      if (!most) continue;
      append(text, sentence(text.empty() ? "" : "; ", "the cgroup ", directory, " allows ", *most,
                            " tasks and has ", number_in(directory + "/pids.current").value_or(0)));
    }
  }
  return text;
}

}  // namespace shardrec::core
