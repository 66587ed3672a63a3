// A first program: two ranks, threads of this process, share an embedding table and train it until
// the numbers of each user's row add up to 1.
#include <shardrec/shardrec.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>

constexpr int kRanks = 2, kBatch = 4, kDim = 8, kSteps = 20;
void check(shardrec_status status) {
  if (status != SHARDREC_OK) throw std::runtime_error(shardrec_last_error());
}

// What `create` makes, as a handle that destroys itself.
template <typename T, auto Destroy, typename Create>
auto make(const Create& create) {
  T* handle = nullptr;
  check(create(&handle));
  return std::unique_ptr<T, decltype([](T* last) { Destroy(&last); })>(handle);
}

// Trains on one rank; its last loss.
float train(shardrec_local* group, int rank) {
  const auto comm = make<shardrec_comm, shardrec_comm_destroy>(
      [&](auto out) { return shardrec_comm_create_local(group, rank, out); });
  const auto model = make<shardrec_model, shardrec_model_destroy>(
      [&](auto out) { return shardrec_model_create(nullptr, out); });
  int32_t user = 0;
  check(shardrec_model_add_table(model.get(), "user", 1000, kDim, nullptr, &user));
  check(shardrec_model_add_feature(model.get(), user, "user_id", SHARDREC_POOLING_SUM));
  const auto plan = make<shardrec_plan, shardrec_plan_destroy>(  // which rows live where
      [&](auto out) { return shardrec_plan_collective(comm.get(), model.get(), nullptr, out); });
  const auto tables = make<shardrec_collection, shardrec_collection_destroy>([&](auto out) {
    return shardrec_collection_create(comm.get(), model.get(), plan.get(), nullptr, out);
  });
  check(shardrec_collection_set_learning_rate(tables.get(), 0.1));
  const auto step = make<shardrec_lookup, shardrec_lookup_destroy>(
      [&](auto out) { return shardrec_lookup_create(tables.get(), nullptr, out); });

  std::array<int64_t, kBatch> ids{0, 11, 222, 900 + rank},
      lengths{1, 1, 1, 1};  // four bags of one id
  std::array<float, kBatch * kDim> pooled{}, gradient{};
  shardrec_tensor id_view, length_view, out_view, gradient_view;
  check(shardrec_tensor_vector(ids.data(), SHARDREC_INT64, kBatch, &id_view));
  check(shardrec_tensor_vector(lengths.data(), SHARDREC_INT64, kBatch, &length_view));
  check(shardrec_tensor_matrix(pooled.data(), SHARDREC_FLOAT32, kBatch, kDim, &out_view));
  check(shardrec_tensor_matrix(gradient.data(), SHARDREC_FLOAT32, kBatch, kDim, &gradient_view));
  float loss = 0;
  for (int s = 0; s < kSteps; ++s) {
    check(shardrec_lookup_begin(step.get(), kBatch, &id_view, &length_view, nullptr));
    check(shardrec_lookup_forward(step.get(), 0, &out_view));  // [kBatch, kDim]
    loss = 0;
    for (auto row = pooled.begin(), to = gradient.begin(); row != pooled.end();
         row += kDim, to += kDim) {
      const float error = std::accumulate(row, row + kDim, -1.0f);
      loss += error * error / kBatch;
      std::fill(to, to + kDim, 2 * error / kBatch);
    }
    check(shardrec_lookup_set_gradient(step.get(), 0, &gradient_view));
    check(shardrec_lookup_backward(step.get()));  // exchanges gradients, updates rows
  }
  check(shardrec_comm_close(comm.get()));
  return loss;
}

int main() {
  const auto group = make<shardrec_local, shardrec_local_destroy>(
      [](auto out) { return shardrec_local_create(kRanks, kRanks, out); });
  std::array<float, kRanks> losses{};
  std::thread other([&] { losses[1] = train(group.get(), 1); });
  losses[0] = train(group.get(), 0);
  other.join();
  std::cout << "last losses: " << losses[0] << ", " << losses[1] << "\n";
  return losses[0] < 0.01f && losses[1] < 0.01f ? 0 : 1;
}
