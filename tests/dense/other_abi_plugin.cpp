// A GEMM plug-in of another release, as far as the border goes.
#include <cstdint>

#include "dense/gemm_plugin.h"

extern "C" __attribute__((visibility("default"))) int32_t
shardrec_gemm_plugin(shardrec_gemm_table* table) {
  table->abi = 77;
  table->size = 8;
  return SHARDREC_GEMM_ABI_MISMATCH;
}
