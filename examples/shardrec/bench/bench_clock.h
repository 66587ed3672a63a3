// The clocks of benchmarks, in seconds.
#pragma once

namespace shardrec::cli {

double bench_now();  // steady
double bench_cpu();  // processor time of all threads of this process so far

}  // namespace shardrec::cli
