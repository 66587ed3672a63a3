// A product that was enqueued: computed when the stream comes to it, as often as a graph is launched that has it.
#pragma once

#include <cstdint>

#include "problem.h"

namespace fake_cublaslt {

class Product {
 public:
  struct Matrices {
    const void* a;
    const void* b;
    const void* c;
    void* d;
  };
  Product(const Problem& problem, const Matrices& matrices, float alpha, float beta,
          void* workspace, uint64_t workspace_bytes);
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  // Enqueues it, and gives it up: it goes with the last operation and graph that has it. False: the stream takes none.
  static bool enqueue(Product* product, int64_t stream);

 private:
  ~Product();
  void keep();
  void drop();
  void compute();
  float sum(int64_t row, int64_t column) const;
  float a(int64_t row, int64_t k) const;
  float b(int64_t k, int64_t column) const;
  float rounded(float value) const;
  float finish(int64_t row, int64_t column, float value);
  void sum_operand() const;

  int64_t holders_ = 1;
  Problem problem_;
  Matrices matrices_;
  float alpha_;
  float beta_;
  void* workspace_;
  uint64_t workspace_bytes_;
};

}  // namespace fake_cublaslt
