// A library that says that it is cuBLASLt 13.0.2, and has no function but that one.
#include <cstddef>

extern "C" __attribute__((visibility("default"))) size_t cublasLtGetVersion() { return 130002; }
