// Where the formulas run: a device's compiler makes each function for the host and for the device.
// Such a compiler must be told to contract nothing (nvcc: -fmad=false), as CMakeLists.txt tells the
// host's.
#pragma once

#if defined(__CUDACC__)
#define SHARDREC_HOST_DEVICE __host__ __device__
#else
#define SHARDREC_HOST_DEVICE
#endif
