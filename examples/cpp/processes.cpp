// Ranks as processes: each finds its place in its environment, trains its share of the batches and
// leaves in order.
//
//   shardrec launch --nproc 2 -- processes_cpp
//
// The same program runs on several hosts: comm.h lists the variables, README.md what sets them.
#include <algorithm>
#include <exception>
#include <iostream>
#include <numeric>
#include <shardrec/shardrec.hpp>
#include <vector>

constexpr int kBatch = 4, kDim = 8, kSteps = 20;

// Returns the last step's loss over all ranks.
double train(shardrec::Comm &comm) {
  shardrec::Model model;
  model.add_feature(model.add_table("user", 1000, kDim), "user_id");
  const auto plan = shardrec::Plan::collective(comm, model);  // which rows live where
  shardrec::Collection tables(comm, model, plan);
  tables.set_learning_rate(0.1);
  shardrec::Lookup step(tables);

  std::vector<int64_t> ids(kBatch), lengths(kBatch, 1);  // four bags of one id: this rank's data
  for (int b = 0; b < kBatch; ++b) ids[b] = (100 * b + comm.rank()) % 1000;
  std::vector<float> pooled(kBatch * kDim), gradient(kBatch * kDim);
  std::vector<double> loss(1);
  for (int s = 0; s < kSteps; ++s) {
    step.begin(kBatch, ids, lengths);
    step.forward(0, {pooled.data(), kBatch, kDim});
    loss[0] = 0;
    for (auto row = pooled.begin(), to = gradient.begin(); row != pooled.end();
         row += kDim, to += kDim) {
      const float error = std::accumulate(row, row + kDim, -1.0f);
      loss[0] += error * error / kBatch / comm.size();
      std::fill(to, to + kDim, 2 * error / kBatch);
    }
    step.set_gradient(0, {gradient.data(), kBatch, kDim});
    step.backward();  // exchanges gradients, updates rows
  }
  comm.all_reduce(loss);
  return loss[0];
}

int main() {
  try {
    auto comm = shardrec::Comm::from_env();  // returns when all ranks have come
    const double loss = train(comm);
    if (comm.rank() == 0) std::cout << comm.size() << " ranks, last loss: " << loss << "\n";
    comm.close();  // returns when all ranks are done
    return loss > 0.01 ? 1 : 0;
  } catch (const std::exception &error) {
    // The communicator is destroyed without a close: the others get PEER_FAILED at once.
    std::cerr << error.what() << "\n";
    return 1;
  }
}
