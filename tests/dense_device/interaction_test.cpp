// The dot interaction on a device has the bits of the CPU.
#include "dense_device/both_places.h"

namespace shardrec::dense::device::test {
namespace {

class InteractionOnDevice : public OnDevice {
 protected:
  void compare(const InteractionShape& shape, int64_t batch, const Layout& layout, bool special) {
    const auto matrix = [&](int64_t cols, uint32_t seed) {
      return both({.rows = batch, .cols = cols, .layout = layout, .special = special}, seed);
    };
    const int64_t width = shape.features * shape.dim;
    const int64_t outputs = shape.dim + (shape.features + 1) * shape.features / 2;
    Both dense = matrix(shape.dim, 1), embeddings = matrix(width, 2), out = matrix(outputs, 3);
    Both out_gradient = matrix(outputs, 4), dense_gradient = matrix(shape.dim, 5),
         embedding_gradient = matrix(width, 6);
    std::vector<float> scratch(interaction_scratch(shape));
    for (int64_t r = 0; r < batch; ++r) {
      kernels().interaction_forward(shape, dense.host().row(r), embeddings.host().row(r),
                                    out.host().row(r), scratch.data());
      kernels().interaction_backward(shape, dense.host().row(r), embeddings.host().row(r),
                                     out_gradient.host().row(r), dense_gradient.host().row(r),
                                     embedding_gradient.host().row(r), scratch.data());
    }
    interaction_forward(*stream_, shape, dense.there(), embeddings.there(), out.there());
    interaction_backward(*stream_, shape, dense.there(), embeddings.there(),
                         {.out = out_gradient.there(),
                          .dense = dense_gradient.there(),
                          .embeddings = embedding_gradient.there()});
    const std::string where = core::sentence(shape.features, " features of dim ", shape.dim, ": ");
    out.expect_same(where + "out");
    dense_gradient.expect_same(where + "dense gradient");
    embedding_gradient.expect_same(where + "embedding gradient");
  }
};

// Of one tile and of several, in columns and in vectors.
TEST_F(InteractionOnDevice, IsThatOfTheCpu) {
  size_t number = 0;
  for (const int64_t features : {0, 1, 3, 26, 31, 32, 40, 70}) {
    for (const int64_t dim : {1, 3, 4, 17, 32, 33, 64, 132}) {
      for (const bool special : {false, true}) {
        compare({.features = features, .dim = dim}, 2, kLayouts[number++ % kLayouts.size()],
                special);
      }
    }
  }
}

TEST_F(InteractionOnDevice, OfManySamplesAndOfNone) {
  compare({.features = 5, .dim = 16}, 300, kLayouts[0], false);
  compare({.features = 5, .dim = 16}, 0, kLayouts[0], false);
}

}  // namespace
}  // namespace shardrec::dense::device::test
