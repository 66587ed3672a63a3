// The instruction sets that vector kernels are compiled for; to be included before Highway. Only
// sets with fused multiply-add take part.
#pragma once

#define HWY_DISABLED_TARGETS                                                              \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | \
   HWY_PPC8 | HWY_RVV | HWY_WASM | HWY_WASM_EMU256)
#define HWY_DISABLE_PCLMUL_AES  // not needed: fewer demands on the processor
