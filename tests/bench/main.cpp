// shardrec_bench: the kernels in use on this machine (SHARDREC_CPU_TARGET names others), one
// thread, and the exchange of the local engine. `--benchmark_filter=row_update` and other options
// of Google Benchmark choose.
#include "compute/kernels.h"
#include "measured.h"

int main(int argc, char** argv) {
  using namespace shardrec;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("kernels", compute::cpu_kernels().name);
  bench::register_pooled_lookup();
  bench::register_row_update();
  bench::register_scale_gradient();
  bench::register_exchange();
  return benchmark::RunSpecifiedBenchmarks() == 0 ? 1 : 0;
}
