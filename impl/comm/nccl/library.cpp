#include "comm/nccl/library.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace shardrec::comm::nccl {
namespace {

constexpr const char* kDefaultName = "libnccl.so.2";

// Constant-initialized and never destroyed: other threads may call while the process ends.
constinit std::mutex load_mutex;
constinit Api functions{};
constinit int loaded_version = 0;  // 0: no library is loaded
std::array<char, 32> version_text{};
std::array<char, 1024> reason_text{};

template <class... Values>
const char* reason(const char* format, Values... values) {
  std::snprintf(reason_text.data(), reason_text.size(), format, values...);
  return reason_text.data();
}

// Before 2.9 a version had four digits.
void write_version(int version) {
  const int major = version < 10000 ? version / 1000 : version / 10000;
  const int minor = version < 10000 ? version / 100 % 10 : version / 100 % 100;
  std::snprintf(version_text.data(), version_text.size(), "NCCL %d.%d.%d", major, minor,
                version % 100);
}

// Looks functions up in a library; remembers the name of the first that is not there.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <class Function>
  void find(const char* name, Function& function) {
    void* const found = dlsym(library_, name);
    if (found == nullptr && missing_ == nullptr) missing_ = name;
    function = reinterpret_cast<Function>(found);
  }
  const char* missing() const { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

void find_all(Symbols& symbols, Api& found) {
#define SHARDREC_NCCL_FIND(name) symbols.find(#name, found.name)
  SHARDREC_NCCL_FIND(ncclGetErrorString);
  SHARDREC_NCCL_FIND(ncclGetLastError);
  SHARDREC_NCCL_FIND(ncclGetUniqueId);
  SHARDREC_NCCL_FIND(ncclCommInitRankConfig);
  SHARDREC_NCCL_FIND(ncclCommGetAsyncError);
  SHARDREC_NCCL_FIND(ncclCommFinalize);
  SHARDREC_NCCL_FIND(ncclCommDestroy);
  SHARDREC_NCCL_FIND(ncclCommAbort);
  SHARDREC_NCCL_FIND(ncclGroupStart);
  SHARDREC_NCCL_FIND(ncclGroupEnd);
  SHARDREC_NCCL_FIND(ncclSend);
  SHARDREC_NCCL_FIND(ncclRecv);
  SHARDREC_NCCL_FIND(ncclAllReduce);
  SHARDREC_NCCL_FIND(ncclReduceScatter);
  SHARDREC_NCCL_FIND(ncclAllGather);
#undef SHARDREC_NCCL_FIND
}

int32_t open_library(const char* name, const char*& why) {
  void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const error = dlerror();
    why = reason("%s cannot be loaded: %s", name, error != nullptr ? error : "no reason is given");
    return SHARDREC_NCCL_MISSING;
  }
  Api found{};
  Symbols symbols(library);
  symbols.find("ncclGetVersion", found.ncclGetVersion);
  int version = 0;
  if (symbols.missing() == nullptr && found.ncclGetVersion(&version) != kSuccess) {
    why = reason("%s does not tell its version", name);
    return SHARDREC_NCCL_MISSING;
  }
  // The version comes first: it says more than the name of a function that an old library does not have.
  if (symbols.missing() == nullptr && version < kOldestVersion) {
    write_version(version);
    why = reason("%s is %s", name, version_text.data());
    return SHARDREC_NCCL_TOO_OLD;
  }
  find_all(symbols, found);
  if (symbols.missing() != nullptr) {
    why = reason("%s has no function %s", name, symbols.missing());
    return SHARDREC_NCCL_MISSING;
  }
  functions = found;
  loaded_version = version;
  write_version(version);
  return SHARDREC_NCCL_FILLED;
}

}  // namespace

int32_t load_library(shardrec_nccl_table& table) noexcept {
  const std::lock_guard lock(load_mutex);
  if (loaded_version == 0) {
    const char* const configured = secure_getenv("SHARDREC_NCCL_LIBRARY");
    const bool named = configured != nullptr && *configured != '\0';
    const int32_t status = open_library(named ? configured : kDefaultName, table.reason);
    if (status != SHARDREC_NCCL_FILLED) return status;
  }
  table.library = version_text.data();
  table.version = loaded_version;
  return SHARDREC_NCCL_FILLED;
}

const Api& api() noexcept { return functions; }

}  // namespace shardrec::comm::nccl
