// Sets of data-parallel parameters for tests of ddp.h through the C API.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "capi/capi_test.h"
#include "shardrec/native.h"

namespace shardrec::test {

inline shardrec_tensor vector(std::vector<float>& data) {
  shardrec_tensor view{};
  EXPECT_OK(shardrec_tensor_vector(data.data(), SHARDREC_FLOAT32, static_cast<int64_t>(data.size()),
                                   &view));
  return view;
}

// A bucket per parameter: several travel in a step.
inline Options small_buckets() {
  Options options;
  EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_DDP, options.out()));
  EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DDP_FIRST_BUCKET_BYTES, 1));
  EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DDP_BUCKET_BYTES, 1));
  EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DDP_THREAD, 1));
  return options;
}

// Parameters "p0", "p1" and so on of the host, not committed yet.
struct HostSet {
  HostSet(shardrec_comm* comm, const shardrec_options* options, const std::vector<size_t>& sizes) {
    EXPECT_OK(shardrec_ddp_create(comm, options, ddp.out()));
    values.reserve(sizes.size());
    gradients.reserve(sizes.size());
    for (const size_t size : sizes) {
      const std::string name = "p" + std::to_string(values.size());
      const shardrec_tensor value = vector(values.emplace_back(size));
      const shardrec_tensor gradient = vector(gradients.emplace_back(size));
      EXPECT_OK(shardrec_ddp_add_parameter(ddp, name.c_str(), &value, &gradient, nullptr));
    }
  }

  std::vector<std::vector<float>> values;
  std::vector<std::vector<float>> gradients;
  Ddp ddp;  // destroyed before the memory
};

}  // namespace shardrec::test
