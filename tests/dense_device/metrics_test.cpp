// Metrics that keep their samples on a device: the bits of the CPU, in the order of the caller's stream.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "capi/checkpoint_job.h"
#include "device/held_streams.h"
#include "shardrec/shardrec.hpp"

namespace shardrec_test {
namespace {

using shardrec::copy;
using shardrec::Memory;
using shardrec::Metrics;
using shardrec::MetricsOptions;
using shardrec::Vector;

constexpr std::array kCompared = {SHARDREC_METRIC_AUC, SHARDREC_METRIC_NE, SHARDREC_METRIC_LOSS,
                                  SHARDREC_METRIC_CTR, SHARDREC_METRIC_SAMPLES};

struct Samples {
  Samples(size_t count, unsigned seed) : probabilities(count), labels(count) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(0, 1);
    constexpr std::array kBorders = {0.0F, -0.0F, 1.0F, std::numeric_limits<float>::denorm_min()};
    for (size_t i = 0; i < count; ++i) {
      const float p = uniform(random);
      probabilities[i] = i % 11 == 0 ? kBorders[random() % kBorders.size()] : p;
      labels[i] = uniform(random) < 0.2F + 0.5F * p ? 1.0F : 0.0F;
    }
  }

  std::vector<float> probabilities, labels;
};

void expect_same(const Metrics& found, const Metrics& expected) {
  for (const shardrec_metric metric : kCompared) {
    EXPECT_EQ(found.find_metric(metric), expected.find_metric(metric)) << metric;
  }
}

std::optional<shardrec::Error> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const shardrec::Error& error) {
    return error;
  }
  return std::nullopt;
}

class MetricsOnDevice : public shardrec::test::HeldStreamsTest {
 protected:
  MetricsOptions in_stream() {
    MetricsOptions options;
    options.device(0).stream(caller_.number());
    return options;
  }

  Vector there(std::vector<float> values) {
    const auto size = static_cast<int64_t>(values.size());
    const Memory& memory = memories_.emplace_back(SHARDREC_DEVICE_CUDA, 0, 4 * size + 4);
    const Vector vector = memory.vector(SHARDREC_FLOAT32, size);
    if (size > 0) copy(vector, Vector(values), caller_.number());
    return vector;
  }

  std::vector<Memory> memories_;
};

// More samples than one part of the device's memory takes, in calls of all sizes.
TEST_F(MetricsOnDevice, HaveTheBitsOfTheCpu) {
  Metrics cpu, device(nullptr, in_stream());
  unsigned seed = 0;
  for (const std::vector<size_t>& round : std::vector<std::vector<size_t>>{
           {0}, {1, 7, 0, 300}, {65500, 100, 3}, {70000, 140000}, {5}}) {
    for (const size_t count : round) {
      Samples samples(count, ++seed);
      cpu.update(samples.probabilities, samples.labels);
      device.update(there(samples.probabilities), there(samples.labels));
    }
    cpu.compute();
    device.compute();
    expect_same(device, cpu);
    device.compute();  // again, with what is here already
    expect_same(device, cpu);
  }
  cpu.reset();
  device.reset();
  Samples samples(50, 99);
  cpu.update(samples.probabilities, samples.labels);
  device.update(there(samples.probabilities), there(samples.labels));
  cpu.compute();
  device.compute();
  expect_same(device, cpu);
}

// What was not computed with is forgotten, too.
TEST_F(MetricsOnDevice, ResetForgetsSamplesThatAreThere) {
  Metrics cpu, device(nullptr, in_stream());
  Samples forgotten(400, 1), samples(300, 2);
  device.update(there(forgotten.probabilities), there(forgotten.labels));
  device.reset();
  for (Metrics* metrics : {&cpu, &device}) metrics->update(samples.probabilities, samples.labels);
  for (Metrics* metrics : {&cpu, &device}) metrics->compute();
  expect_same(device, cpu);
}

TEST_F(MetricsOnDevice, EachVectorMayBeHereOrThere) {
  Metrics cpu, device(nullptr, in_stream());
  for (unsigned where = 0; where < 4; ++where) {
    Samples samples(77, where);
    cpu.update(samples.probabilities, samples.labels);
    const Vector p =
        (where & 1U) != 0 ? there(samples.probabilities) : Vector(samples.probabilities);
    const Vector y = (where & 2U) != 0 ? there(samples.labels) : Vector(samples.labels);
    device.update(p, y);
  }
  cpu.compute();
  device.compute();
  expect_same(device, cpu);
}

TEST_F(MetricsOnDevice, UpdatesTakePlaceInTheOrderOfTheStreamAndDoNotWait) {
  Metrics cpu, device(nullptr, in_stream());
  Samples samples(600, 3), others(600, 4);
  cpu.update(samples.probabilities, samples.labels);
  const Vector given = there(samples.probabilities), p = there(others.probabilities);
  const Vector y = there(samples.labels);
  device.update(p, y);  // memory is had now
  device.compute();
  device.reset();
  hold();
  EXPECT_TRUE(returns_while_held([&] {
    copy(p, given, caller_.number());
    device.update(p, y);
    copy(p, y, caller_.number());
  }));
  go_on_();
  cpu.compute();
  device.compute();
  expect_same(device, cpu);
}

TEST_F(MetricsOnDevice, WrongSamplesAreToldByComputeUntilReset) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  struct Case {
    float probability, label;
    const char* sentence;
  };
  for (const Case& bad : {Case{0.5F, 0.5F, "the label at position 407 "},
                          {0.5F, nan, "the label at position 407 "},
                          {nan, 0.5F, "the label at position 407 "},
                          {nan, 1, "the probability at position 407 "},
                          {-0.001F, 0, "the probability at position 407 "},
                          {1.001F, 0, "the probability at position 407 "}}) {
    Metrics cpu, device(nullptr, in_stream());
    Samples good(400, 1), wrong(30, 2);
    wrong.probabilities[7] = bad.probability;
    wrong.labels[7] = bad.label;
    wrong.labels[20] = -1;
    device.update(there(good.probabilities), there(good.labels));
    device.compute();
    const double auc = device.metric(SHARDREC_METRIC_AUC);
    device.update(there(wrong.probabilities), there(wrong.labels));
    for (int again = 0; again < 2; ++again) {
      const auto error = error_of([&] { device.compute(); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT);
      EXPECT_EQ(error->position(), 407);
      EXPECT_NE(std::string(error->what()).find(bad.sentence), std::string::npos) << error->what();
      EXPECT_EQ(device.metric(SHARDREC_METRIC_AUC), auc);
      device.update(there(good.probabilities), there(good.labels));
    }
    device.reset();
    for (Metrics* metrics : {&cpu, &device}) metrics->update(good.probabilities, good.labels);
    for (Metrics* metrics : {&cpu, &device}) metrics->compute();
    expect_same(device, cpu);
  }
}

TEST_F(MetricsOnDevice, AllRanksAreToldOfTheOneThatHasAWrongSample) {
  run(3, [&](shardrec::Comm& comm, int rank) {
    Metrics cpu(comm), device(comm, MetricsOptions().device(rank % 2));
    for (int round = 0; round < 2; ++round) {
      Samples samples(200 + 10 * static_cast<size_t>(rank), static_cast<unsigned>(rank));
      cpu.update(samples.probabilities, samples.labels);
      if (round == 0 && rank == 1) samples.labels[150] = 3;
      device.update(samples.probabilities, samples.labels);
      cpu.compute();
      const auto error = error_of([&] { device.compute(); });
      ASSERT_EQ(error.has_value(), round == 0) << (error ? error->what() : "");
      if (error) {
        EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT);
        EXPECT_EQ(error->rank(), 1);
        EXPECT_EQ(error->position(), 150);
      } else {
        expect_same(device, cpu);
      }
      cpu.reset();
      device.reset();
    }
    comm.close();
  });
}

TEST_F(MetricsOnDevice, WhatIsElsewhereIsRefused) {
  EXPECT_EQ(status_of([] { Metrics none(nullptr, MetricsOptions().device(1000)); }),
            SHARDREC_INVALID_ARGUMENT);
  Metrics cpu, device(nullptr, in_stream());
  Samples samples(5, 1);
  Memory other(SHARDREC_DEVICE_CUDA, 1, 4 * 5);
  const Vector elsewhere = other.vector(SHARDREC_FLOAT32, 5);
  const Vector p = there(samples.probabilities), y = there(samples.labels);
  EXPECT_EQ(status_of([&] { device.update(elsewhere, y); }), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { device.update(p, elsewhere); }), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { device.update(p, there({1})); }), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { cpu.update(p, samples.labels); }), SHARDREC_UNSUPPORTED);
  Metrics nowhere(nullptr, MetricsOptions().device(0).stream(caller_.number() + 1));
  EXPECT_EQ(status_of([&] { nowhere.update(p, y); }), SHARDREC_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace shardrec_test
