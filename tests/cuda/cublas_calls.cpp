// What the cuBLASLt plug-in and the library that it finds do on a machine without a device: the version, why there is no
// handle, and that the library takes the descriptors of each epilogue: what it misses is a handle. Prints a line for each;
// built, with the plug-in's sources beside it, and run by cublas_library.
// Usage: cublas_calls PLUGIN
#include <dlfcn.h>

#include <cstdio>

#include "dense/cublas/cublas_plugin.h"
#include "dense/cublas/library.h"
#include "dense/cublas/plan.h"

namespace {

namespace cublas = shardrec::dense::cublas;

void describe(int32_t epilogue, int32_t dtype) {
  alignas(256) static char memory[256];
  shardrec_cublas_product product{};
  product.m = product.n = product.k = product.lda = product.ldb = product.ldc = 8;
  product.a = product.b = memory;
  product.c = product.bias = product.mask = memory;
  product.mask_ld = 128;
  product.input_dtype = product.output_dtype = dtype;
  product.multiplier = SHARDREC_CUBLAS_TF32;
  product.epilogue = epilogue;
  cublas::Plan plan;
  plan.make(nullptr, product);
  std::printf("product: %s\n", cublas::last_error());
}

}  // namespace

int main(int count, char** arguments) {
  void* const plugin = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  void* const function = plugin != nullptr ? dlsym(plugin, "shardrec_cublas_plugin") : nullptr;
  if (function == nullptr) {
    std::printf("there is no plug-in\n");
    return 1;
  }
  shardrec_cublas_table table{};
  table.size = sizeof table;
  table.abi = SHARDREC_CUBLAS_ABI;
  const auto fill = reinterpret_cast<shardrec_cublas_plugin_function>(function);
  if (fill(&table) != SHARDREC_CUBLAS_FILLED) {
    std::printf("refused: %s\n", table.reason);
    return 1;
  }
  std::printf("library: %s, %d\n", table.library, table.version);
  std::printf("out of memory: %s\n", table.result_text(SHARDREC_CUBLAS_OUT_OF_MEMORY));
  shardrec_cublas_handle* handle = nullptr;
  const shardrec_cublas_result result = table.create(&handle);
  std::printf("handle: %s: %s\n", table.result_text(result), table.last_error());
  if (handle != nullptr) table.destroy(handle);
  if (cublas::load_library(table) != SHARDREC_CUBLAS_FILLED) return 1;
  for (int32_t epilogue = SHARDREC_CUBLAS_NONE; epilogue <= SHARDREC_CUBLAS_BIAS_GRADIENT_B;
       ++epilogue) {
    describe(epilogue, SHARDREC_CUBLAS_FLOAT32);
    describe(epilogue, SHARDREC_CUBLAS_BFLOAT16);
  }
  return 0;
}
