// Prints what every kernel of one set gives for fixed pseudo-random inputs, as a line
// "KERNEL TYPE DIGEST" each, so that the bits of two machines can be compared by diff. Lines whose
// kernel is "inputs" are digests of what the kernels were given: where these differ, the random
// numbers of the two C++ libraries do, and not the kernels.
//
//   kernel_digests        names the sets of this machine, a line each
//   kernel_digests SET    the digests of that set
#include <xxhash.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/jobs.h"
#include "compute/kernels.h"
#include "compute/math/initial_values.h"
#include "compute/update_jobs.h"
#include "dense/kernels.h"
#include "support/same_element.h"

namespace shardrec::compute {
namespace {

// XXH3-64 of numbers. All NaNs of a type count as one.
class Digest {
 public:
  void add(std::span<const float> numbers) {
    for (const float x : numbers) {
      append(test::bits_with_one_nan(x));
    }
  }
  void add(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void add(std::span<const uint8_t> numbers) { add(std::as_bytes(numbers)); }
  void add(std::span<const int32_t> numbers) { add(std::as_bytes(numbers)); }
  void add(const Elements& elements, Element type) {
    for (size_t i = 0; i < elements.size(); ++i) {
      if (type == Element::kFloat32) {
        add(std::vector<float>{elements.at(i)});
      } else {
        append(test::bits_with_one_nan(type, elements.half_at(i)));
      }
    }
  }
  void add(const Tensors& tensors, Element type) {
    add(tensors.table, type);
    for (const std::vector<float>& matrix : tensors.matrices) add(matrix);
    for (const std::vector<float>& state : tensors.states) add(state);
  }
  // Elements of a type, `count` of them, as a kernel wrote them.
  void add(std::span<const std::byte> bytes, Element type) {
    for (size_t at = 0; at < bytes.size(); at += element_bytes(type)) {
      if (type == Element::kFloat32) {
        float number = 0;
        std::memcpy(&number, &bytes[at], sizeof number);
        add(std::span(&number, 1));
      } else {
        uint16_t half = 0;
        std::memcpy(&half, &bytes[at], sizeof half);
        half = test::bits_with_one_nan(type, half);
        add(std::as_bytes(std::span(&half, 1)));
      }
    }
  }

  void print(std::string kernel, const char* type) const {
    for (char& letter : kernel) {
      if (letter == ' ') letter = '_';
    }
    std::printf("%s %s %016llx\n", kernel.c_str(), type,
                static_cast<unsigned long long>(XXH3_64bits(bytes_.data(), bytes_.size())));
  }

 private:
  void append(uint32_t word) {
    for (int shift = 0; shift < 32; shift += 8)
      bytes_.push_back(static_cast<std::byte>(word >> shift));
  }

  std::vector<std::byte> bytes_;
};

// Whole vectors and every tail of each set, and rows of several tiles.
constexpr int64_t kWidths[] = {1,  2,  3,  4,  5,  7,  8,  9,  12, 13,  15,  16,  17,
                               24, 31, 32, 33, 47, 48, 63, 64, 65, 100, 127, 128, 130};
constexpr Numbers kNumbers[] = {Numbers::kOrdinary, Numbers::kSpecial};

void coded_lookups(const Kernels& kernels) {
  Random random(2);
  Digest outputs;
  for (const int64_t width : kWidths) {
    for (const Numbers numbers : kNumbers) {
      const PooledShape shape = {.width = width,
                                 .padding = static_cast<size_t>(width % 3),
                                 .is_64 = width % 2 == 0,
                                 .weighted = width % 4 < 2,
                                 .numbers = numbers};
      const CodedJob job(random, shape);
      std::vector<float> out;
      kernels.pooled_lookup(job.view(out), 0, shape.bags);
      outputs.add(out);
    }
  }
  outputs.print("pooled_lookup", "8 bits");
}

void pooled_lookups(const Kernels& kernels) {
  for (const Element element : kElements) {
    Random random(1);
    Digest tables;
    Digest outputs;
    Digest means;
    for (const int64_t width : kWidths) {
      for (const Numbers numbers : kNumbers) {
        const PooledShape shape = {.width = width,
                                   .padding = static_cast<size_t>(width % 3),
                                   .is_64 = width % 2 == 0,
                                   .weighted = width % 4 < 2,
                                   .element = element,
                                   .numbers = numbers};
        const PooledJob job(random, shape);
        std::vector<float> out;
        PooledLookup view = job.view(out);
        for (size_t i = 0; i < static_cast<size_t>(shape.rows) * view.stride; ++i) {
          tables.add(std::vector<float>{job.at(i)});
        }
        kernels.pooled_lookup(view, 0, shape.bags);
        outputs.add(out);
        std::vector<std::byte> halves(out.size() * element_bytes(element));
        view.out = halves.data();
        view.out_element = element;
        view.mean = true;
        kernels.pooled_lookup(view, 0, shape.bags);
        means.add(halves, element);
      }
    }
    tables.print("inputs of pooled_lookup", name_of(element));
    outputs.print("pooled_lookup", name_of(element));
    means.print("pooled_lookup mean", name_of(element));
  }
}

void row_kernels(const Kernels& kernels, const OptimizerStep& step, Element element,
                 bool stochastic) {
  Random random(2);
  Digest start;
  Digest updates;
  Digest sums;
  Digest gradients;
  Digest norms;
  Digest rescaled;
  for (const int64_t width : kWidths) {
    for (const Numbers numbers : kNumbers) {
      UpdateShape shape = random_shape(random, width, step, numbers);
      shape.element = element;
      shape.stochastic = stochastic;
      shape.step.max_norm = 3;
      UpdateJob job(random, shape);
      std::vector<std::byte> scratch = row_scratch(width);
      const RowUpdate view = job.view();
      start.add(job.start(), element);
      const auto unique = static_cast<size_t>(shape.unique);

      std::vector<float> sum_of_rows(unique * static_cast<size_t>(width));
      kernels.row_gradients(view, sum_of_rows.data(), 0, shape.unique, scratch.data());
      gradients.add(sum_of_rows);
      const auto count = static_cast<int>(job.columns().size());
      const int needs = state_needs(step.kind).sums;
      std::vector<float> sums_of_rows(unique * static_cast<size_t>(count * needs));
      kernels.row_sums(view, job.columns().data(), count, sums_of_rows.data(), 0, shape.unique,
                       scratch.data());
      sums.add(sums_of_rows);
      kernels.row_update(view, 0, shape.unique, scratch.data());
      updates.add(job.now, element);
      std::vector<float> norms_of_rows(unique * static_cast<size_t>(count));
      kernels.row_norms(view, job.columns().data(), count, norms_of_rows.data(), 0, shape.unique,
                        scratch.data());
      norms.add(norms_of_rows);
      kernels.row_rescale(view, job.columns().data(), count, norms_of_rows.data(), 0, shape.unique,
                          scratch.data());
      rescaled.add(job.now, element);
    }
  }
  const std::string of = " " + name_of(step) + (stochastic ? " stochastic" : "");
  start.print("inputs of row_update" + of, name_of(element));
  gradients.print("row_gradients" + of, name_of(element));
  sums.print("row_sums" + of, name_of(element));
  updates.print("row_update" + of, name_of(element));
  norms.print("row_norms" + of, name_of(element));
  rescaled.print("row_rescale" + of, name_of(element));
}

void kernels_of_elements(const Kernels& kernels, Element element) {
  Random random(3);
  Digest inputs;
  Digest scaled;
  Digest widened;
  Digest narrowed;
  Digest dots;
  for (const int64_t width : kWidths) {
    for (const Numbers numbers : kNumbers) {
      const auto count = static_cast<size_t>(width);
      const std::vector<float> x = numbers_of(random, count, numbers);
      const Elements row(element, numbers_of(random, count, numbers));
      inputs.add(x);
      inputs.add(row, element);
      std::vector<float> out(count);
      kernels.scale_gradient({.divisor = 3, .max_gradient = 0.5F, .length = 7, .element = element},
                             row.data(), out.data(), width);
      scaled.add(out);
      kernels.widen(row.data(), element, out.data(), width);
      widened.add(out);
      std::vector<std::byte> elements(count * element_bytes(element));
      kernels.narrow(x.data(), element, elements.data(), width);
      narrowed.add(elements, element);
      const float dot = kernels.dot(row.data(), element, x.data(), width);
      dots.add(std::vector<float>{dot});
    }
  }
  if (element != Element::kFloat32) {  // every pattern
    std::vector<uint16_t> patterns(size_t{1} << 16);
    for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<uint16_t>(i);
    std::vector<float> floats(patterns.size());
    const auto count = static_cast<int64_t>(patterns.size());
    kernels.widen(patterns.data(), element, floats.data(), count);
    widened.add(floats);
    // Between each pattern and the next: ties, and both sides of them.
    for (const uint32_t more : {0x0FFFU, 0x1000U, 0x1001U, 0x7FFFU, 0x8000U, 0x8001U}) {
      std::vector<float> between = floats;
      for (float& y : between) {
        if (!std::isnan(y)) y = std::bit_cast<float>(std::bit_cast<uint32_t>(y) + more);
      }
      kernels.narrow(between.data(), element, patterns.data(), count);
      narrowed.add(std::as_bytes(std::span(patterns)));
    }
  }
  inputs.print("inputs of elements", name_of(element));
  scaled.print("scale_gradient", name_of(element));
  widened.print("widen", name_of(element));
  narrowed.print("narrow", name_of(element));
  dots.print("dot", name_of(element));
}

void kernels_of_floats(const Kernels& kernels) {
  Random random(4);
  Digest codes;
  Digest restored;
  Digest ids;
  Digest sums;
  Digest quotients;
  for (const int64_t width : kWidths) {
    for (const Numbers numbers : kNumbers) {
      const auto count = static_cast<size_t>(width);
      std::vector<float> x = numbers_of(random, count, numbers);
      const std::vector<float> y = numbers_of(random, count, numbers);
      std::vector<uint8_t> code(count);
      const RowScale scale = kernels.quantize(x.data(), code.data(), width);
      codes.add(code);
      codes.add(std::vector<float>{scale.scale, scale.offset});
      std::vector<float> out(count);
      kernels.dequantize(code.data(), scale, out.data(), width);
      restored.add(out);
      kernels.add(y.data(), x.data(), width);
      sums.add(x);
      for (const float divisor : {3.0F, -0.7F, 0x1p-126F, 1e-40F}) {
        std::vector<float> quotient = x;
        kernels.divide(quotient.data(), divisor, width);
        quotients.add(quotient);
      }
      std::vector<int64_t> wide(count);
      for (int64_t& id : wide) id = uniform(random, 0, (int64_t{1} << 31) - 1);
      std::vector<int32_t> narrow(count);
      const bool inside = kernels.narrow_ids(wide.data(), int64_t{1} << 31, narrow.data(), width);
      ids.add(narrow);
      ids.add(std::vector<int32_t>{inside ? 1 : 0});
    }
  }
  codes.print("quantize", "fp32");
  restored.print("dequantize", "fp32");
  ids.print("narrow_ids", "int64");
  sums.print("add", "fp32");
  quotients.print("divide", "fp32");

  Digest values;
  std::vector<float> table(size_t{50} * 37);
  math::fill_uniform({.key = math::table_key(5, "users"), .low = -0.3F, .high = 0.7F},
                     (int64_t{1} << 33) - 20, 50, 3, 37, table.data(), 37);
  values.add(table);
  values.print("fill_uniform", "fp32");
}

// The set of the layers that goes with the one in use.
void kernels_of_layers(const dense::Kernels& kernels) {
  Random random(6);
  Digest activations;
  Digest columns;
  Digest interactions;
  Digest updates;
  for (const int64_t width : kWidths) {
    for (const Numbers numbers : kNumbers) {
      constexpr int64_t kRows = 3;
      const auto count = static_cast<size_t>(kRows * width);
      std::vector<float> y = numbers_of(random, count, numbers);
      const std::vector<float> bias = numbers_of(random, static_cast<size_t>(width), numbers);
      for (const bool relu : {false, true}) {
        kernels.bias_activation(y.data(), width, kRows, width, bias.data(), relu);
        activations.add(y);
      }
      std::vector<float> dy = numbers_of(random, count, numbers);
      kernels.relu_backward(y.data(), width, dy.data(), width, dy.data(), width, kRows, width);
      activations.add(dy);
      std::vector<float> sums(static_cast<size_t>(width));
      kernels.column_sums(dy.data(), width, kRows, width, sums.data());
      kernels.add(bias.data(), sums.data(), width);
      columns.add(sums);
      kernels.scale(sums.data(), 0.3F, width);
      columns.add(sums);
      const double squares = kernels.square_sum(y.data(), kRows * width);
      const auto upper = static_cast<float>(squares);  // an infinity above the most float
      columns.add(std::vector<float>{upper, static_cast<float>(squares - double{upper})});

      const dense::InteractionShape shape = {.features = width % 29 + 1, .dim = width};
      const auto dim = static_cast<size_t>(width);
      const auto features = static_cast<size_t>(shape.features);
      const std::vector<float> dense = numbers_of(random, dim, numbers);
      const std::vector<float> embeddings = numbers_of(random, features * dim, numbers);
      std::vector<float> out(dim + features * (features + 1) / 2);
      std::vector<float> dense_gradient(dim);
      std::vector<float> embedding_gradient(features * dim);
      std::vector<float> scratch(dense::interaction_scratch(shape));
      kernels.interaction_forward(shape, dense.data(), embeddings.data(), out.data(),
                                  scratch.data());
      interactions.add(out);
      kernels.interaction_backward(shape, dense.data(), embeddings.data(), out.data(),
                                   dense_gradient.data(), embedding_gradient.data(),
                                   scratch.data());
      interactions.add(dense_gradient);
      interactions.add(embedding_gradient);

      std::vector<float> weights = numbers_of(random, dim, numbers);
      std::vector<float> first(dim, 0.25F);
      std::vector<float> second(dim, 0.5F);
      compute::ElementUpdate update = {.weights = weights.data(),
                                       .gradients = bias.data(),
                                       .max_gradient = width % 2 == 0 ? 1.5F : 0,
                                       .matrices = {first.data(), second.data()}};
      for (const auto kind : {compute::OptimizerKind::kSgd, compute::OptimizerKind::kAdagrad,
                              compute::OptimizerKind::kMomentumSgd, compute::OptimizerKind::kAdam,
                              compute::OptimizerKind::kLamb}) {
        for (const auto decay : {compute::WeightDecay::kNone, compute::WeightDecay::kL2,
                                 compute::WeightDecay::kDecouple}) {
          update.step = step_of(kind, decay);
          compute::cpu_kernels().element_sums(update, 0, width, update.sums);
          compute::cpu_kernels().element_update(update, 0, width);
          updates.add(update.sums);
          updates.add(weights);
          updates.add(first);
          updates.add(second);
        }
      }
    }
  }
  activations.print("layers activation", "fp32");
  columns.print("layers column_sums", "fp32");
  interactions.print("layers interaction", "fp32");
  updates.print("layers optimizers", "fp32");
}

// Cross layers, layer norm and dropout.
void kernels_of_layer_kinds(const dense::Kernels& kernels) {
  Random random(7);
  Digest crosses, norms, drops;
  for (const int64_t width : kWidths) {
    for (const Numbers numbers : kNumbers) {
      constexpr int64_t kRows = 3;
      const auto dim = static_cast<size_t>(width);
      const auto rows_of = [&](std::vector<float>& of) {
        return core::Matrix{of.data(), kRows, width, width};
      };
      const auto batch = [&] { return numbers_of(random, kRows * dim, numbers); };
      std::vector<float> x = batch(), origin = batch(), product = batch(), dy = batch();
      std::vector<float> y(x.size()), dz(x.size()), sum(x.size()), statistics(2 * kRows);
      const std::vector<float> weight = numbers_of(random, dim, numbers);
      std::vector<float> weight_sums(dim), bias_sums(dim);
      kernels.cross_forward(weight.data(), rows_of(origin), rows_of(x), rows_of(product),
                            rows_of(y));
      for (const bool starts : {true, false}) {
        kernels.cross_backward({rows_of(origin), rows_of(product), rows_of(dy), rows_of(dz)},
                               rows_of(sum), starts);
      }
      for (const auto* values : {&product, &y, &dz, &sum}) crosses.add(*values);

      kernels.layer_norm_forward({weight.data(), weight.data(), 1e-5F}, rows_of(x), rows_of(y),
                                 statistics.data());
      kernels.layer_norm_backward(
          {weight.data(), statistics.data(), weight_sums.data(), bias_sums.data()}, rows_of(x),
          rows_of(dy), rows_of(dz));
      for (const auto* values : {&y, &statistics, &dz, &weight_sums, &bias_sums}) {
        norms.add(*values);
      }

      kernels.dropout(
          {.seed = 11, .layer = 2, .forward = 5, .threshold = 1U << 30, .factor = 1.25F},
          (int64_t{1} << 34) / width - 1, rows_of(x), rows_of(y));
      drops.add(y);
    }
  }
  crosses.print("layers cross", "fp32");
  norms.print("layers layer_norm", "fp32");
  drops.print("layers dropout", "fp32");
}

int run(std::string_view name) {
  for (int set = 0; set < cpu_kernel_count(); ++set) {
    const Kernels& kernels = cpu_kernels_at(set);
    if (name.empty()) std::printf("%s\n", kernels.name);
    if (name != kernels.name) continue;
    force_cpu_kernels(&kernels);
    pooled_lookups(kernels);
    coded_lookups(kernels);
    for (const Element element : kElements) {
      for (const OptimizerStep& step : all_steps()) {
        row_kernels(kernels, step, element, false);
        if (element != Element::kFloat32) row_kernels(kernels, step, element, true);
      }
      kernels_of_elements(kernels, element);
    }
    kernels_of_floats(kernels);
    kernels_of_layers(dense::kernels());
    kernels_of_layer_kinds(dense::kernels());
    return 0;
  }
  return name.empty() ? 0 : 1;
}

}  // namespace
}  // namespace shardrec::compute

int main(int count, char** arguments) {
  if (count > 2) {
    std::fprintf(stderr, "usage: kernel_digests [SET]\n");
    return 2;
  }
  return shardrec::compute::run(count == 2 ? arguments[1] : "");
}
