// examples/c/serve.c: its scores are the scorer's own, from any number of connections, and it ends in
// order.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "bench/bench_ids.h"
#include "client.h"
#include "command.h"
#include "serve/served_model.h"
#include "support/eventually.h"

namespace shardrec::cli::test {
namespace {

// A checkpoint of step 50 in a folder of its own, as examples/cpp/dlrm.cpp leaves it.
class Trained {
 public:
  Trained() { train("train"); }
  void train(const std::string& what) const {
    const Scratch files;
    const Finished result = Running(files, {what, directory()}, "", SHARDREC_DLRM_CPP).wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  [[nodiscard]] std::string directory() const { return scratch_.path("run"); }

 private:
  Scratch scratch_;
};

class Service {
 public:
  explicit Service(const std::string& directory, int threads)
      : running_(scratch_, {directory, "0", std::to_string(threads)}, "", SHARDREC_SERVE_C) {
    EXPECT_TRUE(shardrec::test::eventually([&] {
      return std::sscanf(read_file(scratch_.path("stdout")).c_str(), "listening on port %d\n",
                         &port_) == 1;
    }));
  }
  [[nodiscard]] int port() const { return port_; }
  Running& running() { return running_; }
  Finished wait() { return running_.wait(20); }

 private:
  Scratch scratch_;
  Running running_;
  int port_ = 0;
};

// One sample, as a batch and as the line that the service takes.
struct Sample {
  std::vector<float> dense;
  BenchBatch batch;
  std::string line;
};

Sample make_sample(const ServedModel& model, uint64_t seed) {
  Sample sample;
  sample.batch = make_bench_batch(
      {.tables = model.features, .batch = 1, .lengths = {.least = 0, .most = 4}}, seed);
  for (int64_t c = 0; c < model.dense_columns; ++c) {
    sample.dense.push_back(static_cast<float>((seed * 7 + static_cast<uint64_t>(c) * 3) % 17) / 8 -
                           1);
    sample.line += (c > 0 ? " " : "") + std::to_string(sample.dense.back());
  }
  size_t i = 0;
  for (size_t f = 0; f < model.features.size(); ++f) {
    sample.line += f == 0 ? ";" : ",";
    for (int64_t k = 0; k < sample.batch.lengths[f]; ++k) {
      sample.line += (k > 0 ? " " : "") + std::to_string(sample.batch.ids[i++]);
    }
  }
  return sample;
}

std::string scored(const Scorer& scorer, const Sample& sample) {
  std::vector<float> score(1);
  scorer.predict({.batch_size = 1, .values = sample.batch.ids, .lengths = sample.batch.lengths},
                 {sample.dense.data(), 1, std::ssize(sample.dense)}, score);
  char text[64];
  std::snprintf(text, sizeof text, "score %.9g", static_cast<double>(score[0]));
  return text;
}

TEST(ServeExample, ScoresAreTheScorersOwnFromMoreConnectionsThanThreads) {
  const Trained trained;
  Service service(trained.directory(), 3);
  ASSERT_GT(service.port(), 0);
  const Scorer scorer(trained.directory());
  const ServedModel model(scorer);
  constexpr int kClients = 8;
  constexpr int kSamples = 50;
  std::vector<std::vector<std::string>> answers(kClients);
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      Client client(service.port());
      for (int n = 0; n < kSamples; ++n) {
        answers[static_cast<size_t>(c)].push_back(
            client.ask(make_sample(model, static_cast<uint64_t>(c * kSamples + n)).line));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  std::set<std::string> different;
  for (int c = 0; c < kClients; ++c) {
    for (int n = 0; n < kSamples; ++n) {
      const Sample sample = make_sample(model, static_cast<uint64_t>(c * kSamples + n));
      const std::string& answer = answers[static_cast<size_t>(c)][static_cast<size_t>(n)];
      ASSERT_EQ(answer, scored(scorer, sample)) << sample.line;
      different.insert(answer);
    }
  }
  EXPECT_GT(different.size(), 50U);
  EXPECT_EQ(Client(service.port()).ask("quit"), "bye");
  const Finished end = service.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
}

TEST(ServeExample, ARefreshServesWhatWasTrainedSince) {
  const Trained trained;
  Service service(trained.directory(), 2);
  ASSERT_GT(service.port(), 0);
  Client client(service.port());
  Client other(service.port());
  const ServedModel model((Scorer(trained.directory())));
  std::vector<Sample> samples;
  for (uint64_t seed = 0; seed < 20; ++seed) samples.push_back(make_sample(model, seed));
  const auto ask_all = [&samples](Client& asked) {
    std::vector<std::string> answers;
    for (const Sample& sample : samples) answers.push_back(asked.ask(sample.line));
    return answers;
  };
  const std::vector<std::string> before = ask_all(client);
  EXPECT_EQ(client.ask("refresh"), "step 50");
  trained.train("resume");
  EXPECT_EQ(ask_all(client), before);
  EXPECT_EQ(client.ask("refresh"), "step 100");
  const Scorer scorer(trained.directory());
  std::vector<std::string> after;
  for (const Sample& sample : samples) after.push_back(scored(scorer, sample));
  EXPECT_NE(after, before);
  EXPECT_EQ(ask_all(client), after);
  EXPECT_EQ(ask_all(other), after);
  service.running().terminate();  // while two connections are open
  const Finished end = service.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(client.read_line(), std::nullopt);
}

// `shardrec train` publishes in a process of its own; each answer is wholly of the step that the last refresh named.
TEST(ServeExample, FollowsATrainingThatPublishesDeltas) {
  const Scratch files;
  const std::string root = files.path("run");
  const std::string log = files.path("log.tsv");
  ASSERT_EQ(run({"generate", "--rows", "6000", "--output", log}).exit_code, 0);
  Running training(files, {"train",    "--format",
                           "criteo",   "--data",
                           log,        "--batch",
                           "64",       "--dim",
                           "8",        "--bottom",
                           "24",       "--top",
                           "12",       "--rows-per-table",
                           "500",      "--epochs",
                           "2",        "--ranks",
                           "2",        "--sharding",
                           "row_wise", "--threads",
                           "1",        "--save",
                           root,       "--publish-every",
                           "2",        "--publish-weights",
                           "--keep",   "0"});
  ASSERT_TRUE(shardrec::test::eventually(
      [&] { return std::filesystem::exists(root + "/LATEST") || training.has_ended(); }, 100));
  Service service(root, 2);
  ASSERT_GT(service.port(), 0);
  Client client(service.port());
  const ServedModel model((Scorer(root)));
  std::set<std::string> steps;
  std::set<std::string> scores;
  for (bool last = false; !last;) {
    last = training.has_ended();
    const std::string step = client.ask("refresh");
    ASSERT_TRUE(step.starts_with("step ")) << step;
    const Scorer own(root, std::stoll(step.substr(5)));
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const Sample sample = make_sample(model, seed);
      const std::string answer = client.ask(sample.line);
      ASSERT_EQ(answer, scored(own, sample)) << step;
      scores.insert(answer);
    }
    steps.insert(step);
  }
  EXPECT_EQ(training.wait().exit_code, 0) << training.err();
  EXPECT_GE(steps.size(), 3U);
  EXPECT_GE(scores.size(), steps.size());
  EXPECT_EQ(Scorer(root).info().step, std::stoll(client.ask("refresh").substr(5)));
  EXPECT_EQ(client.ask("quit"), "bye");
  EXPECT_EQ(service.wait().exit_code, 0);
}

TEST(ServeExample, WhatItCannotScoreIsAnErrorInASentence) {
  const Trained trained;
  Service service(trained.directory(), 2);
  ASSERT_GT(service.port(), 0);
  Client client(service.port());
  const auto expect_error = [&client](const std::string& line, const std::string& part) {
    const std::string answer = client.ask(line);
    EXPECT_TRUE(answer.starts_with("error ")) << line << ": " << answer;
    EXPECT_NE(answer.find(part), std::string::npos) << line << ": " << answer;
  };
  expect_error("", "too few dense numbers");
  expect_error("1 2 3;1,1,1,1,1,1", "too few dense numbers");
  expect_error("1 2 3 4", "ids of each feature");
  expect_error("1 2 3 4;1,1,1", "ids of each feature");
  expect_error("1 2 3 4;1,1,1,1,1,1,1", "more than the line");
  expect_error("1 2 3 4;1,1,1,x,1,1", "ids of each feature");
  expect_error("1 2 3 4;1,1,1,1,1,1000", "ids must be in [0, 1000)");
  EXPECT_TRUE(client.ask(" 1 2 3 4 ; 1 2 , , 3,4,5,6 \r").starts_with("score "));
  client.send_text("1 2 3 4;1,1,1,1,1,1\n1 2 3 4;2,1,1,1,1,1\n");  // two in one
  EXPECT_TRUE(client.read_line().value_or("").starts_with("score "));
  EXPECT_TRUE(client.read_line().value_or("").starts_with("score "));
  EXPECT_NE(client.ask(std::string(1 << 17, '1')).find("too long"), std::string::npos);
  service.running().interrupt();
  EXPECT_EQ(service.wait().exit_code, 0);
}

TEST(ServeExample, SaysWhatItNeeds) {
  const Scratch scratch;
  const auto start = [&scratch](const std::vector<std::string>& words) {
    return Running(scratch, words, "", SHARDREC_SERVE_C).wait(20);
  };
  EXPECT_EQ(start({}).exit_code, 2);
  EXPECT_EQ(start({"run", "70000"}).exit_code, 2);
  EXPECT_EQ(start({"run", "0", "65"}).exit_code, 2);
  const Finished missing = start({scratch.path("none")});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("none"), std::string::npos) << missing.err;
}

}  // namespace
}  // namespace shardrec::cli::test
