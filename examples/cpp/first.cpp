// A first program: two ranks, threads of this process, share an embedding table and train it until
// the numbers of each user's row add up to 1.
#include <algorithm>
#include <array>
#include <exception>
#include <iostream>
#include <numeric>
#include <shardrec/shardrec.hpp>
#include <vector>

constexpr int kRanks = 2, kBatch = 4, kDim = 8, kSteps = 20;

// Trains on one rank; returns its last loss.
float train(shardrec::Comm &comm) {
  shardrec::Model model;
  model.add_feature(model.add_table("user", 1000, kDim), "user_id");
  const auto plan = shardrec::Plan::collective(comm, model);  // which rows live where
  shardrec::Collection tables(comm, model, plan);
  tables.set_learning_rate(0.1);
  shardrec::Lookup step(tables);

  const std::vector<int64_t> ids = {0, 11, 222, 900 + comm.rank()};
  const std::vector<int64_t> lengths(kBatch, 1);  // four bags of one id
  std::vector<float> pooled(kBatch * kDim), gradient(kBatch * kDim);
  float loss = 0;
  for (int s = 0; s < kSteps; ++s) {
    step.begin(kBatch, ids, lengths);
    step.forward(0, {pooled.data(), kBatch, kDim});
    loss = 0;
    for (auto row = pooled.begin(), to = gradient.begin(); row != pooled.end();
         row += kDim, to += kDim) {
      const float error = std::accumulate(row, row + kDim, -1.0f);
      loss += error * error / kBatch;
      std::fill(to, to + kDim, 2 * error / kBatch);
    }
    step.set_gradient(0, {gradient.data(), kBatch, kDim});
    step.backward();  // exchanges gradients, updates rows
  }
  return loss;
}

int main() {
  try {
    std::array<float, kRanks> losses{};
    // A rank that fails ends the others; its failure is what is caught here.
    shardrec::run(kRanks, [&](shardrec::Comm &comm) { losses[comm.rank()] = train(comm); });
    std::cout << "last losses: " << losses[0] << ", " << losses[1] << "\n";
    return losses[0] < 0.01f && losses[1] < 0.01f ? 0 : 1;
  } catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
