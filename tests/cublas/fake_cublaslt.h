// What tests set and ask of the tests' own libcublasLt.so.13 (fake/), which implements the part of cuBLASLt that the
// plug-in calls over emulated devices (tests/simt). Also by the environment, read once:
//   SHARDREC_FAKE_CUBLASLT_VERSION  120803 of 12.8.3: what cublasLtGetVersion() says
//   SHARDREC_FAKE_CUBLASLT_FATAL    1: a violation ends the process, for programs that do not ask for them
//
// Products are computed in 32 bits, sums in the order of k, from inputs that are rounded to TF32 where the compute type
// allows it. The bits of a mask behind the last row are ones, the workspace that an algorithm asks for is overwritten.
// There is no algorithm, as in NVIDIA's library, for: bias gradients of an A that is transposed or a B that is not, or
// of one element; gradients of ReLU with k = 1; elements of other types than those of the table at cublasLtMatmul().
//
// Found and counted as violations, with a line on stderr: calls from a thread with another current device than the
// handle's, or for another device's stream; handles and descriptors that were destroyed or never were; attributes of
// another size; layouts that do not fit each other; masks whose stride is no multiple of 128 or too small, or that are
// not 16-byte aligned; a missing bias or mask; a reduction scheme whose bits do not repeat, or that rounds to 16 bits; an
// algorithm that is null, of another product, or for better alignments; less workspace than the algorithm asks for; and,
// in a thread that captures a stream: handles that are made or destroyed, questions for an algorithm, and products of
// which none like it was enqueued before the capture, as their kernels would be loaded in it.
//
// Thread rule: any thread.
#pragma once

#include <stdint.h>

#define FAKE_CUBLASLT_VISIBLE __attribute__((visibility("default")))

extern "C" {

// Violations so far in this process, and the last of them as a sentence; "" if there was none.
FAKE_CUBLASLT_VISIBLE int64_t fake_cublaslt_violations(void);
FAKE_CUBLASLT_VISIBLE const char* fake_cublaslt_last_violation(void);
FAKE_CUBLASLT_VISIBLE void fake_cublaslt_forget_violations(void);
// Handles, descriptors, layouts and preferences that were not destroyed, and products that are not over.
FAKE_CUBLASLT_VISIBLE int64_t fake_cublaslt_live(void);

// Calls of cublasLtMatmulAlgoGetHeuristic() and of cublasLtMatmul() so far; products that were computed, those of graphs
// as often as these were launched.
FAKE_CUBLASLT_VISIBLE int64_t fake_cublaslt_heuristics(void);
FAKE_CUBLASLT_VISIBLE int64_t fake_cublaslt_products(void);
FAKE_CUBLASLT_VISIBLE int64_t fake_cublaslt_computed(void);

// There is no algorithm for products with this cublasLtEpilogue_t; 0, the default: there are all.
FAKE_CUBLASLT_VISIBLE void fake_cublaslt_set_no_algorithm(uint32_t epilogue);
// Bytes of workspace that each algorithm asks for; 0 by default.
FAKE_CUBLASLT_VISIBLE void fake_cublaslt_set_workspace(uint64_t bytes);
// The n-th call from now that can fail does so with the cublasStatus_t: 1 is the next, 0 none.
FAKE_CUBLASLT_VISIBLE void fake_cublaslt_fail_call(int64_t nth, int status);
}
