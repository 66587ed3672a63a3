// Reports of the sanitizers name functions and lines also where clang's own symbolizer is not installed:
// faults_test.cpp reads them.
#if defined(__clang__)
#define SIMT_SYMBOLIZER "external_symbolizer_path=" SIMT_ADDR2LINE
extern "C" const char* __asan_default_options() { return SIMT_SYMBOLIZER; }
extern "C" const char* __tsan_default_options() { return SIMT_SYMBOLIZER; }
#endif
