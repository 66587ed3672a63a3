// Products among the operations of a stream: part of the graphs that repeated lists are launched by, with the bits that
// they have when they are enqueued one by one, whatever fails.
#include <functional>
#include <optional>

#include "compute/cuda/host/current_device.h"
#include "compute/cuda/host/library_calls.h"
#include "compute/cuda/host/plugin.h"
#include "core/error.h"
#include "dense/cublas/cublaslt_api.h"
#include "device/of_plugin.h"
#include "products.h"

namespace shardrec::test {
namespace {

namespace cublas = dense::cublas;

using compute::cuda::host::require;

class ProductGraphs : public EmulatedCublasTest {
 protected:
  // A product in a stream of its own, behind a fill of what it writes: a list of two.
  class Steps {
   public:
    explicit Steps(ProductGraphs& test, int device = 0, const Product& product = sized(4, 6, 5))
        : test_(test), stream_(std::make_shared<Stream>(device)), case_(product) {
      make_gemm();
      there_.emplace(case_.on_device(stream_));
      others_.emplace(case_.on_device(stream_));
      // The first one of its kind is enqueued outside of lists.
      gemm_->multiply(there_->product);
      stream_->wait();
    }

    void make_gemm() {
      gemm_.reset();
      gemm_.emplace(stream_);
    }
    void add(bool others = false) {
      const Case::OnDevice& on = others ? *others_ : *there_;
      clear(on);
      gemm_->multiply(on.product);
    }
    // Has a list take place whose product is right behind it: graphs that it has launched.
    int64_t run(bool others = false) {
      const int64_t before = test_.graph_launches_();
      add(others);
      stream_->submit();
      const int64_t launched = test_.graph_launches_() - before;
      expect(others);
      return launched;
    }
    void expect(bool others = false) { case_.expect(others ? *others_ : *there_); }

    const std::shared_ptr<Stream>& stream() { return stream_; }
    Gemm& gemm() { return *gemm_; }
    void destroy_gemm() { gemm_.reset(); }
    Product product(bool others = false) const { return (others ? others_ : there_)->product; }

   private:
    // What the product must write. Of cases whose C is not read.
    void clear(const Case::OnDevice& on) {
      const size_t bytes = case_.c.bytes().size();
      require(compute::cuda::host::table().fill(stream_->handle(), on.product.c, 0x5A, bytes),
              "fill");
    }

    ProductGraphs& test_;
    std::shared_ptr<Stream> stream_;
    Case case_;
    std::optional<Gemm> gemm_;
    std::optional<Case::OnDevice> there_, others_;
  };

  void SetUp() override {
    EmulatedCublasTest::SetUp();
    if (IsSkipped()) return;
    graph_launches_ = of_plugin<int64_t()>("simt_graph_launches");
    fail_capture_ = of_plugin<void(int64_t)>("simt_fail_capture");
  }

  static int64_t asked() { return OF_FAKE(fake_cublaslt_products)(); }
  static int64_t computed() { return OF_FAKE(fake_cublaslt_computed)(); }

  int64_t (*graph_launches_)() = nullptr;
  void (*fail_capture_)(int64_t) = nullptr;
};

TEST_F(ProductGraphs, AListWithAProductThatComesAgainIsAGraph) {
  Steps steps(*this);
  EXPECT_EQ(steps.run(), 0);
  EXPECT_EQ(steps.run(), 1);
  const int64_t asked_before = asked();
  const int64_t computed_before = computed();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(steps.run(), 1);
  EXPECT_EQ(asked(), asked_before) << "cuBLASLt was called for a graph that there is";
  EXPECT_EQ(computed(), computed_before + 3);
}

TEST_F(ProductGraphs, OtherMemoryIsAnotherGraph) {
  Steps steps(*this);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(steps.run(false), i == 0 ? 0 : 1);
    EXPECT_EQ(steps.run(true), i == 0 ? 0 : 1);
  }
}

TEST_F(ProductGraphs, EachNumberOfAProductCounts) {
  Steps steps(*this, 0, sized(8, 8, 8));
  const auto launched = [&](const std::function<void(Product&)>& change) {
    Product product = steps.product();
    change(product);
    const int64_t before = graph_launches_();
    steps.add();
    steps.gemm().multiply(product);
    steps.stream()->wait();
    return graph_launches_() - before;
  };
  const DeviceBytes more(steps.stream(), 4096);
  const std::function<void(Product&)> changes[] = {
      [](Product&) {},
      [](Product& p) { p.beta = 2; },
      [](Product& p) { p.m = 7; },
      [](Product& p) { p.n = 7; },
      [](Product& p) { p.k = 7; },
      [](Product& p) { p.transpose_a = true; },
      [](Product& p) { p.transpose_b = true; },
      [](Product& p) { p.multiplier = Multiplier::kTf32; },
      [&](Product& p) { p.a = more.data(); },
      [&](Product& p) { p.b = more.data(); },
      [&](Product& p) { p.c = more.data(); },
      [](Product& p) { p.epilogue = Epilogue::kBias; },
      [&](Product& p) {
        p.epilogue = Epilogue::kBias;
        p.bias = more.data();
      }};
  // The first time it may be enqueued at once, the second one it is a new list.
  for (const auto& change : changes) {
    launched(change);
    launched(change);
  }
  for (const auto& change : changes) EXPECT_EQ(launched(change), 1) << &change - changes;
}

TEST_F(ProductGraphs, AProductAloneIsEnqueuedWithoutAGraph) {
  Steps steps(*this);
  steps.stream()->wait();
  const int64_t graphs = graph_launches_();
  for (int i = 0; i < 4; ++i) {
    const int64_t before = asked();
    steps.gemm().multiply(steps.product());
    steps.stream()->submit();
    EXPECT_EQ(asked(), before + 1);
    steps.expect();
  }
  EXPECT_EQ(graph_launches_(), graphs);
}

TEST_F(ProductGraphs, ACaptureThatFailsIsEnqueuedOneByOne) {
  Steps steps(*this);
  Steps beside(*this);
  EXPECT_EQ(steps.run(), 0);
  EXPECT_EQ(beside.run(), 0);
  fail_capture_(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(steps.run(), 0);
  EXPECT_EQ(beside.run(), 1) << "another stream has graphs still";
}

TEST_F(ProductGraphs, AProductThatFailsInACaptureIsEnqueuedBehindIt) {
  for (const int status : {cublas::kInternalError, cublas::kNotSupported, cublas::kAllocFailed}) {
    Steps steps(*this);
    EXPECT_EQ(steps.run(), 0);
    OF_FAKE(fake_cublaslt_fail_call)(1, status);
    EXPECT_EQ(steps.run(), 0) << status;
    OF_FAKE(fake_cublaslt_fail_call)(0, 0);
  }
}

core::Error told_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const core::Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {SHARDREC_OK, ""};
}

// It takes place later than it was written down: whoever has it begin is told, with the sentence of the product.
TEST_F(ProductGraphs, AProductThatFailsLateIsTold) {
  Steps steps(*this);
  steps.add();
  OF_FAKE(fake_cublaslt_fail_call)(1, cublas::kExecutionFailed);
  const core::Error error = told_by([&] { steps.stream()->submit(); });
  EXPECT_EQ(error.status(), SHARDREC_DEVICE_ERROR);
  EXPECT_EQ(error.sentence(),
            "cuBLASLt 13.0.2 cannot multiply [4, 5] by [5, 6] on device 0: the program failed on "
            "the device (cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED)");
  steps.run();
  steps.add(true);
  OF_FAKE(fake_cublaslt_fail_call)(1, cublas::kAllocFailed);
  EXPECT_NE(told_by([&] { steps.stream()->wait(); }).sentence().find("ALLOC_FAILED"),
            std::string::npos);
  steps.run(true);
}

// Who asks for the number, or gives memory back, tells nobody of what was before: the next one does, once.
TEST_F(ProductGraphs, AFailureThatNobodyWasToldOfIsToldLater) {
  const auto gives_back = [](Steps& steps) { DeviceBytes(steps.stream(), 64); };
  const auto takes_number = [](Steps& steps) { (void)steps.stream()->number(); };
  for (const std::function<void(Steps&)>& quiet :
       {std::function<void(Steps&)>(gives_back), {takes_number}}) {
    Steps steps(*this);
    steps.add();
    OF_FAKE(fake_cublaslt_fail_call)(1, cublas::kExecutionFailed);
    quiet(steps);
    EXPECT_EQ(told_by([&] { steps.stream()->submit(); }).status(), SHARDREC_DEVICE_ERROR);
    EXPECT_NO_THROW(steps.stream()->submit());
    steps.run();
  }
}

TEST_F(ProductGraphs, AGemmTakesItsProductsWithIt) {
  Steps steps(*this);
  for (int i = 0; i < 4; ++i) {
    steps.add();
    steps.destroy_gemm();
    steps.expect();
    // Of the same handle's address, perhaps: but no graph of the one before.
    steps.make_gemm();
    steps.gemm().multiply(steps.product());
    steps.stream()->wait();
    EXPECT_EQ(steps.run(), 0);
  }
}

// What NVIDIA's library refuses in a capture, the tests' own finds: questions for algorithms, and first products.
TEST_F(ProductGraphs, ACaptureAsksAndLoadsNothing) {
  struct Misuse {
    const shardrec_cublas_table* table;
    shardrec_cublas_handle* handle;
    shardrec_cublas_product product;
    bool enqueues;

    static shardrec_cuda_error call(int64_t stream, const void* values) {
      const Misuse& misuse = **static_cast<Misuse* const*>(values);
      int32_t was_enqueued = 0;
      const shardrec_cublas_result result =
          misuse.enqueues ? misuse.table->multiply(misuse.handle, stream, &misuse.product)
                          : misuse.table->prepare(misuse.handle, &misuse.product, 0, &was_enqueued);
      return result == SHARDREC_CUBLAS_OK ? SHARDREC_CUDA_OK : SHARDREC_CUDA_LIBRARY_FAILED;
    }
  };
  const shardrec_cublas_table& table = dense::device::table();
  const compute::cuda::host::CurrentDevice current(0);
  for (const bool enqueues : {false, true}) {
    const auto stream = std::make_shared<Stream>(0);
    const DeviceBytes rows(stream, 4096);
    Misuse misuse{.table = &table, .handle = nullptr, .product = {}, .enqueues = enqueues};
    ASSERT_EQ(table.create(&misuse.handle), SHARDREC_CUBLAS_OK);
    shardrec_cublas_product& product = misuse.product;
    product.m = product.n = product.k = product.lda = product.ldb = product.ldc = 17;
    product.a = product.b = product.c = rows.data();
    int32_t was_enqueued = 0;
    if (enqueues) {
      ASSERT_EQ(table.prepare(misuse.handle, &product, 0, &was_enqueued), SHARDREC_CUBLAS_OK);
    }
    // Run one by one the first time, of nothing that is wrong: each list is of two calls that do nothing.
    const auto run = [&](shardrec_cuda_library_call call) {
      const Misuse* const values = &misuse;
      for (int i = 0; i < 2; ++i) {
        compute::cuda::host::call_library(*stream, call, static_cast<const void*>(&values),
                                          sizeof values);
      }
    };
    static bool wrong = false;
    wrong = false;
    const shardrec_cuda_library_call call = [](int64_t number, const void* values) {
      return wrong ? Misuse::call(number, values) : SHARDREC_CUDA_OK;
    };
    run(call);
    stream->submit();
    wrong = true;
    run(call);
    stream->submit();  // captured, and then run one by one
    EXPECT_NE(std::string(OF_FAKE(fake_cublaslt_last_violation)())
                  .find(enqueues ? "of a product that was not enqueued before"
                                 : "cublasLtMatmulAlgoGetHeuristic during a capture"),
              std::string::npos);
    EXPECT_EQ(OF_FAKE(fake_cublaslt_violations)(), 1);
    OF_FAKE(fake_cublaslt_forget_violations)();
    stream->wait();
    EXPECT_EQ(table.destroy(misuse.handle), SHARDREC_CUBLAS_OK);
  }
}

// As many kinds of products as a handle keeps algorithms for wait in a list, when it needs one more.
TEST_F(ProductGraphs, AlgorithmsOfProductsThatWaitAreKept) {
  const auto stream = std::make_shared<Stream>(0);
  Gemm gemm(stream, 0);
  const Case first(sized(1, 1, 1));
  const Case::OnDevice there = first.on_device(stream);
  const DeviceBytes rows(stream, 1 << 16);
  Product other = there.product;
  other.a = other.b = rows.data();
  other.c = rows.data();
  constexpr int64_t kKept = 512;
  for (int round = 0; round < 2; ++round) {
    gemm.multiply(there.product);
    for (other.lda = 2; other.lda <= kKept; ++other.lda) gemm.multiply(other);
  }
  const int64_t before = OF_FAKE(fake_cublaslt_heuristics)();
  gemm.multiply(other);
  EXPECT_EQ(OF_FAKE(fake_cublaslt_heuristics)(), before + 1);
  EXPECT_NO_THROW(stream->wait());
  first.expect(there);
}

// Each stream has graphs of its own, whatever the thread's current device is.
TEST_F(ProductGraphs, TwoDevices) {
  Steps first(*this, 0);
  Steps second(*this, 1, sized(4, 6, 5, Epilogue::kBias));
  for (int i = 0; i < 4; ++i) {
    first.add();
    second.add();
    const int64_t before = graph_launches_();
    second.stream()->submit();
    first.stream()->submit();
    EXPECT_EQ(graph_launches_() - before, i == 0 ? 0 : 2);
    first.expect();
    second.expect();
  }
}

}  // namespace
}  // namespace shardrec::test
