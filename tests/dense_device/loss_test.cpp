// The loss where a stack is: on a device with the bits of the CPU, in the order of the stack's stream.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "device/held_streams.h"
#include "shardrec/shardrec.hpp"
#include "support/eventually.h"
#include "support/one_nan.h"

namespace shardrec_test {
namespace {

using shardrec::bce_with_logits;
using shardrec::copy;
using shardrec::enqueue_bce_with_logits;
using shardrec::Memory;
using shardrec::Mlp;
using shardrec::MlpOptions;
using shardrec::Vector;

struct Batch {
  explicit Batch(size_t count, bool special = false, unsigned seed = 1)
      : logits(count), labels(count), probabilities(count, -7), gradient(count, -7) {
    using Limits = std::numeric_limits<float>;
    constexpr std::array kSpecial = {Limits::quiet_NaN(),
                                     Limits::infinity(),
                                     -Limits::infinity(),
                                     1000.0F,
                                     -1000.0F,
                                     Limits::denorm_min(),
                                     -0.0F,
                                     -104.0F};
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 4);
    std::uniform_real_distribution<float> uniform(0, 1);
    for (size_t i = 0; i < count; ++i) {
      logits[i] = special && i % 5 == 0 ? kSpecial[random() % kSpecial.size()] : normal(random);
      labels[i] = i % 3 == 0 ? uniform(random) : static_cast<float>(random() % 2);
    }
  }

  // On the CPU.
  double compute() { return bce_with_logits(logits, labels, probabilities, gradient); }

  std::vector<float> logits, labels, probabilities, gradient;
};

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && shardrec::test::same_numbers(a.data(), b.data(), a.size());
}

class LossOnDevice : public shardrec::test::HeldStreamsTest {
 protected:
  void SetUp() override {
    HeldStreamsTest::SetUp();
    if (IsSkipped()) return;
    stack_.emplace(1, MlpOptions().device(0).stream(caller_.number()));
  }

  // A vector there, with these values.
  Vector there(const std::vector<float>& values) {
    const auto size = static_cast<int64_t>(values.size());
    const Memory& memory = memories_.emplace_back(SHARDREC_DEVICE_CUDA, 0, 4 * size + 4);
    const Vector vector = memory.vector(SHARDREC_FLOAT32, size);
    std::vector<float> copied = values;
    if (size > 0) copy(vector, Vector(copied), caller_.number());
    return vector;
  }
  std::vector<float> read(const Vector& vector) {
    std::vector<float> values(static_cast<size_t>(vector.elements()));
    if (!values.empty()) copy(Vector(values), vector, caller_.number());
    return values;
  }
  shardrec_status status_of_loss(const Vector& logits, const Vector& labels) {
    return shardrec_bce_with_logits(stack_->get(), logits.get(), labels.get(), nullptr, nullptr,
                                    nullptr);
  }

  std::vector<Memory> memories_;
  std::optional<Mlp> stack_;
};

TEST_F(LossOnDevice, HasTheBitsOfTheCpu) {
  for (const size_t count : {0U, 1U, 7U, 255U, 256U, 257U, 3000U, 66000U}) {
    for (const bool special : {false, true}) {
      Batch batch(count, special);
      const double loss = batch.compute();
      const Vector logits = there(batch.logits), labels = there(batch.labels);
      const Vector probabilities = there(std::vector<float>(count, -7));
      const Vector gradient = there(std::vector<float>(count, -7));
      const double found = bce_with_logits(*stack_, logits, labels, probabilities, gradient);
      EXPECT_TRUE(shardrec::test::same_number(found, loss))
          << count << ": " << found << ", on the CPU " << loss;
      EXPECT_TRUE(same(read(probabilities), batch.probabilities)) << count;
      EXPECT_TRUE(same(read(gradient), batch.gradient)) << count;
      // One of the two outputs, and none.
      const Vector other = there(std::vector<float>(count, -7));
      EXPECT_TRUE(shardrec::test::same_number(
          bce_with_logits(*stack_, logits, labels, nullptr, other), loss));
      EXPECT_TRUE(same(read(other), batch.gradient)) << count;
      EXPECT_TRUE(
          shardrec::test::same_number(bce_with_logits(*stack_, logits, labels, other), loss));
      EXPECT_TRUE(same(read(other), batch.probabilities)) << count;
    }
  }
}

TEST_F(LossOnDevice, EachVectorMayBeHereOrThere) {
  for (unsigned where = 0; where < 16; ++where) {
    Batch batch(7, true, where);
    const double loss = batch.compute();
    std::vector<float> probabilities(7), gradient(7);
    const Vector logits = (where & 1U) != 0 ? there(batch.logits) : Vector(batch.logits);
    const Vector labels = (where & 2U) != 0 ? there(batch.labels) : Vector(batch.labels);
    const Vector p = (where & 4U) != 0 ? there(probabilities) : Vector(probabilities);
    const Vector g = (where & 8U) != 0 ? there(gradient) : Vector(gradient);
    EXPECT_TRUE(shardrec::test::same_number(bce_with_logits(*stack_, logits, labels, p, g), loss));
    EXPECT_TRUE(same((where & 4U) != 0 ? read(p) : probabilities, batch.probabilities)) << where;
    EXPECT_TRUE(same((where & 8U) != 0 ? read(g) : gradient, batch.gradient)) << where;
  }
}

TEST_F(LossOnDevice, AStackOnTheCpuIsNone) {
  Mlp cpu(1);
  Batch batch(300), other(300);
  const double loss = batch.compute();
  EXPECT_EQ(bce_with_logits(cpu, other.logits, other.labels, other.probabilities, other.gradient),
            loss);
  EXPECT_EQ(other.probabilities, batch.probabilities);
  EXPECT_EQ(other.gradient, batch.gradient);
}

// All is enqueued while the stream is held.
TEST_F(LossOnDevice, TakesPlaceInTheOrderOfTheStream) {
  Batch batch(500), zeros(500);
  std::fill(zeros.logits.begin(), zeros.logits.end(), 0.0F);
  (void)batch.compute();
  const Vector given = there(batch.logits), labels = there(batch.labels);
  const Vector logits = there(zeros.logits), gradient = there(zeros.logits);
  const Vector kept = there(zeros.logits);
  enqueue_bce_with_logits(*stack_, logits, labels, nullptr, gradient);  // has its memory
  EXPECT_FALSE(same(read(gradient), batch.gradient));
  hold();
  EXPECT_TRUE(returns_while_held([&] {
    copy(logits, given, caller_.number());
    enqueue_bce_with_logits(*stack_, logits, labels, nullptr, gradient);
    copy(kept, gradient, caller_.number());
    copy(gradient, logits, caller_.number());
  }));
  go_on_();
  EXPECT_TRUE(same(read(kept), batch.gradient));
}

// Labels come from the host: what it does with them afterwards changes nothing.
TEST_F(LossOnDevice, WithoutTheLossTheHostDoesNotWait) {
  std::vector<Batch> batches;
  std::vector<Vector> logits, gradients;
  for (unsigned step = 0; step < 2; ++step) {
    batches.emplace_back(40, false, step);
    (void)batches.back().compute();
    logits.push_back(there(batches.back().logits));
    gradients.push_back(there(std::vector<float>(40)));
  }
  std::vector<float> labels(40);
  const auto enqueue = [&](size_t step) {
    labels = batches[step].labels;
    enqueue_bce_with_logits(*stack_, logits[step], labels, nullptr, gradients[step]);
    std::fill(labels.begin(), labels.end(), 0.25F);
  };
  enqueue(0);
  enqueue(1);  // memory is had now
  (void)read(gradients[1]);
  hold();
  EXPECT_TRUE(returns_while_held([&] {
    enqueue(0);
    enqueue(1);
  }));
  EXPECT_TRUE(go_on_during([&] { enqueue(0); }))
      << "more than two copies of labels were on their way";
  for (size_t step = 0; step < 2; ++step) {
    EXPECT_TRUE(same(read(gradients[step]), batches[step].gradient)) << step;
  }
}

TEST_F(LossOnDevice, ALabelOutsideIsToldByTheNextCallThatHasTheLoss) {
  const auto position_told = [&](const Vector& logits, const Vector& labels,
                                 std::string* sentence) -> std::optional<int64_t> {
    try {
      (void)bce_with_logits(*stack_, logits, labels);
    } catch (const shardrec::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_INVALID_ARGUMENT);
      *sentence = error.what();
      return error.position();
    }
    return std::nullopt;
  };
  for (const float bad : {-0.001F, 1.001F, std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    Batch good(300), wrong(300);
    wrong.labels[270] = wrong.labels[290] = bad;
    const Vector logits = there(good.logits), labels = there(good.labels);
    const Vector wrong_labels = there(wrong.labels);
    std::string sentence;
    EXPECT_EQ(position_told(logits, wrong_labels, &sentence), 270);
    EXPECT_NE(sentence.find("the label at position 270 is not in 0 .. 1"), std::string::npos)
        << sentence;
    EXPECT_EQ(position_told(logits, labels, &sentence), std::nullopt) << "it was told once";
    EXPECT_EQ(status_of_loss(logits, wrong_labels), SHARDREC_OK);
    EXPECT_EQ(status_of_loss(logits, labels), SHARDREC_OK);
    EXPECT_EQ(position_told(logits, labels, &sentence), 270);
    EXPECT_NE(sentence.find("or of one before it"), std::string::npos) << sentence;
    EXPECT_EQ(position_told(logits, labels, &sentence), std::nullopt);
    // Of the host's labels too.
    EXPECT_EQ(position_told(logits, Vector(wrong.labels), &sentence), 270);
  }
}

TEST_F(LossOnDevice, WhatIsElsewhereOrOfAnotherSizeIsRefused) {
  Batch batch(5);
  const Vector logits = there(batch.logits), labels = there(batch.labels);
  std::vector<float> four(4);
  const Vector shorter = there(four);
  EXPECT_EQ(status_of_loss(logits, shorter), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_bce_with_logits(stack_->get(), logits.get(), labels.get(), shorter.get(),
                                     nullptr, nullptr),
            SHARDREC_INVALID_ARGUMENT);
  Memory other(SHARDREC_DEVICE_CUDA, 1, 4 * 5);
  const Vector elsewhere = other.vector(SHARDREC_FLOAT32, 5);
  EXPECT_EQ(status_of_loss(elsewhere, labels), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status_of_loss(logits, elsewhere), SHARDREC_INVALID_ARGUMENT);
  Mlp cpu(1);
  for (shardrec_mlp* none : {static_cast<shardrec_mlp*>(nullptr), cpu.get()}) {
    EXPECT_EQ(shardrec_bce_with_logits(none, logits.get(), labels.get(), nullptr, nullptr, nullptr),
              SHARDREC_UNSUPPORTED);
  }
}

TEST_F(LossOnDevice, ASecondThreadInTheStackIsBusy) {
  Batch batch(20);
  const Vector logits = there(batch.logits), labels = there(batch.labels);
  hold();
  std::thread waits([&] {  // it comes in when the other thread is not in the stack
    double loss = 0;
    EXPECT_TRUE(shardrec::test::eventually([&] {
      return shardrec_bce_with_logits(stack_->get(), logits.get(), labels.get(), nullptr, nullptr,
                                      &loss) == SHARDREC_OK;
    }));
  });
  EXPECT_TRUE(
      shardrec::test::eventually([&] { return status_of_loss(logits, labels) == SHARDREC_BUSY; }));
  go_on_();
  waits.join();
  EXPECT_EQ(status_of_loss(logits, labels), SHARDREC_OK);
}

}  // namespace
}  // namespace shardrec_test
