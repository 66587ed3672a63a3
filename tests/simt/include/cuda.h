// Of the driver's interface, what is needed to choose the device of a thread. The functions are found by
// cudaGetDriverEntryPointByVersion(): cuInit, cuDeviceGet, cuDevicePrimaryCtxRetain, cuCtxPushCurrent and
// cuCtxPopCurrent.
#pragma once

using CUdevice = int;
using CUcontext = struct CUctx_st*;

enum CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_CONTEXT = 201,
};
