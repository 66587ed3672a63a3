// A steady step of the dense half allocates nothing. Counts every allocation of the whole process
// while it is asked to: malloc and its relatives, operator new among their callers.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "comm/world.h"
#include "dense/ddp/ddp.h"
#include "dense/direct_entry.h"
#include "dense/element_optimizer.h"
#include "dense/gradient_norm.h"
#include "dense/host_parameters.h"
#include "dense/layer_stacks.h"
#include "dense/layers/interaction.h"
#include "dense/layers/mlp.h"
#include "dense/loss.h"
#include "dense/reference.h"
#include "dense/sharded_parameters.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHARDREC_TEST_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARDREC_TEST_SANITIZED 1
#endif

namespace {
std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};
void count() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1);
}
}  // namespace

#ifdef SHARDREC_TEST_SANITIZED
// The sanitizers own malloc and tell of each call.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*,
                                                                           size_t),
                                                         void (*on_free)(const volatile void*));
namespace {
void on_malloc(const volatile void*, size_t) { count(); }
void on_free(const volatile void*) {}
const int installed = __sanitizer_install_malloc_and_free_hooks(&on_malloc, &on_free);
}  // namespace
#else
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t items, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  count();
  return __libc_malloc(size);
}
void* calloc(size_t items, size_t size) {
  count();
  return __libc_calloc(items, size);
}
void* realloc(void* memory, size_t size) {
  count();
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  count();
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
}
#endif

namespace shardrec::dense {
namespace {

template <class Step>
int64_t allocations_of(int times, const Step& step) {
  const int64_t before = allocations.load();
  counting.store(true);
  for (int i = 0; i < times; ++i) step();
  counting.store(false);
  return allocations.load() - before;
}

TEST(SteadyStep, TheCounterSeesAllocations) {
  EXPECT_GE(
      allocations_of(1, [] { std::vector<std::unique_ptr<int>>(3)[0] = std::make_unique<int>(1); }),
      2);
#ifndef SHARDREC_TEST_SANITIZED  // whose hooks see some kinds of allocation only
  // Through a volatile pointer: compilers remove an allocation that nobody sees.
  EXPECT_GE(allocations_of(1,
                           [] {
                             void* volatile memory = std::aligned_alloc(64, 64);
                             std::free(memory);
                           }),
            1);
#endif
}

// Bottom stack, interaction, top stack, loss, and the way back, as a DLRM does.
void expect_no_allocation_of_layers(Precision precision) {
  constexpr int64_t kBatch = 700, kFeatures = 9, kDim = 16;
  constexpr int64_t kProducts = kDim + (kFeatures + 1) * kFeatures / 2;
  std::mt19937 random(1);
  Mlp bottom(13, {.optimizer = {.kind = SHARDREC_OPTIMIZER_ADAM},
                  .threads = 2,
                  .accumulate = true,
                  .precision = precision});
  bottom.add(test::layer_norm());
  bottom.add(test::cross());
  bottom.add(test::cross(8));
  bottom.add_linear(64, SHARDREC_ACTIVATION_RELU);
  bottom.add(test::dropout());
  bottom.add(test::cross(16));
  bottom.add_linear(kDim, SHARDREC_ACTIVATION_RELU);
  Interaction interaction(kFeatures, kDim, 2);
  Mlp top(
      kProducts,
      {.optimizer = {.kind = SHARDREC_OPTIMIZER_ADAGRAD}, .threads = 2, .precision = precision});
  top.add(test::cross());
  top.add_linear(40, SHARDREC_ACTIVATION_RELU);
  top.add(test::layer_norm());
  top.add_linear(1, SHARDREC_ACTIVATION_NONE);

  test::Rows input(kBatch, 13), dense(kBatch, kDim), embeddings(kBatch, kFeatures * kDim);
  test::Rows products(kBatch, kProducts), logits(kBatch, 1), gradient(kBatch, 1);
  test::Rows dproducts(kBatch, kProducts), ddense(kBatch, kDim),
      dembeddings(kBatch, kFeatures * kDim);
  input.fill(random);
  embeddings.fill(random);
  std::vector<float> labels(kBatch), probabilities(kBatch);
  const auto step = [&](int64_t batch) {
    const auto first = [batch](test::Rows& rows) {
      core::Matrix view = rows.view();
      view.rows = batch;
      return view;
    };
    const auto column = [batch](test::Rows& rows) {
      return std::span(&rows.at(0, 0), static_cast<size_t>(batch));
    };
    const auto size = static_cast<size_t>(batch);
    bottom.forward(first(input), first(dense));
    interaction.forward(first(dense), first(embeddings), first(products));
    top.forward(first(products), first(logits));
    bce_with_logits(column(logits), std::span(labels).first(size),
                    std::span(probabilities).first(size), column(gradient));
    top.backward(first(gradient), first(dproducts));
    interaction.backward(first(dproducts), first(ddense), first(dembeddings));
    bottom.backward(first(ddense), {});
    top.step();
    bottom.step();
  };
  for (int i = 0; i < 20; ++i) step(kBatch);
  EXPECT_EQ(allocations_of(30, [&] { step(kBatch); }), 0);
  EXPECT_EQ(allocations_of(30, [&] { step(123); }), 0) << "a smaller batch";
}

TEST(SteadyStep, LayersAllocateNothing) { expect_no_allocation_of_layers(Precision::kFloat32); }

TEST(SteadyStep, LayersInBfloat16AllocateNothing) {
  expect_no_allocation_of_layers(Precision::kBfloat16);
}

TEST(SteadyStep, OptimizersAndTheGradientNormAllocateNothing) {
  for (const auto kind :
       {SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_MOMENTUM_SGD, SHARDREC_OPTIMIZER_ADAGRAD,
        SHARDREC_OPTIMIZER_ADAM, SHARDREC_OPTIMIZER_LAMB}) {
    core::Threads threads(2);
    std::vector<std::vector<float>> values, gradients;
    for (const size_t size : {70000U, 10U, 40000U}) {
      values.emplace_back(size, 1.0F);
      gradients.emplace_back(size, 0.5F);
    }
    ElementOptimizer optimizer({.kind = kind});
    GradientNorm norm;
    for (size_t i = 0; i < values.size(); ++i) {
      optimizer.add(values[i], gradients[i]);
      norm.add({.data = gradients[i].data(),
                .size = static_cast<int64_t>(gradients[i].size()),
                .dtype = SHARDREC_FLOAT32});
    }
    const auto step = [&] {
      norm.bound_norm(norm.l2(threads), 1, threads);
      norm.bound_values(norm.infinity(threads), threads);
      optimizer.begin_step();
      optimizer.step(2, 1, threads);
      optimizer.step(0, 2, threads);
    };
    for (int i = 0; i < 20; ++i) step();
    EXPECT_EQ(allocations_of(30, step), 0) << "optimizer " << kind;
  }
}

TEST(SteadyStep, DdpAllReduceAllocatesNothing) {
  constexpr int kRanks = 2;
  const auto errors = comm::run_ranks(kRanks, [&](comm::Communicator& communicator) {
    const std::shared_ptr<comm::Communicator> borrowed(&communicator, [](comm::Communicator*) {});
    std::vector<std::vector<float>> values, gradients;
    for (const size_t size : {300000U, 10U, 400000U, 3U}) {
      values.emplace_back(size);
      gradients.emplace_back(size, 1.0F);
    }
    Ddp ddp(borrowed, {});
    for (size_t i = 0; i < values.size(); ++i) {
      ddp.add("p" + std::to_string(i), {static_cast<int64_t>(values[i].size())}, flat(values[i]),
              flat(gradients[i]));
    }
    ddp.commit();
    comm::Collectives gate(communicator.open_channel(comm::Purpose::kControl), communicator.rank(),
                           communicator.size());
    const comm::Operation operation{.name = "gate", .kind = 1};
    for (int i = 0; i < 20; ++i) ddp.all_reduce();
    for (int i = 0; i < 3; ++i) gate.barrier(operation);
    const int64_t before = allocations.load();
    if (communicator.rank() == 0) counting.store(true);
    gate.barrier(operation);
    for (int i = 0; i < 10; ++i) ddp.all_reduce();
    gate.barrier(operation);
    if (communicator.rank() == 0) counting.store(false);
    gate.barrier(operation);
    EXPECT_EQ(allocations.load() - before, 0);
    gate.barrier(operation);
  });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->sentence();
}

FsdpOptions fsdp_of(shardrec_fsdp_strategy strategy, shardrec_dtype dtype, shardrec_dtype wire) {
  return {.strategy = strategy, .parameter_dtype = dtype, .reduce_dtype = wire};
}

// Large enough that two sums of one shard are exchanged in parts.
const UnitSizes kLargeUnits = {{700, 3, 0}, {1}, {150000, 64, 100}, {33, 31}};

// Steps of all ranks, after the first ones.
template <class Step>
void expect_steady(comm::Communicator& communicator, const Step& step) {
  comm::Collectives gate(communicator.open_channel(comm::Purpose::kControl), communicator.rank(),
                         communicator.size());
  const comm::Operation operation{.name = "gate", .kind = 1};
  for (int i = 0; i < 20; ++i) step();
  for (int i = 0; i < 3; ++i) gate.barrier(operation);
  const int64_t before = allocations.load();
  if (communicator.rank() == 0) counting.store(true);
  gate.barrier(operation);
  for (int i = 0; i < 10; ++i) step();
  gate.barrier(operation);
  if (communicator.rank() == 0) counting.store(false);
  gate.barrier(operation);
  EXPECT_EQ(allocations.load() - before, 0);
  gate.barrier(operation);
}

TEST(SteadyStep, OfShardedParametersAllocatesNothing) {
  constexpr auto kFull = SHARDREC_FSDP_FULL_SHARD;
  constexpr auto kWide = SHARDREC_FLOAT32;
  constexpr auto kNarrow = SHARDREC_BFLOAT16;
  const FsdpOptions kinds[] = {
      fsdp_of(kFull, kWide, kWide),
      fsdp_of(kFull, kWide, kNarrow),
      fsdp_of(kFull, kNarrow, kNarrow),
      fsdp_of(SHARDREC_FSDP_SHARD_GRAD_OP, kWide, kWide),
      fsdp_of(SHARDREC_FSDP_NO_SHARD, kWide, kWide),
      fsdp_of(SHARDREC_FSDP_NO_SHARD, kNarrow, kWide),
      fsdp_of(SHARDREC_FSDP_HYBRID_SHARD, kWide, kWide),
      fsdp_of(SHARDREC_FSDP_HYBRID_SHARD, kWide, kNarrow),
  };
  for (const FsdpOptions& options : kinds) {
    SCOPED_TRACE(testing::Message() << "strategy " << options.strategy << ", dtypes "
                                    << options.parameter_dtype << " and " << options.reduce_dtype);
    const bool mesh = options.strategy == SHARDREC_FSDP_HYBRID_SHARD;
    const auto errors = comm::run_ranks(mesh ? 6 : 2, [&](comm::Communicator& communicator) {
      ShardedModel model(
          mesh ? mesh_of(communicator, 2) : FsdpGroups{.world = borrowed(communicator)}, mesh,
          options, kLargeUnits, optimizer_of(SHARDREC_OPTIMIZER_LAMB));
      Fsdp& fsdp = model.fsdp();
      fsdp.commit();
      model.fill();
      const auto pass = [&](bool sync, int step) {
        if (options.parameter_dtype == kWide) return model.pass(sync, step);
        fsdp.begin(sync);  // the model computes in float32
        for (const int64_t unit : {0, 1, 2, 3}) {
          fsdp.unshard(unit);
          fsdp.wait_unshard(unit);
          fsdp.reshard(unit);
        }
        for (const int64_t unit : {3, 2, 1, 0}) {
          fsdp.unshard(unit);
          fsdp.parameter_gradients(unit == 0 ? 0 : unit == 3 ? 7 : unit + 2);
          fsdp.mark_ready(unit);
        }
        fsdp.end();
        fsdp.wait();
      };
      const auto step = [&] {
        fsdp.zero_gradients();
        pass(false, 0);
        pass(true, 1);
        fsdp.clip_gradients(SHARDREC_CLIP_L2, 1);
        fsdp.step();
      };
      expect_steady(communicator, step);
    });
    for (const auto& error : errors) EXPECT_FALSE(error) << error->sentence();
  }
}

TEST(SteadyStep, OfStacksWhoseParametersAreShardedAllocatesNothing) {
  const auto errors = comm::run_ranks(2, [&](comm::Communicator& communicator) {
    const std::shared_ptr<Mlp> stack = test::make(test::stacks().back(), {.threads = 2});
    const auto set =
        std::make_shared<Fsdp>(FsdpGroups{.world = borrowed(communicator)}, false, FsdpOptions{});
    add_layers(*set, "net.", stack, 1, std::make_unique<DirectEntry>(set));
    set->set_optimizer(optimizer_of(SHARDREC_OPTIMIZER_ADAM));
    set->commit();
    std::vector<float> x(500 * 17, 0.5F), y(500 * 5), dx(x.size());
    const auto pass = [&](bool sync) {
      set->begin(sync);
      stack->forward({x.data(), 500, 17, 17}, {y.data(), 500, 5, 5});
      stack->backward({y.data(), 500, 5, 5}, {dx.data(), 500, 17, 17});
      set->end();
      set->wait();
    };
    expect_steady(communicator, [&] {
      set->zero_gradients();
      pass(false);
      pass(true);
      set->step();
    });
  });
  for (const auto& error : errors) EXPECT_FALSE(error) << error->sentence();
}

}  // namespace
}  // namespace shardrec::dense
