// A library that says that it is NCCL 2.20.0, and has no function but that one.
extern "C" __attribute__((visibility("default"))) int ncclGetVersion(int* version) {
  *version = 22000;
  return 0;
}
