// `shardrec` with --device: the numbers of the CPU, and one sentence where there is no such device. The devices are
// those of CUDA on the CPU, or those of the plug-in that SHARDREC_PLUGIN_PATH names.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <shardrec/shardrec.hpp>

#include "command.h"
#include "launch/devices.h"
#include "saved_model.h"

namespace shardrec::cli::test {
namespace {

// The environment of the commands that one test starts.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    const char* before = getenv(name);
    had_ = before != nullptr;
    if (had_) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (had_) {
      setenv(name_, before_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  bool had_;
  std::string before_;
};

class OnDevice : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new Scratch;
    const Finished result = run({"generate", "--rows", "1500", "--output", data_->path("log.tsv")});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  static void TearDownTestSuite() { delete data_; }

  void SetUp() override {
    if (getenv("SHARDREC_PLUGIN_PATH") == nullptr) {
      if (std::string(SHARDREC_CUDA_ON_CPU).empty()) GTEST_SKIP() << "CUDA on the CPU is not built";
      plugins_.emplace("SHARDREC_PLUGIN_PATH", SHARDREC_CUDA_ON_CPU);
    }
    const Environment memory("SHARDREC_SIMT_MEMORY", "40000000");  // soon probed
    const Finished found =
        run({"bench", "step", "--device", "cuda", "--rows", "4", "--tables", "1", "--ranks", "2",
             "--batch", "2", "--pooling", "1", "--seconds", "0"});
    if (!plugins_ && found.exit_code != 0) GTEST_SKIP() << "no GPU: " << found.err;
    ASSERT_EQ(found.exit_code, 0) << found.err;
  }

  // layers: where they are. On a device they have bits of their own.
  static nlohmann::json trained(const std::vector<std::string>& more,
                                const std::string& layers = "cpu") {
    std::vector<std::string> arguments{
        "train", "--format",  "criteo", "--data", data_->path("log.tsv"), "--batch",
        "128",   "--threads", "1",      "--json", "--dense-device",       layers};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json();
  }
  static void expect_same_run(const nlohmann::json& one, const nlohmann::json& other) {
    for (const char* number : {"first_losses", "test_auc", "test_ne", "train_samples"}) {
      EXPECT_EQ(one.at(number), other.at(number)) << number;
    }
    EXPECT_EQ(one.at("first_losses").size(), 10U);
  }

  static Scratch* data_;
  std::optional<Environment> plugins_;
};
Scratch* OnDevice::data_ = nullptr;

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  return text.substr(text.find_last_of('\n', end) + 1, end - text.find_last_of('\n', end));
}

TEST_F(OnDevice, TrainMakesTheModelOfTheCpu) {
  const Scratch folder;
  const nlohmann::json cpu = trained({"--save", folder.path("cpu")});
  expect_same_run(cpu, trained({"--device", "cuda", "--save", folder.path("cuda")}));
  EXPECT_TRUE(same_bytes(saved_model(folder.path("cpu")), saved_model(folder.path("cuda"))));
}

// So few bytes that no table has room, and enough to load kernels.
TEST_F(OnDevice, TablesAreInTheDevicesMemory) {
  if (!plugins_) GTEST_SKIP() << "only CUDA on the CPU does what the environment asks for";
  const Environment memory("SHARDREC_SIMT_MEMORY", "3000");
  const std::string golden = SHARDREC_GOLDEN;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"train", "--format", "criteo", "--data", data_->path("log.tsv")},
        {"bench", "lookup", "--tables", "1", "--rows", "500"},
        {"replay", golden + "/sharded.json", "--case", "s18"}}) {
    std::vector<std::string> on_device = arguments;
    on_device.insert(on_device.end(), {"--device", "cuda:0"});
    const Finished result = run(on_device);
    EXPECT_EQ(result.exit_code, 1) << arguments.front();
    EXPECT_NE((result.out + result.err).find("CUDA could not allocate"), std::string::npos)
        << result.out << result.err;
  }
}

TEST_F(OnDevice, RanksOfAMachineTakeItsDevicesInTurn) {
  const Environment devices("SHARDREC_SIMT_DEVICES", "2");
  const auto count =
      static_cast<int64_t>(nlohmann::json::parse(capabilities_json()).at("cuda_devices").size());
  const RankGroup threads{.ranks = 4, .ranks_per_node = 1};
  const RankGroup processes{.ranks = 6, .ranks_per_node = 3, .engine = "gloo"};
  const TablesOn all("cuda");
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(all.device_of(threads, rank), rank % count);
  for (int rank = 0; rank < 6; ++rank) EXPECT_EQ(all.device_of(processes, rank), rank % 3 % count);
  const int64_t last = count - 1;
  EXPECT_EQ(TablesOn("cuda:" + std::to_string(last)).device_of(threads, 2), last);
  EXPECT_EQ(TablesOn("cpu").device_of(threads, 2), -1);
}

TEST_F(OnDevice, RanksOnSeveralDevicesMakeTheModelOfTheCpu) {
  const Environment devices("SHARDREC_SIMT_DEVICES", "2");
  const std::vector<std::string> ranks{"--ranks", "3", "--sharding", "mixed"};
  std::vector<std::string> on_device = ranks;
  on_device.insert(on_device.end(), {"--device", "cuda"});
  expect_same_run(trained(ranks), trained(on_device));
}

// What a trace has of devices: how often each name is there, by rank. Spans of a row do not overlap; ids are routed behind
// the beginning of the call of their rank that asks for it.
std::map<int64_t, std::map<std::string, int64_t>> device_spans(const std::string& path) {
  constexpr double kUnsure = 10000;  // us, where the processor has other things to do
  const nlohmann::json trace = nlohmann::json::parse(read_file(path));
  std::map<int64_t, std::multiset<double>> begins;  // of calls of the host, by rank
  std::map<int64_t, std::multiset<double>> routes;
  std::map<std::pair<int64_t, int64_t>, std::multimap<double, double>> rows;  // from, to
  std::map<int64_t, std::map<std::string, int64_t>> names;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const int64_t rank = event.at("pid");
    const double from = event.at("ts");
    const double to = from + event.at("dur").get<double>();
    if (event.at("cat") == "device") {
      rows[{rank, event.at("tid").get<int64_t>()}].emplace(from, to);
      if (event.at("name") == "route") routes[rank].insert(from);
      ++names[rank][event.at("name")];
    } else if (event.at("name") == "begin") {
      begins[rank].insert(from);
    }
  }
  for (const auto& [row, spans] : rows) {
    double before = 0;
    for (const auto& [from, to] : spans) {
      EXPECT_GE(from, before - 0.01);
      before = to;
    }
  }
  for (const auto& [rank, calls] : begins) {
    EXPECT_EQ(routes[rank].size(), calls.size()) << "rank " << rank;
    auto route = routes[rank].begin();
    for (auto call = calls.begin(); call != calls.end() && route != routes[rank].end(); ++call) {
      EXPECT_GE(*route++, *call - kUnsure) << "rank " << rank;
    }
  }
  return names;
}

TEST_F(OnDevice, ProcessesMakeTheModelOfTheCpu) {
  if (capabilities_json().find("\"gloo\"") == std::string::npos)
    GTEST_SKIP() << "the engine gloo was not built";
  const Scratch folder;
  const std::vector<std::string> processes{"--ranks", "2", "--engine", "gloo"};
  std::vector<std::string> on_device = processes;
  on_device.insert(on_device.end(), {"--device", "cuda", "--trace", folder.path("trace.json")});
  expect_same_run(trained(processes), trained(on_device));
  auto spans = device_spans(folder.path("trace.json"));
  for (const int64_t rank : {0, 1}) {
    for (const char* phase : {"route", "lookup", "update"}) {
      EXPECT_GE(spans[rank][phase], 10) << "rank " << rank << ", " << phase;
    }
  }
}

TEST_F(OnDevice, ProcessesOverNcclMakeTheModelOfTheCpu) {
  if (!plugins_) GTEST_SKIP() << "the tests' NCCL is for CUDA on the CPU";
  const Environment devices("SHARDREC_SIMT_DEVICES", "2");
  const Environment library("SHARDREC_NCCL_LIBRARY", SHARDREC_FAKE_NCCL);
  const Environment fatal("SHARDREC_FAKE_NCCL_FATAL", "1");
  const std::vector<std::string> sharding{"--ranks", "2", "--sharding", "mixed"};
  std::vector<std::string> over_nccl = sharding;
  over_nccl.insert(over_nccl.end(), {"--device", "cuda", "--engine", "nccl"});
  expect_same_run(trained(sharding), trained(over_nccl));
}

TEST_F(OnDevice, WithoutNcclARunOverItSaysWhatIsMissing) {
  const Environment library("SHARDREC_NCCL_LIBRARY", "/nowhere/libnccl.so.2");
  const Finished result = run({"train", "--format", "criteo", "--data", data_->path("log.tsv"),
                               "--ranks", "2", "--engine", "nccl", "--device", "cuda"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("needs NVIDIA's NCCL, 2.19 or newer"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("/nowhere/libnccl.so.2"), std::string::npos) << result.err;
}

TEST_F(OnDevice, ARunGoesOnOnTheOtherKindOfDevice) {
  const Scratch folder;
  const std::string whole = folder.path("whole");
  const std::string halves = folder.path("halves");
  trained({"--epochs", "2", "--save", whole});
  trained({"--epochs", "1", "--save", halves, "--device", "cuda"});
  trained({"--epochs", "2", "--save", halves, "--resume"});
  EXPECT_TRUE(same_bytes(saved_model(whole), saved_model(halves)));
}

// The tables' bits follow from the gradients of the layers.
void expect_near(const nlohmann::json& one, const nlohmann::json& other) {
  for (size_t step = 0; step < 10; ++step) {
    EXPECT_NEAR(one.at("first_losses").at(step).get<double>(),
                other.at("first_losses").at(step).get<double>(), 1e-4);
  }
  EXPECT_NEAR(one.at("test_auc").get<double>(), other.at("test_auc").get<double>(), 1e-3);
}

class LayersOnDevice : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped() || !plugins_) return;
    library_.emplace("SHARDREC_CUBLASLT_LIBRARY", SHARDREC_FAKE_CUBLASLT);
  }

  std::optional<Environment> library_;
};

TEST_F(LayersOnDevice, TrainFollowsTheCpu) {
  const Environment devices("SHARDREC_SIMT_DEVICES", "2");
  const nlohmann::json cpu = trained({});
  const nlohmann::json device = trained({"--device", "cuda"}, "device");
  expect_near(device, cpu);
  EXPECT_NE(device.at("first_losses"), cpu.at("first_losses"));  // it did compute there
  EXPECT_EQ(trained({"--device", "cuda"}, "auto").at("first_losses"), device.at("first_losses"));
  const Scratch folder;
  expect_near(
      trained({"--device", "cuda", "--ranks", "2", "--trace", folder.path("trace.json")}, "device"),
      cpu);
  auto spans = device_spans(folder.path("trace.json"));
  for (const int64_t rank : {0, 1}) {
    for (const char* name : {"lookup", "dense copy", "dense forward", "dense backward",
                             "dense step", "gradient sums", "update"}) {
      EXPECT_GE(spans[rank][name], 10) << "rank " << rank << ", " << name;
    }
  }
  // Ranks with unequal shares of a batch, which multiply their gradients there.
  expect_near(trained({"--device", "cuda", "--ranks", "3"}, "device"), cpu);
}

TEST_F(LayersOnDevice, NcclAddsTheirGradientsUpWhereItIsAskedTo) {
  if (!plugins_) GTEST_SKIP() << "the tests' NCCL is for CUDA on the CPU";
  const Environment devices("SHARDREC_SIMT_DEVICES", "2");
  const Environment library("SHARDREC_NCCL_LIBRARY", SHARDREC_FAKE_NCCL);
  const Environment fatal("SHARDREC_FAKE_NCCL_FATAL", "1");
  const std::vector<std::string> ranks{"--ranks",         "3",   "--device", "cuda",
                                       "--ddp-reduction", "nccl"};
  std::vector<std::string> over_nccl = ranks;
  over_nccl.insert(over_nccl.end(), {"--engine", "nccl"});
  const nlohmann::json by_nccl = trained(over_nccl, "device");
  const nlohmann::json ordered = trained({"--ranks", "3", "--device", "cuda"}, "device");
  expect_near(by_nccl, ordered);
  EXPECT_NE(by_nccl.at("first_losses"), ordered.at("first_losses"));  // it did add up

  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"train", "--format", "criteo", "--data",
                                       data_->path("log.tsv")};
    arguments.insert(arguments.end(), ranks.begin(), ranks.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished result = run(arguments);
    EXPECT_EQ(result.exit_code, 1);
    return result.err;
  };
  const std::string local = refused({});
  EXPECT_NE(local.find("--ddp-reduction nccl needs --engine nccl"), std::string::npos) << local;
  const std::string on_cpu = refused({"--dense-device", "cpu"});
  EXPECT_NE(on_cpu.find("--ddp-reduction nccl needs layers on devices"), std::string::npos)
      << on_cpu;
}

// Before the first step, and not by the first sync.
TEST_F(LayersOnDevice, ASyncInPassingIsRefusedOverNccl) {
  if (!plugins_) GTEST_SKIP() << "the tests' NCCL is for CUDA on the CPU";
  const Environment devices("SHARDREC_SIMT_DEVICES", "2");
  const Environment library("SHARDREC_NCCL_LIBRARY", SHARDREC_FAKE_NCCL);
  const Finished result =
      run({"train", "--format", "criteo", "--data", data_->path("log.tsv"), "--ranks", "2",
           "--sharding-group-size", "1", "--sync-overlap", "--device", "cuda", "--engine", "nccl"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("--sync-overlap does not go with --engine nccl"), std::string::npos)
      << result.err;
}

// Whole layers on the device, and shards in the host's memory: the bits of data-parallel layers there.
TEST_F(LayersOnDevice, ShardedLayersTrainToTheModelOfDdpThere) {
  const Scratch folder;
  const auto with = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(), {"--device", "cuda", "--ranks", "2", "--save", folder.path(name)});
    return trained(more, "device");
  };
  const nlohmann::json whole = with("ddp", {});
  for (const std::string strategy : {"full_shard", "shard_grad_op", "no_shard"}) {
    expect_same_run(with(strategy, {"--dense", "fsdp", "--fsdp-strategy", strategy}), whole);
    EXPECT_EQ(differences(folder.path("ddp"), folder.path(strategy)), "");
  }
}

// Of most steps nobody asks for the loss.
TEST_F(LayersOnDevice, TheLossThatIsAskedForChangesNothing) {
  const Scratch folder;
  const auto trained_by_16 = [](const std::string& layers, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "train",    "--format", "criteo",         "--data", data_->path("log.tsv"),
        "--batch",  "16",       "--threads",      "1",      "--json",
        "--device", "cuda",     "--dense-device", layers};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json();
  };
  const nlohmann::json device = trained_by_16("device", {});
  EXPECT_GT(device.at("train_samples").get<int64_t>(),
            16 * 52);  // more than the first losses, and a window
  const nlohmann::json saved =
      trained_by_16("device", {"--save", folder.path("model"), "--save-every", "3"});
  for (const char* number : {"first_losses", "test_auc", "test_ne"}) {
    EXPECT_EQ(saved.at(number), device.at(number)) << number;
  }
  const nlohmann::json cpu = trained_by_16("cpu", {});
  EXPECT_EQ(device.at("first_losses").size(), 20U);
  expect_near(device, cpu);
  EXPECT_NEAR(device.at("test_ne").get<double>(), cpu.at("test_ne").get<double>(), 1e-3);
}

TEST_F(LayersOnDevice, AModelThatDivergedIsNoticed) {
  const Scratch folder;
  std::vector<std::string> arguments{
      "train",    "--format", "criteo",         "--data", data_->path("log.tsv"),
      "--device", "cuda",     "--dense-device", "device"};
  std::vector<std::string> fast = arguments;
  fast.insert(fast.end(), {"--dense-optimizer", "sgd", "--dense-learning-rate", "1e30", "--save",
                           folder.path("model"), "--save-every", "1"});
  const Finished diverged = run(fast);
  EXPECT_EQ(diverged.exit_code, 1);
  EXPECT_NE(diverged.err.find("has diverged: behind step "), std::string::npos) << diverged.err;
  // By the metrics of a test, which asks for no loss.
  arguments.insert(arguments.end(), {"--load", folder.path("model"), "--epochs", "0"});
  const Finished tested = run(arguments);
  EXPECT_EQ(tested.exit_code, 1);
  EXPECT_NE(tested.err.find("has diverged: behind step 0 the loss is nan"), std::string::npos)
      << tested.err;
}

// The same elements are dropped there.
TEST_F(LayersOnDevice, ADcnWithDropoutFollowsTheCpu) {
  const std::vector<std::string> dcn{
      "--arch",    "dcn", "--cross-layers", "2", "--cross-rank", "4", "--layer-norm",
      "--dropout", "0.2", "--dim",          "4", "--bottom",     "8", "--top",
      "8,4"};
  std::vector<std::string> on_device = dcn;
  on_device.insert(on_device.end(), {"--device", "cuda"});
  expect_near(trained(on_device, "device"), trained(dcn));
}

TEST_F(LayersOnDevice, PrecisionsFollowTheCpu) {
  const nlohmann::json float32 = trained({});
  for (const char* precision : {"bfloat16", "float16"}) {
    SCOPED_TRACE(precision);
    const nlohmann::json cpu = trained({"--precision", precision});
    const nlohmann::json device = trained({"--precision", precision, "--device", "cuda"}, "device");
    EXPECT_NE(cpu.at("first_losses"), float32.at("first_losses"));
    for (size_t step = 0; step < 10; ++step) {
      const double loss = cpu.at("first_losses").at(step);
      EXPECT_NEAR(device.at("first_losses").at(step).get<double>(), loss, 2e-3);
      EXPECT_NEAR(float32.at("first_losses").at(step).get<double>(), loss, 2e-2);
    }
    EXPECT_NEAR(device.at("test_auc").get<double>(), cpu.at("test_auc").get<double>(), 5e-3);
  }
  const Finished refused = run(
      {"train", "--format", "criteo", "--data", data_->path("log.tsv"), "--precision", "tfloat32"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("--precision tfloat32 needs layers on devices"), std::string::npos)
      << refused.err;
}

TEST_F(LayersOnDevice, BenchDenseTrainsThere) {
  const auto measured = [](const std::string& device) {
    const Finished result = run({"bench", "dense", "--layers", "9-17-3", "--batch", "20", "--ranks",
                                 "2", "--seconds", "0", "--device", device});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json();
  };
  const nlohmann::json cpu = measured("cpu");
  const nlohmann::json device = measured("cuda");
  EXPECT_EQ(device.at("device"), "cuda");
  EXPECT_NEAR(device.at("loss").get<double>(), cpu.at("loss").get<double>(), 1e-4);
}

TEST_F(LayersOnDevice, ARunGoesOnWithItsLayersOnTheCpu) {
  const Scratch folder;
  const std::string halves = folder.path("halves");
  trained({"--epochs", "1", "--save", halves, "--device", "cuda"}, "device");
  const nlohmann::json whole = trained({"--epochs", "2"});
  const nlohmann::json second = trained({"--epochs", "2", "--save", halves, "--resume"});
  EXPECT_NEAR(second.at("test_auc").get<double>(), whole.at("test_auc").get<double>(), 1e-3);
}

TEST_F(OnDevice, WithoutCublasLayersAreOnTheCpuAndThatIsSaid) {
  const Environment library("SHARDREC_CUBLASLT_LIBRARY", "/nowhere/libcublasLt.so.13");
  std::vector<std::string> arguments{
      "train",   "--format", "criteo",   "--data", data_->path("log.tsv"),
      "--batch", "128",      "--device", "cuda"};
  const Finished automatic = run(arguments);
  EXPECT_EQ(automatic.exit_code, 0) << automatic.err;
  EXPECT_NE(automatic.out.find("the layers are on the CPU: "), std::string::npos) << automatic.out;
  arguments.insert(arguments.end(), {"--dense-device", "device"});
  const Finished forced = run(arguments);
  EXPECT_EQ(forced.exit_code, 1);
  EXPECT_NE(forced.err.find("--dense-device device: "), std::string::npos) << forced.err;
}

TEST_F(OnDevice, RecordedCasesPass) {
  const std::string golden = SHARDREC_GOLDEN;
  const Finished sharded = run({"replay", golden + "/sharded.json", "--device", "cuda"});
  EXPECT_EQ(sharded.exit_code, 0) << sharded.out << sharded.err;
  EXPECT_EQ(last_line(sharded.out),
            "19 passed, 0 failed, 0 unsupported, 0 not comparable of 19 cases");
  const Finished replicas = run({"replay", golden + "/replicas.json", "--device", "cuda:0"});
  EXPECT_EQ(replicas.exit_code, 0) << replicas.out << replicas.err;
  EXPECT_EQ(last_line(replicas.out),
            "3 passed, 0 failed, 0 unsupported, 0 not comparable of 3 cases");
}

// Ranks that share a device share its bandwidth too.
TEST_F(OnDevice, BenchMeasuresStepsThere) {
  const Environment memory("SHARDREC_SIMT_MEMORY", "40000000");
  const Finished result =
      run({"bench", "step", "--tables", "2", "--rows", "500", "--dim", "8", "--batch", "16",
           "--pooling", "3", "--ranks", "2", "--seconds", "0.05", "--device", "cuda"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json json = result.json();
  EXPECT_EQ(json.at("device"), "cuda");
  EXPECT_EQ(json.at("ids"), 2 * 16 * 3);
  EXPECT_GT(json.at("update_ms_median"), 0);
  EXPECT_EQ(json.at("limit"), "probed");
  for (const char* share : {"begin_share", "forward_share", "backward_share", "step_share"}) {
    EXPECT_GT(json.at(share), 0) << share;
  }
}

struct CallsOfAStep {
  double launches = 0;
  double calls = 0;
  double waits = 0;

  explicit CallsOfAStep(const nlohmann::json& line)
      : launches(line.at("kernel_launches")),
        calls(line.at("driver_calls")),
        waits(line.at("host_waits")) {}
};

// Each step launches the same. Ranks in processes count what ranks in threads do.
TEST_F(OnDevice, BenchCountsWhatAStepCalls) {
  const Environment memory("SHARDREC_SIMT_MEMORY", "40000000");
  const auto calls_of = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"bench",   "step",      "--tables", "2",         "--rows",
                                       "500",     "--dim",     "8",        "--batch",   "16",
                                       "--ranks", "2",         "--device", "cuda:0",    "--batches",
                                       "2",       "--pooling", "3",        "--seconds", "0.05"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return CallsOfAStep(result.json());
  };
  const CallsOfAStep threads = calls_of({});
  EXPECT_EQ(threads.launches, std::round(threads.launches));
  EXPECT_GT(threads.launches, 10);
  EXPECT_GT(threads.waits, 2) << "two are the benchmark's own";
  EXPECT_GT(threads.calls, threads.launches + threads.waits);
  EXPECT_LT(threads.calls, 10 * threads.launches);
  if (capabilities_json().find("\"gloo\"") == std::string::npos) return;
  const CallsOfAStep by_ipc = calls_of({"--engine", "gloo"});
  const Environment through_hosts("SHARDREC_DEVICE_IPC", "0");
  const CallsOfAStep copied = calls_of({"--engine", "gloo"});
  EXPECT_EQ(by_ipc.launches, copied.launches);
  EXPECT_NEAR(copied.calls, threads.calls, 0.5 * threads.calls);
  // Events that peers ask for take the place of waits.
  EXPECT_LT(by_ipc.waits, copied.waits);
  EXPECT_LT(by_ipc.calls, 2 * copied.calls);
}

TEST_F(OnDevice, BenchPrintsATableForPeople) {
  const Environment memory("SHARDREC_SIMT_MEMORY", "40000000");
  const Finished result =
      run({"bench", "lookup", "--tables", "2", "--rows", "500", "--dim", "8", "--batch", "16",
           "--pooling", "3", "--seconds", "0.02", "--device", "cuda", "--text"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find(" kernel launches, "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("probed before the first step"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find('{'), std::string::npos) << result.out;
}

// Shares of what the device itself gathers, which is probed first.
TEST_F(OnDevice, BenchOfOneRankSaysHowMuchOfTheDevicesMemoryItUses) {
  const Environment memory("SHARDREC_SIMT_MEMORY", "40000000");
  const std::vector<std::string> shape{
      "bench",   "lookup", "--tables", "2",         "--rows",    "500", "--dim",     "16",
      "--batch", "64",     "--ids",    "zipf:1.05", "--batches", "2",   "--seconds", "0.05"};
  std::vector<std::string> on_device = shape;
  on_device.insert(on_device.end(), {"--device", "cuda"});
  const Finished result = run(on_device);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json json = result.json();
  for (const char* share : {"forward_share", "update_share", "backward_share"}) {
    EXPECT_GT(json.at(share), 0) << share;
  }
  double phases = 0;
  for (const char* phase : {"route", "index_plan", "lookup", "gradient", "update"}) {
    phases += json.at(std::string(phase) + "_ms_median").get<double>();
  }
  EXPECT_GT(phases, 0);
  const nlohmann::json cpu = run(shape).json();
  for (const char* same : {"ids", "unique_rows", "bytes_min"})
    EXPECT_EQ(json.at(same), cpu.at(same));
}

TEST_F(OnDevice, VersionNamesThem) {
  if (!plugins_) GTEST_SKIP() << "only CUDA on the CPU does what the environment asks for";
  const Environment devices("SHARDREC_SIMT_DEVICES", "2");
  const Finished result = run({"--version"});
  EXPECT_NE(
      result.out.find("\ndevices: cpu, cuda:0 (CUDA on the CPU, 8.0 GiB), cuda:1 (CUDA on the "
                      "CPU, 8.0 GiB)\n"),
      std::string::npos)
      << result.out;
}

TEST_F(OnDevice, ProbeMeasuresTheDevicesMemory) {
  const Environment memory("SHARDREC_SIMT_MEMORY", "8000000");
  const Finished result = run({"probe", "--device", "cuda", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json().at("machine").at("device"), "cuda:0");
  EXPECT_EQ(result.json().at("copies").size(), 3U);
  EXPECT_EQ(result.json().at("rows").size(), 10U);
  const Finished table = run({"probe", "--device", "cuda:0"});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(table.out.find("copy, host to device: "), std::string::npos) << table.out;
  EXPECT_EQ(std::count(table.out.begin(), table.out.end(), '\n'), 1 + 3 + 1 + 2 + 10);
  EXPECT_EQ(run({"probe", "--device", "cuda", "--cached"}).exit_code, 2);
}

TEST_F(OnDevice, ADeviceThatDoesNotExistIsNamedBeforeAnythingBegins) {
  if (!plugins_) GTEST_SKIP() << "only CUDA on the CPU does what the environment asks for";
  const Environment devices("SHARDREC_SIMT_DEVICES", "2");
  const Finished result = run({"train", "--format", "criteo", "--data", data_->path("log.tsv"),
                               "--device", "cuda:2", "--save", data_->path("none")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(
      result.err,
      "shardrec: --device cuda:2 does not exist: this process sees the CUDA devices cuda:0 to "
      "cuda:1.\n");
  EXPECT_FALSE(std::filesystem::exists(data_->path("none")));
}

TEST_F(OnDevice, NoDriverIsSaidInOneSentence) {
  if (!plugins_) GTEST_SKIP() << "only CUDA on the CPU does what the environment asks for";
  const Environment devices("SHARDREC_SIMT_DEVICES", "-1");
  const Finished result = run({"bench", "lookup", "--device", "cuda"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err,
            "shardrec: --device cuda cannot be used: CUDA could not count its devices: CUDA driver "
            "version is insufficient for CUDA runtime version (cudaErrorInsufficientDriver).\n");
}

TEST(OnNoDevice, SaysWhatToInstallWhereThereIsNoPlugin) {
  const Environment nowhere("SHARDREC_PLUGIN_PATH", "/nowhere");
  const std::string golden = SHARDREC_GOLDEN;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"probe"},
        {"train", "--format", "criteo", "--data", "log.tsv"},
        {"bench", "step"},
        {"replay", golden + "/sharded.json"},
        {"train", "--format", "criteo", "--data", "log.tsv", "--ranks", "2", "--engine", "gloo"},
        {"bench", "step", "--ranks", "2", "--engine", "gloo"},
        {"replay", golden + "/sharded.json", "--engine", "gloo"}}) {
    std::vector<std::string> on_device = arguments;
    on_device.insert(on_device.end(), {"--device", "cuda:0"});
    const Finished result = run(on_device);
    EXPECT_EQ(result.exit_code, 1) << arguments.front();
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(
        result.err.starts_with("shardrec: --device cuda:0 cannot be used: CUDA devices need "
                               "the CUDA plug-in libshardrec_cuda.so."))
        << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST(OnNoDevice, TextsThatNameNoDeviceAreRefused) {
  for (const char* device : {"gpu", "cuda:", "cuda:-1", "cuda:1024", "cuda:1x", ""}) {
    const Finished result = run({"bench", "lookup", "--device", device});
    EXPECT_EQ(result.exit_code, 2) << device;
    EXPECT_NE(result.err.find("is no device; accepted: cpu, cuda, cuda:0 to cuda:1023"),
              std::string::npos)
        << result.err;
  }
}

}  // namespace
}  // namespace shardrec::cli::test
