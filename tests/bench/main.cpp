// shardrec_bench: the kernels in use on this machine (SHARDREC_CPU_TARGET names others), one thread,
// the exchange of the local engine, what marking a gradient costs, what prefetch of sharded parameters hides, and
// hashes of ids. Options of Google Benchmark choose: `--benchmark_filter=row_update`.
#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "compute/probe/profile_cache.h"
#include "measured.h"

int main(int argc, char** argv) {
  using namespace shardrec;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  compute::memory_profile();  // kernels go by it
  benchmark::AddCustomContext("kernels", compute::cpu_kernels().name);
  bench::register_pooled_lookup();
  bench::register_row_update();
  bench::register_scale_gradient();
  bench::register_exchange();
  bench::register_ddp();
  bench::register_fsdp();
  bench::register_hash();
  return benchmark::RunSpecifiedBenchmarks() == 0 ? 1 : 0;
}
