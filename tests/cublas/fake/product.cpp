#include "product.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "elements.h"
#include "emulated.h"

namespace fake_cublaslt {
namespace {

constexpr int kGarbage = 0xA5;

// Bits of a column of the mask, byte by byte.
class MaskColumn {
 public:
  MaskColumn(const Problem& problem, int64_t column)
      : bytes_(static_cast<unsigned char*>(problem.desc.aux) + column * problem.desc.aux_ld / 8) {}

  bool get(int64_t row) const {
    unsigned char byte = 0;
    std::memcpy(&byte, bytes_ + row / 8, 1);
    return ((byte >> (row % 8)) & 1) != 0;
  }
  void set(int64_t row, bool value) const {
    unsigned char byte = 0xFF;  // behind the last row as well
    if (row % 8 != 0) std::memcpy(&byte, bytes_ + row / 8, 1);
    if (!value) byte = static_cast<unsigned char>(byte & ~(1U << (row % 8)));
    std::memcpy(bytes_ + row / 8, &byte, 1);
  }

 private:
  unsigned char* bytes_;
};

int64_t at(const MatrixLayoutType& layout, int64_t row, int64_t column, bool transposed) {
  return transposed ? row * layout.ld + column : column * layout.ld + row;
}

}  // namespace

Product::Product(const Problem& problem, const Matrices& matrices, float alpha, float beta,
                 void* workspace, uint64_t workspace_bytes)
    : problem_(problem),
      matrices_(matrices),
      alpha_(alpha),
      beta_(beta),
      workspace_(workspace),
      workspace_bytes_(workspace_bytes) {
  knobs().live.fetch_add(1);
}

Product::~Product() { knobs().live.fetch_sub(1); }

// What was done with it happens before it is deleted; nothing else is ordered.
void Product::keep() { __atomic_fetch_add(&holders_, 1, __ATOMIC_RELAXED); }
void Product::drop() {
  if (__atomic_sub_fetch(&holders_, 1, __ATOMIC_ACQ_REL) == 0) delete this;
}

bool Product::enqueue(Product* product, int64_t stream) {
  constexpr simt_kernel kKernel{[](void* it) { static_cast<Product*>(it)->compute(); },
                                [](void* it) { static_cast<Product*>(it)->keep(); },
                                [](void* it) { static_cast<Product*>(it)->drop(); }};
  const bool enqueued = simt::emulated()->enqueue_kernel(stream, &kKernel, product) == 0;
  product->drop();
  return enqueued;
}

void Product::compute() {
  knobs().computed.fetch_add(1);
  if (workspace_bytes_ > 0) std::memset(workspace_, kGarbage, workspace_bytes_);
  const MatrixLayoutType& d = problem_.d;
  std::vector<float> sums(static_cast<size_t>(problem_.rows()));
  for (int64_t column = 0; column < problem_.columns(); ++column) {
    for (int64_t row = 0; row < problem_.rows(); ++row) {
      float value = alpha_ * sum(row, column);
      if (beta_ != 0) {
        value += beta_ * load(d.dtype, matrices_.c, at(problem_.c, row, column, false));
      }
      value = finish(row, column, value);
      sums[static_cast<size_t>(row)] += value;
      store(d.dtype, matrices_.d, at(d, row, column, false), value);
    }
  }
  if (problem_.desc.epilogue == kDreluBgrad) {
    for (int64_t row = 0; row < problem_.rows(); ++row) {
      store(d.dtype, problem_.desc.bias, row, sums[static_cast<size_t>(row)]);
    }
  }
  if (problem_.desc.epilogue == kBgradA || problem_.desc.epilogue == kBgradB) sum_operand();
}

float Product::sum(int64_t row, int64_t column) const {
  float sum = 0;
  for (int64_t k = 0; k < problem_.depth(); ++k) sum += a(row, k) * b(k, column);
  return sum;
}

float Product::rounded(float value) const {
  return problem_.desc.compute_type == kCompute32FastTf32 ? round_to_tf32(value) : value;
}

float Product::a(int64_t row, int64_t k) const {
  const bool transposed = problem_.desc.transpose_a == kTransposed;
  return rounded(load(problem_.a.dtype, matrices_.a, at(problem_.a, row, k, transposed)));
}

float Product::b(int64_t k, int64_t column) const {
  const bool transposed = problem_.desc.transpose_b == kTransposed;
  return rounded(load(problem_.b.dtype, matrices_.b, at(problem_.b, k, column, transposed)));
}

float Product::finish(int64_t row, int64_t column, float value) {
  const MatmulDescType& desc = problem_.desc;
  const MaskColumn mask(problem_, column);
  switch (desc.epilogue) {
    case kBias:
      return value + load(problem_.d.dtype, desc.bias, row);
    case kReluBias:
      return std::max(value + load(problem_.d.dtype, desc.bias, row), 0.0F);
    case kReluAuxBias:
      value += load(problem_.d.dtype, desc.bias, row);
      mask.set(row, value >= 0);
      return std::max(value, 0.0F);
    case kDrelu:
    case kDreluBgrad:
      return mask.get(row) ? value : 0;
    default:
      return value;
  }
}

// Of what lies in memory, not of what it is rounded to.
void Product::sum_operand() const {
  const bool is_a = problem_.desc.epilogue == kBgradA;
  const int64_t count = is_a ? problem_.rows() : problem_.columns();
  for (int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int64_t k = 0; k < problem_.depth(); ++k) {
      sum += is_a ? load(problem_.a.dtype, matrices_.a,
                         at(problem_.a, i, k, problem_.desc.transpose_a == kTransposed))
                  : load(problem_.b.dtype, matrices_.b,
                         at(problem_.b, k, i, problem_.desc.transpose_b == kTransposed));
    }
    store(problem_.d.dtype, problem_.desc.bias, i, sum);
  }
}

}  // namespace fake_cublaslt
