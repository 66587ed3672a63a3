// One rank of a job, as its environment says, that only looks up: its place in tests is to send
// what a forward pass sends, and nothing else.
//   forward_rank SHARDING DIM STEPS BATCH TABLES RANKS RANKS_PER_NODE HIERARCHICAL
// Each bag has ids all over its table, so that every box of rows has some of them.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <shardrec/shardrec.hpp>
#include <string>
#include <vector>

namespace {

constexpr int64_t kRows = 640;
constexpr int64_t kIds = 8;  // of a bag

int number(const char* text) { return std::atoi(text); }

void look_up(char** arguments) {
  using namespace shardrec;
  const int dim = number(arguments[2]);
  const int steps = number(arguments[3]);
  const int batch = number(arguments[4]);
  const int features = number(arguments[5]);
  Comm comm = Comm::from_env();
  Model model;
  for (int t = 0; t < features; ++t) {
    const std::string name = "t" + std::to_string(t);
    model.add_feature(model.add_table(name, kRows, dim), name);
  }
  Options how(SHARDREC_OPTIONS_PLAN);
  how.set(SHARDREC_OPTION_SHARDING, arguments[1]);
  const Topology topology(number(arguments[6]), number(arguments[7]));
  Options keep(SHARDREC_OPTIONS_COLLECTION);
  keep.set(SHARDREC_OPTION_DEDUPLICATE, 0);
  if (const std::string choice = arguments[8]; choice != "default") {
    keep.set(SHARDREC_OPTION_HIERARCHICAL, choice);
  }
  Collection tables(comm, model, Plan(model, topology, how), keep);
  Lookup lookup(tables);
  std::vector<int64_t> lengths(static_cast<size_t>(features * batch), kIds);
  std::vector<int64_t> ids;
  for (int64_t bag = 0; bag < features * batch; ++bag) {
    for (int64_t i = 0; i < kIds; ++i) ids.push_back((bag * 7 + i * kRows / kIds) % kRows);
  }
  std::vector<float> out(static_cast<size_t>(features * batch * dim));
  shardrec_tensor id_view, length_view, out_view;
  check(shardrec_tensor_vector(ids.data(), SHARDREC_INT64, static_cast<int64_t>(ids.size()),
                               &id_view));
  check(shardrec_tensor_vector(lengths.data(), SHARDREC_INT64, features * batch, &length_view));
  check(shardrec_tensor_matrix(out.data(), SHARDREC_FLOAT32, batch, features * dim, &out_view));
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < steps; ++step) {
    lookup.begin(batch, shardrec::Vector(id_view), shardrec::Vector(length_view));
    check(shardrec_lookup_forward(lookup.get(), 0, &out_view));
    check(shardrec_lookup_backward(lookup.get(), SHARDREC_UPDATE_SKIP));
  }
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  comm.close();
  std::cout << time.count() / steps << " ms per forward pass\n";
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 9) return 2;
  try {
    look_up(arguments);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
