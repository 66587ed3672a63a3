#include "compute/cuda/probe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>
#include <span>

#include "compute/cuda/backend.h"
#include "core/error.h"
#include "core/function_ref.h"
#include "core/json.h"
#include "core/threads.h"

namespace shardrec::compute::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<int64_t, 5> kRowBytes = {64, 128, 256, 512, 1024};
constexpr std::array<int64_t, 2> kBagLengths = {1, 20};
constexpr std::array kCopyPaths = {CopyPath::kToDevice, CopyPath::kToHost, CopyPath::kOnDevice};
constexpr int kRounds = 3;
constexpr int kMostRepeats = 64;
constexpr double kQuiet = 0.9;  // the second best round, of the best
constexpr double kBytesPerGb = 1e9;
constexpr int64_t kIdBytes = sizeof(int64_t);

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Numbers that look random, the same in every run.
struct Random {
  uint64_t state = 1;
  uint64_t next() {
    state += 0x9E3779B97F4A7C15;
    uint64_t z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
};

// The device with a table on it, and what lookups and copies read and write.
class DeviceProbe {
 public:
  DeviceProbe(Backend& backend, const DeviceProbeSizes& sizes, core::Control* control)
      : backend_(backend),
        sizes_(sizes),
        control_(control),
        table_(backend.memory()->allocate(bytes(sizes.table))),
        out_(backend.memory()->allocate(bytes(sizes.gathered))),
        ids_(backend.memory()->allocate(bytes(most_ids() * kIdBytes))),
        lengths_(backend.memory()->allocate(bytes(most_ids() * 4))),
        chunk_ids_(backend.memory()->allocate(bytes((chunks_of(most_ids()) + 1) * 4))),
        host_(backend.host_memory()->allocate(
            bytes(std::max({sizes.copied, most_ids() * kIdBytes, int64_t{4096}})))) {
    const ColumnMap columns{0, 0, kRowBytes.front() / 4};
    backend.transfer().fill({.data = table_->data,
                             .rows = sizes.table / kRowBytes.front(),
                             .width = columns.count,
                             .columns = {&columns, 1},
                             .table = "probe",
                             .low = -1,
                             .high = 1});
  }

  void add_to(DeviceProfile& profile) {
    if (control_ != nullptr) {
      control_->start(std::ssize(kCopyPaths) + std::ssize(kRowBytes) * std::ssize(kBagLengths));
      control_->check();
    }
    for (const CopyPath path : kCopyPaths) {
      profile.copies.push_back({.path = path, .gb_per_second = copy(path)});
      done();
    }
    for (const int64_t row_bytes : kRowBytes) {
      write_ids(row_bytes);
      for (const int64_t bag : kBagLengths) {
        profile.rows.push_back(
            {.row_bytes = row_bytes, .bag_length = bag, .gb_per_second = gather(row_bytes, bag)});
        done();
      }
    }
    profile.quiet = quiet_;
  }

 private:
  static size_t bytes(int64_t count) { return static_cast<size_t>(count); }
  int64_t most_ids() const { return sizes_.gathered / kRowBytes.front(); }
  void done() {
    if (control_ != nullptr) control_->advance(1);
  }
  template <class T>
  std::span<T> on_host(int64_t count) {
    return {static_cast<T*>(static_cast<void*>(host_->data)), static_cast<size_t>(count)};
  }
  template <class T>
  void send(Allocation& to, int64_t count) {
    backend_.transfer().copy(to.data, host_->data, bytes(count) * sizeof(T));
    backend_.wait();
  }

  double copy(CopyPath path) {
    const size_t size = bytes(sizes_.copied);
    std::byte* const table = table_->data;
    switch (path) {
      case CopyPath::kToDevice:
        return rate(sizes_.copied, [&] { backend_.transfer().copy(table, host_->data, size); });
      case CopyPath::kToHost:
        return rate(sizes_.copied, [&] { backend_.transfer().copy(host_->data, table, size); });
      case CopyPath::kOnDevice:
        return rate(2 * sizes_.copied,
                    [&] { backend_.transfer().copy(table + size, table, size); });
    }
    return 0;
  }

  // As many as a lookup has, of random rows.
  void write_ids(int64_t row_bytes) {
    const auto rows = static_cast<uint64_t>(sizes_.table / row_bytes);
    const int64_t count = sizes_.gathered / row_bytes;
    Random random;
    for (int64_t& id : on_host<int64_t>(count)) id = static_cast<int64_t>(random.next() % rows);
    send<int64_t>(*ids_, count);
  }

  double gather(int64_t row_bytes, int64_t bag) {
    const int64_t items = sizes_.gathered / row_bytes / bag;
    const int64_t ids = items * bag;
    const int64_t width = row_bytes / 4;
    std::ranges::fill(on_host<uint32_t>(items), static_cast<uint32_t>(bag));
    send<uint32_t>(*lengths_, items);
    const int64_t chunks = chunks_of(items);
    for (int64_t chunk = 0; chunk <= chunks; ++chunk) {
      on_host<uint32_t>(chunks + 1)[bytes(chunk)] =
          static_cast<uint32_t>(std::min(chunk * kChunk, items) * bag);
    }
    send<uint32_t>(*chunk_ids_, chunks + 1);
    const BagOutputs lookup{
        .table = {.data = table_->data, .stride = bytes(width), .width = width},
        .ids = {.data = ids_->data, .is_64 = true},
        .items = items,
        .lengths = static_cast<const uint32_t*>(static_cast<const void*>(lengths_->data)),
        .chunk_ids = static_cast<const uint32_t*>(static_cast<const void*>(chunk_ids_->data)),
        .out = out_->data,
        .out_stride = bytes(width)};
    return rate(ids * (kIdBytes + row_bytes) + items * row_bytes,
                [&] { backend_.lookup().look_up_outputs({&lookup, 1}, bytes(items * row_bytes)); });
  }

  // GB/s of an operation that moves so many bytes: the best of some rounds, in each of which it
  // follows itself so often that its start does not count.
  double rate(int64_t moved, core::FunctionRef<void()> operation) {
    const auto seconds_of = [&](int repeats) {
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < repeats; ++i) operation();
      backend_.wait();
      return seconds_since(start);
    };
    seconds_of(1);  // all is allocated, and loaded
    const double round = std::chrono::duration<double>(sizes_.round).count();
    const int repeats =
        static_cast<int>(std::clamp(std::ceil(round / seconds_of(1)), 1.0, double{kMostRepeats}));
    std::array<double, kRounds> rounds{};
    for (double& seconds : rounds) seconds = seconds_of(repeats);
    std::ranges::sort(rounds);
    quiet_ = quiet_ && rounds[0] >= kQuiet * rounds[1];
    return static_cast<double>(moved) * repeats / rounds[0] / kBytesPerGb;
  }

  Backend& backend_;
  DeviceProbeSizes sizes_;
  core::Control* control_;
  std::unique_ptr<Allocation> table_, out_, ids_, lengths_, chunk_ids_, host_;
  bool quiet_ = true;
};

const char* end_name(bool on_device) { return on_device ? "device" : "host"; }

// Two digits behind the point: what is behind them is noise.
void write_rate(core::JsonWriter& json, double rate) {
  json.key("gb_per_second").number(std::max(std::round(rate * 100) / 100, 0.01));
}

}  // namespace

DeviceProbeSizes device_probe_sizes(uint64_t free_bytes) {
  constexpr int64_t kStep = 1 << 20;  // bags of the longest rows in a quarter of it
  DeviceProbeSizes sizes;
  const auto quarter = static_cast<int64_t>(free_bytes / 4);
  sizes.table = std::max(std::min(sizes.table, quarter) / kStep, int64_t{1}) * kStep;
  sizes.gathered = std::min(sizes.gathered, sizes.table / 4);
  sizes.copied = std::min(sizes.copied, sizes.table / 4);
  return sizes;
}

DeviceProfile probe_device(int32_t device, core::Control* control) {
  static std::mutex* const probing = std::make_unique<std::mutex>().release();
  const std::unique_lock alone(*probing, std::try_to_lock);
  if (!alone.owns_lock()) {
    core::fail(SHARDREC_BUSY,
               "another probe is running in this process; two would measure each other");
  }
  const Clock::time_point start = Clock::now();
  core::Threads threads(1);
  const std::unique_ptr<Backend> backend =
      make_cuda_backend({.threads = threads, .device = device});
  const host::FoundDevices found = host::find_devices();
  if (std::ssize(found.devices) <= device) core::fail(SHARDREC_DEVICE_ERROR, found.missing);
  DeviceProfile profile{.device = found.devices[static_cast<size_t>(device)]};
  const DeviceProbeSizes sizes = device_probe_sizes(profile.device.free_bytes.value_or(0));
  profile.table_bytes = sizes.table;
  DeviceProbe(*backend, sizes, control).add_to(profile);
  backend->wait();
  profile.seconds = seconds_since(start);
  return profile;
}

std::string profile_to_json(const DeviceProfile& profile) {
  core::JsonWriter json;
  json.begin_object();
  json.key("version").integer(1);
  json.key("machine").begin_object();
  json.key("device").text(core::sentence("cuda:", profile.device.index));
  json.key("name").text(profile.device.name);
  json.key("compute_capability").text(profile.device.capability);
  json.key("memory_bytes").integer(static_cast<int64_t>(profile.device.bytes));
  json.key("l2_bytes").integer(profile.device.l2_bytes);
  json.end_object();
  json.key("table_bytes").integer(profile.table_bytes);
  json.key("seconds").number(profile.seconds);
  json.key("quiet").boolean(profile.quiet);
  json.key("copies").begin_array();
  for (const DeviceCopyRate& copy : profile.copies) {
    json.begin_object();
    json.key("from").text(end_name(copy.path != CopyPath::kToDevice));
    json.key("to").text(end_name(copy.path != CopyPath::kToHost));
    write_rate(json, copy.gb_per_second);
    json.end_object();
  }
  json.end_array();
  json.key("rows").begin_array();
  for (const DeviceGatherRate& row : profile.rows) {
    json.begin_object();
    json.key("access").text("gather");
    json.key("row_bytes").integer(row.row_bytes);
    json.key("bag_length").integer(row.bag_length);
    write_rate(json, row.gb_per_second);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace shardrec::compute::cuda
