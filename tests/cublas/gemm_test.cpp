// What a Gemm makes of what cuBLASLt cannot do or fails in: statuses, sentences, memory, devices and plans.
#include <thread>

#include "core/error.h"
#include "dense/cublas/cublaslt_api.h"
#include "products.h"

namespace shardrec::test {
namespace {

namespace cublas = dense::cublas;

class GemmTest : public EmulatedCublasTest {};

template <class Call>
core::Error error_of(const Call& call) {
  try {
    call();
  } catch (const core::Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {SHARDREC_OK, ""};
}

void expect_words(const core::Error& error, shardrec_status status,
                  const std::vector<std::string>& words) {
  EXPECT_EQ(error.status(), status) << error.sentence();
  for (const std::string& word : words) {
    EXPECT_NE(error.sentence().find(word), std::string::npos) << word << ": " << error.sentence();
  }
}

TEST_F(GemmTest, IsAvailable) {
  EXPECT_TRUE(dense::device::gemm_on_device_available());
  EXPECT_STREQ(Gemm(std::make_shared<Stream>(0)).library(), "cuBLASLt 13.0.2");
}

TEST_F(GemmTest, WithoutAnAlgorithmNothingIsEnqueued) {
  const auto stream = std::make_shared<Stream>(0);
  Gemm gemm(stream);
  OF_FAKE(fake_cublaslt_set_no_algorithm)(cublas::kReluAuxBias);
  const int64_t products = OF_FAKE(fake_cublaslt_products)();
  const Case product(sized(3, 5, 4, Epilogue::kReluBiasMask));
  const Case::OnDevice there = product.on_device(stream);
  EXPECT_FALSE(gemm.try_multiply(there.product));
  EXPECT_FALSE(gemm.try_multiply(there.product));
  EXPECT_EQ(there.c.read(), product.c.bytes());
  expect_words(error_of([&] { gemm.multiply(there.product); }), SHARDREC_UNSUPPORTED,
               {"cuBLASLt 13.0.2 cannot multiply [3, 4] by [4, 5] on device 0", "no algorithm"});
  EXPECT_EQ(OF_FAKE(fake_cublaslt_products)(), products);
  Case(sized(3, 5, 4, Epilogue::kReluBias)).run(gemm, stream);  // the others go on
}

// Those that NVIDIA's library has not.
TEST_F(GemmTest, SaysWhatCublasHasNot) {
  const auto stream = std::make_shared<Stream>(0);
  Gemm gemm(stream);
  Product other_output = sized(3, 5, 4);
  other_output.output = DType::kFloat16;
  Product mixed = sized(3, 5, 4);
  mixed.inputs = DType::kFloat16;
  mixed.output = DType::kBfloat16;
  for (const Product& product :
       {sized(3, 5, 4, Epilogue::kBiasGradientA),
        transposed(sized(1, 5, 4, Epilogue::kBiasGradientA), true, false),
        transposed(sized(3, 5, 4, Epilogue::kBiasGradientB), false, true),
        sized(3, 1, 4, Epilogue::kBiasGradientB), sized(3, 5, 1, Epilogue::kDrelu),
        sized(3, 5, 1, Epilogue::kDreluBiasGradient), other_output, mixed,
        sized(3, 0, 4, Epilogue::kBiasGradientA), sized(0, 5, 4, Epilogue::kBiasGradientB)}) {
    const Case one(product);
    EXPECT_FALSE(gemm.try_multiply(one.on_device(stream).product)) << one.name;
  }
}

TEST_F(GemmTest, AlgorithmsHaveTheWorkspaceThatTheyAskFor) {
  const auto stream = std::make_shared<Stream>(0);
  constexpr size_t kBytes = 5000;
  OF_FAKE(fake_cublaslt_set_workspace)(kBytes);
  Gemm enough(stream, kBytes);
  Case(sized(3, 5, 4, Epilogue::kBias)).run(enough, stream);
  Gemm less(stream, kBytes - 1);
  Gemm none(stream, 0);
  const Case product(sized(3, 5, 4));
  EXPECT_FALSE(less.try_multiply(product.on_device(stream).product));
  EXPECT_FALSE(none.try_multiply(product.on_device(stream).product));
}

TEST_F(GemmTest, ProductsAlikeHaveOnePlan) {
  const auto stream = std::make_shared<Stream>(0);
  Gemm gemm(stream);
  const auto asked = [&](const Product& product, uint32_t seed) {
    const int64_t before = OF_FAKE(fake_cublaslt_heuristics)();
    Case(product, seed).run(gemm, stream);
    return OF_FAKE(fake_cublaslt_heuristics)() - before;
  };
  Product product = sized(3, 5, 4, Epilogue::kReluBiasMask);
  EXPECT_EQ(asked(product, 1), 1);
  EXPECT_EQ(asked(product, 2), 0);  // with other addresses
  product.beta = 1;                 // its kernel may be another one
  EXPECT_EQ(asked(product, 3), 1);
  EXPECT_EQ(asked(product, 4), 0);
  // Each number counts.
  EXPECT_EQ(asked(sized(4, 5, 4, Epilogue::kReluBiasMask), 1), 1);
  EXPECT_EQ(asked(sized(3, 6, 4, Epilogue::kReluBiasMask), 1), 1);
  EXPECT_EQ(asked(sized(3, 5, 6, Epilogue::kReluBiasMask), 1), 1);
  EXPECT_EQ(asked(sized(3, 5, 4, Epilogue::kReluBias), 1), 1);
  for (int64_t Product::* stride : {&Product::lda, &Product::ldb, &Product::ldc}) {
    Product other = product;
    other.*stride += 8;
    EXPECT_EQ(asked(other, 1), 1);
  }
  Product other = product;
  other.mask_ld += 128;
  EXPECT_EQ(asked(other, 1), 1);
  other = product;
  other.multiplier = Multiplier::kTf32;
  EXPECT_EQ(asked(other, 1), 1);
  other = product;
  other.inputs = DType::kBfloat16;
  EXPECT_EQ(asked(other, 1), 1);
  other.output = DType::kBfloat16;
  EXPECT_EQ(asked(other, 1), 1);
}

// An algorithm for addresses of 256 bytes is not taken for others.
TEST_F(GemmTest, AlignmentIsPartOfAPlan) {
  const auto stream = std::make_shared<Stream>(0);
  Gemm gemm(stream);
  for (int part = 0; part < 5; ++part) {
    const Case product(sized(8, 8, 8, Epilogue::kReluBiasMask));
    Case::OnDevice there = product.on_device(stream);
    gemm.multiply(there.product);
    const DeviceBytes elsewhere(stream, 4096);
    char* const odd = elsewhere.data() + (part == 4 ? 16 : 4);
    Product& moved = there.product;
    const void** const inputs[] = {&moved.a, &moved.b};
    void** const others[] = {&moved.c, &moved.bias, &moved.mask};
    if (part < 2) {
      *inputs[part] = odd;
    } else {
      *others[part - 2] = odd;
    }
    gemm.multiply(there.product);
    stream->wait();
  }
}

TEST_F(GemmTest, OldPlansMakeRoom) {
  const auto stream = std::make_shared<Stream>(0);
  Gemm gemm(stream, 0);
  const Case first(sized(1, 1, 1));
  const Case::OnDevice there = first.on_device(stream);
  gemm.multiply(there.product);
  const int64_t before = OF_FAKE(fake_cublaslt_heuristics)();
  const DeviceBytes rows(stream, 1 << 16);
  Product many = sized(1, 1, 1);
  many.a = rows.data();
  many.b = rows.data();
  many.c = rows.data();
  for (int64_t i = 0; i < 600; ++i) {
    many.lda = 2 + i;
    gemm.multiply(many);
    gemm.multiply(there.product);  // in use, and so not the one that goes
  }
  EXPECT_EQ(OF_FAKE(fake_cublaslt_heuristics)() - before, 600);
  stream->wait();
  EXPECT_EQ(OF_FAKE(fake_cublaslt_live)(), 1 + 4 * 512);  // the handle, and plans of four objects
  many.lda = 2;                                           // has made room
  gemm.multiply(many);
  EXPECT_EQ(OF_FAKE(fake_cublaslt_heuristics)() - before, 601);
  stream->wait();
}

TEST_F(GemmTest, SaysWhatTheDeviceIsWhenItCannotBegin) {
  const auto stream = std::make_shared<Stream>(1);
  OF_FAKE(fake_cublaslt_fail_call)(1, cublas::kNotInitialized);
  expect_words(error_of([&] { Gemm gemm(stream); }), SHARDREC_DEVICE_ERROR,
               {"cuBLASLt 13.0.2 cannot begin on device 1: the library was not initialized",
                "cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED"});
  OF_FAKE(fake_cublaslt_fail_call)(1, cublas::kArchMismatch);
  EXPECT_EQ(error_of([&] { Gemm gemm(stream); }).status(), SHARDREC_UNSUPPORTED);
}

// Whichever call fails: a status and a sentence, nothing is left over, and the next product is right.
TEST_F(GemmTest, AnyCallMayFail) {
  const auto stream = std::make_shared<Stream>(0);
  const Case product(sized(3, 5, 4, Epilogue::kReluBiasMask));
  int failed = 0;
  for (int64_t nth = 1;; ++nth) {
    Gemm gemm(stream);
    const Case::OnDevice there = product.on_device(stream);
    OF_FAKE(fake_cublaslt_fail_call)(nth, cublas::kExecutionFailed);
    try {
      gemm.multiply(there.product);
      OF_FAKE(fake_cublaslt_fail_call)(0, 0);
      break;
    } catch (const core::Error& error) {
      ++failed;
      expect_words(
          error, SHARDREC_DEVICE_ERROR,
          {"cannot multiply [3, 4] by [4, 5] on device 0: the program failed on the device",
           "cublasLt", ": CUBLAS_STATUS_EXECUTION_FAILED)"});
    }
    EXPECT_EQ(there.c.read(), product.c.bytes());
    gemm.multiply(there.product);
    product.expect(there);
  }
  EXPECT_GE(failed, 15);
}

TEST_F(GemmTest, OutOfMemory) {
  const auto stream = std::make_shared<Stream>(0);
  Gemm gemm(stream);
  const Case product(sized(3, 5, 4));
  const Case::OnDevice there = product.on_device(stream);
  OF_FAKE(fake_cublaslt_fail_call)(1, cublas::kAllocFailed);
  expect_words(error_of([&] { gemm.multiply(there.product); }), SHARDREC_OUT_OF_MEMORY,
               {"cublasLtMatmulDescCreate: CUBLAS_STATUS_ALLOC_FAILED"});
  EXPECT_EQ(error_of([&] { Gemm large(stream, size_t{1} << 50); }).status(),
            SHARDREC_OUT_OF_MEMORY);
  gemm.multiply(there.product);
  product.expect(there);
}

// Found only when the product is enqueued: of a kind that was not enqueued before, at once.
TEST_F(GemmTest, AProductThatIsRefusedLateHasNoAlgorithm) {
  const auto stream = std::make_shared<Stream>(0);
  const Case product(sized(3, 5, 4));
  const Case::OnDevice there = product.on_device(stream);
  const auto enqueued = [] { return OF_FAKE(fake_cublaslt_products)(); };
  bool multiplied = false;
  bool refused_late = false;
  for (int64_t nth = 1; !multiplied && !refused_late; ++nth) {
    Gemm gemm(stream);
    const int64_t before = enqueued();
    OF_FAKE(fake_cublaslt_fail_call)(nth, cublas::kNotSupported);
    try {
      multiplied = gemm.try_multiply(there.product);
      refused_late = !multiplied && enqueued() > before;
    } catch (const core::Error&) {  // of a call before it
      continue;
    }
  }
  EXPECT_TRUE(refused_late);
}

TEST_F(GemmTest, WorkspaceIsBookedAndGivenBack) {
  const auto booked = std::make_shared<std::atomic<int64_t>>(0);
  const auto stream = std::make_shared<Stream>(0, booked);
  {
    const Gemm gemm(stream, 1 << 20);
    EXPECT_GE(booked->load(), 1 << 20);
    EXPECT_LT(booked->load(), 2 << 20);
  }
  EXPECT_EQ(booked->load(), 0);
}

// A Gemm is of its stream's device, whatever the thread's current one is.
TEST_F(GemmTest, DevicesBesideEachOther) {
  std::vector<std::thread> threads;
  for (int device = 0; device < 3; ++device) {
    threads.emplace_back([device] {
      const auto stream = std::make_shared<Stream>(device);
      Gemm gemm(stream);
      for (uint32_t time = 1; time < 9; ++time) {
        Case(sized(3, 5, 4, Epilogue::kReluBiasMask), time).run(gemm, stream);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto first = std::make_shared<Stream>(0);
  const auto second = std::make_shared<Stream>(1);
  Gemm on_first(first);
  Gemm on_second(second);
  Case(sized(2, 3, 4)).run(on_first, first);
  Case(sized(2, 3, 4)).run(on_second, second);
  Case(sized(2, 3, 4)).run(on_first, first);
}

// Products take place in the order of the stream, and use one workspace.
TEST_F(GemmTest, ProductsFollowEachOther) {
  const auto stream = std::make_shared<Stream>(0);
  OF_FAKE(fake_cublaslt_set_workspace)(4096);
  Gemm gemm(stream);
  const Case product(sized(4, 4, 4));
  const Case::OnDevice there = product.on_device(stream);
  gemm.multiply(there.product);
  Product square = there.product;  // C = C B
  square.a = there.product.c;
  const DeviceBytes out(stream, 64);
  square.c = out.data();
  gemm.multiply(square);
  const std::string found = out.read();
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 4; ++k) {
        for (int64_t l = 0; l < 4; ++l) {
          sum += product.a.get(i, l) * product.b.get(l, k) * product.b.get(k, j);
        }
      }
      EXPECT_EQ(get(DType::kFloat32, found, static_cast<size_t>(i * 4 + j)), sum);
    }
  }
}

}  // namespace
}  // namespace shardrec::test
