// Misuse that the tests' cuBLASLt finds: without these, a test without violations would say nothing.
#include "compute/cuda/host/current_device.h"
#include "dense/cublas/cublaslt_api.h"
#include "products.h"

namespace shardrec::test {
namespace {

namespace cublas = dense::cublas;

class CublasMisuse : public EmulatedCublasTest {
 protected:
  static void expect_violation(const std::string& words) {
    EXPECT_EQ(OF_FAKE(fake_cublaslt_violations)(), 1) << words;
    const std::string last = OF_FAKE(fake_cublaslt_last_violation)();
    EXPECT_NE(last.find(words), std::string::npos) << words << ": " << last;
    OF_FAKE(fake_cublaslt_forget_violations)();
  }
  // One number of a product is wrong.
  template <class Change>
  static void expect_refused(const Change& change, const std::string& words,
                             Epilogue epilogue = Epilogue::kNone) {
    const auto stream = std::make_shared<Stream>(0);
    Gemm gemm(stream);
    const Case product(sized(4, 8, 8, epilogue));
    Case::OnDevice there = product.on_device(stream);
    change(there.product);
    try {
      EXPECT_FALSE(gemm.try_multiply(there.product)) << words;
    } catch (const std::exception&) {  // products without epilogue are not composed
    }
    expect_violation(words);
  }
};

TEST_F(CublasMisuse, Masks) {
  const Epilogue mask = Epilogue::kReluBiasMask;
  expect_refused([](Product& p) { p.mask_ld = 64; }, "64 bits in a column", mask);
  expect_refused([](Product& p) { p.mask_ld = 0; }, "0 bits in a column, for 8 rows", mask);
  expect_refused([](Product& p) { p.mask = nullptr; }, "without a mask", mask);
  expect_refused([](Product& p) { p.mask = static_cast<char*>(p.mask) + 8; }, "8-byte aligned",
                 Epilogue::kDrelu);
}

TEST_F(CublasMisuse, BiasAndStrides) {
  expect_refused([](Product& p) { p.bias = nullptr; }, "without a bias", Epilogue::kBias);
  expect_refused([](Product& p) { p.lda = 7; }, "columns of 8 elements that are 7 apart");
  expect_refused([](Product& p) { p.ldc = 7; }, "columns of 8 elements that are 7 apart");
}

TEST_F(CublasMisuse, AnotherCurrentDevice) {
  const auto& table = dense::device::table();
  const auto stream = std::make_shared<Stream>(0);
  const Stream other(1);
  const Case product(sized(4, 8, 8));
  const Case::OnDevice there = product.on_device(stream);
  shardrec_cublas_product job{};
  job.m = 4;
  job.n = job.k = job.lda = job.ldb = job.ldc = 8;
  job.a = there.product.a;
  job.b = there.product.b;
  job.c = there.product.c;
  shardrec_cublas_handle* handle = nullptr;
  const compute::cuda::host::CurrentDevice current(0);
  ASSERT_EQ(table.create(&handle), SHARDREC_CUBLAS_OK);
  int32_t was_enqueued = -1;
  const auto prepare = [&] { return table.prepare(handle, &job, 0, &was_enqueued); };
  EXPECT_EQ(table.multiply(handle, stream->number(), &job), SHARDREC_CUBLAS_NOT_PREPARED);
  {
    const compute::cuda::host::CurrentDevice wrong(1);
    EXPECT_EQ(prepare(), cublas::kInvalidValue);
    expect_violation("for a handle of device 0, where device 1 is current");
  }
  EXPECT_EQ(prepare(), SHARDREC_CUBLAS_OK);
  {
    const compute::cuda::host::CurrentDevice wrong(1);
    EXPECT_EQ(table.multiply(handle, stream->number(), &job), cublas::kInvalidValue);
    expect_violation("for a handle of device 0, where device 1 is current");
  }
  EXPECT_EQ(table.multiply(handle, other.number(), &job), cublas::kInvalidValue);
  expect_violation("in a stream of another device");
  EXPECT_EQ(prepare(), SHARDREC_CUBLAS_OK);
  EXPECT_EQ(was_enqueued, 0);
  EXPECT_EQ(table.multiply(handle, stream->number(), &job), SHARDREC_CUBLAS_OK);
  EXPECT_EQ(prepare(), SHARDREC_CUBLAS_OK);
  EXPECT_EQ(was_enqueued, 1);
  EXPECT_EQ(table.destroy(handle), SHARDREC_CUBLAS_OK);
  product.expect(there);
}

// The library itself, whose functions the plug-in calls in one way only.
class FakeCublasLt : public CublasMisuse {
 protected:
  template <class Function>
  static Function find(Function cublas::Api::* /*member*/, const char* name) {
    return std::bit_cast<Function>(of_fake<void()>(name));
  }
#define OF_LIBRARY(name) find(&cublas::Api::name, #name)

  void SetUp() override {
    CublasMisuse::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(OF_LIBRARY(cublasLtCreate)(&handle_), cublas::kSuccess);
    ASSERT_EQ(OF_LIBRARY(cublasLtMatmulDescCreate)(&desc_, cublas::kCompute32, cublas::kFloat32),
              cublas::kSuccess);
    ASSERT_EQ(OF_LIBRARY(cublasLtMatrixLayoutCreate)(&square_, cublas::kFloat32, 4, 4, 4),
              cublas::kSuccess);
    ASSERT_EQ(OF_LIBRARY(cublasLtMatmulPreferenceCreate)(&preference_), cublas::kSuccess);
    set_schemes(cublas::kReduceInComputeType);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    OF_LIBRARY(cublasLtMatmulPreferenceDestroy)(preference_);
    OF_LIBRARY(cublasLtMatrixLayoutDestroy)(square_);
    OF_LIBRARY(cublasLtMatmulDescDestroy)(desc_);
    OF_LIBRARY(cublasLtDestroy)(handle_);
    CublasMisuse::TearDown();
  }

  void set_schemes(uint32_t schemes) {
    ASSERT_EQ(OF_LIBRARY(cublasLtMatmulPreferenceSetAttribute)(
                  preference_, cublas::kReductionSchemeMask, &schemes, sizeof schemes),
              cublas::kSuccess);
  }
  cublas::Status choose(cublas::MatrixLayout b) {
    int found = 0;
    return OF_LIBRARY(cublasLtMatmulAlgoGetHeuristic)(handle_, desc_, square_, b, square_, square_,
                                                      preference_, 1, &chosen_, &found);
  }
  cublas::Status multiply(const Stream& stream, char* data, const cublas::Algorithm* algorithm,
                          size_t workspace_bytes) {
    const float one = 1, zero = 0;
    return OF_LIBRARY(cublasLtMatmul)(
        handle_, desc_, &one, data, square_, data, square_, &zero, data, square_, data, square_,
        algorithm, data, workspace_bytes, std::bit_cast<cublas::CudaStream>(stream.number()));
  }

  cublas::LtHandle handle_ = nullptr;
  cublas::MatmulDesc desc_ = nullptr;
  cublas::MatrixLayout square_ = nullptr;
  cublas::Preference preference_ = nullptr;
  cublas::HeuristicResult chosen_{};
};

TEST_F(FakeCublasLt, FindsSumsThatDoNotRepeatOrAreRounded) {
  set_schemes(cublas::kReduceInComputeType | cublas::kReduceInPlace);
  choose(square_);
  expect_violation("bits need not repeat");
  set_schemes(cublas::kReduceInOutputType);
  EXPECT_EQ(choose(square_), cublas::kSuccess);  // the output has 32 bits
  cublas::MatrixLayout half = nullptr;
  ASSERT_EQ(OF_LIBRARY(cublasLtMatrixLayoutCreate)(&half, SHARDREC_CUBLAS_FLOAT16, 4, 4, 4),
            cublas::kSuccess);
  int found = 0;
  OF_LIBRARY(cublasLtMatmulAlgoGetHeuristic)(handle_, desc_, half, half, half, half, preference_, 1,
                                             &chosen_, &found);
  expect_violation("sums that are rounded to 16 bits before they are added up");
  OF_LIBRARY(cublasLtMatrixLayoutDestroy)(half);
}

TEST_F(FakeCublasLt, FindsAlgorithmsOfOthersAndNone) {
  const auto stream = std::make_shared<Stream>(0);
  const DeviceBytes data(stream, 4096);
  OF_FAKE(fake_cublaslt_set_workspace)(0);
  ASSERT_EQ(choose(square_), cublas::kSuccess);
  EXPECT_EQ(multiply(*stream, data.data(), nullptr, 0), cublas::kInvalidValue);
  expect_violation("without an algorithm");
  const int32_t transposed = cublas::kTransposed;
  OF_LIBRARY(cublasLtMatmulDescSetAttribute)(desc_, cublas::kTransA, &transposed,
                                             sizeof transposed);
  EXPECT_EQ(multiply(*stream, data.data(), &chosen_.algorithm, 0), cublas::kInvalidValue);
  expect_violation("an algorithm of another product");
}

TEST_F(FakeCublasLt, FindsTooLittleWorkspaceAndWorseAlignment) {
  const auto stream = std::make_shared<Stream>(0);
  const DeviceBytes data(stream, 4096);
  const uint64_t bytes = 512;
  OF_LIBRARY(cublasLtMatmulPreferenceSetAttribute)(preference_, cublas::kMaxWorkspaceBytes, &bytes,
                                                   sizeof bytes);
  OF_FAKE(fake_cublaslt_set_workspace)(512);
  ASSERT_EQ(choose(square_), cublas::kSuccess);
  EXPECT_EQ(multiply(*stream, data.data(), &chosen_.algorithm, 511), cublas::kInvalidValue);
  expect_violation("511 bytes of workspace, where the algorithm asks for 512");
  OF_FAKE(fake_cublaslt_set_workspace)(0);
  ASSERT_EQ(choose(square_), cublas::kSuccess);
  EXPECT_EQ(multiply(*stream, data.data() + 4, &chosen_.algorithm, 0), cublas::kInvalidValue);
  expect_violation("an A that is 4-byte aligned, by an algorithm for 256 bytes");
}

TEST_F(FakeCublasLt, FindsWhatDoesNotFit) {
  cublas::MatrixLayout wide = nullptr;
  ASSERT_EQ(OF_LIBRARY(cublasLtMatrixLayoutCreate)(&wide, cublas::kFloat32, 4, 5, 4),
            cublas::kSuccess);
  EXPECT_EQ(choose(wide), cublas::kInvalidValue);
  expect_violation("matrices that do not fit each other");
  OF_LIBRARY(cublasLtMatrixLayoutDestroy)(wide);
  EXPECT_EQ(choose(wide), cublas::kInvalidValue);
  expect_violation("destroyed or never was");
  const int64_t wrong = 0;
  EXPECT_EQ(
      OF_LIBRARY(cublasLtMatmulDescSetAttribute)(desc_, cublas::kTransA, &wrong, sizeof wrong),
      cublas::kInvalidValue);
  expect_violation("an attribute of 8 bytes, where there are 4");
  EXPECT_EQ(OF_LIBRARY(cublasLtMatrixLayoutCreate)(&wide, cublas::kFloat32, 0, 5, 4),
            cublas::kInvalidValue);
  expect_violation("a matrix of 0 rows and 5 columns");
}

}  // namespace
}  // namespace shardrec::test
