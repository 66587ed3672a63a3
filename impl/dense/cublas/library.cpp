#include "dense/cublas/library.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace shardrec::dense::cublas {
namespace {

constexpr std::array<const char*, 2> kDefaultNames{"libcublasLt.so.13", "libcublasLt.so.12"};

// Constant-initialized and never destroyed: other threads may call while the process ends.
constinit std::mutex load_mutex;
constinit Api functions{};
constinit int loaded_version = 0;  // 0: no library is loaded
std::array<char, 48> version_text{};
std::array<char, 1024> reason_text{};
thread_local std::array<char, 128> error_text{};

template <class... Values>
const char* reason(const char* format, Values... values) {
  std::snprintf(reason_text.data(), reason_text.size(), format, values...);
  return reason_text.data();
}

void write_version(int version) {
  std::snprintf(version_text.data(), version_text.size(), "cuBLASLt %d.%d.%d", version / 10000,
                version / 100 % 100, version % 100);
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
#define SHARDREC_CUBLAS_FIND(name) symbols.find(#name, found.name)
  SHARDREC_CUBLAS_FIND(cublasLtGetStatusName);
  SHARDREC_CUBLAS_FIND(cublasLtGetStatusString);
  SHARDREC_CUBLAS_FIND(cublasLtCreate);
  SHARDREC_CUBLAS_FIND(cublasLtDestroy);
  SHARDREC_CUBLAS_FIND(cublasLtMatmulDescCreate);
  SHARDREC_CUBLAS_FIND(cublasLtMatmulDescDestroy);
  SHARDREC_CUBLAS_FIND(cublasLtMatmulDescSetAttribute);
  SHARDREC_CUBLAS_FIND(cublasLtMatrixLayoutCreate);
  SHARDREC_CUBLAS_FIND(cublasLtMatrixLayoutDestroy);
  SHARDREC_CUBLAS_FIND(cublasLtMatmulPreferenceCreate);
  SHARDREC_CUBLAS_FIND(cublasLtMatmulPreferenceDestroy);
  SHARDREC_CUBLAS_FIND(cublasLtMatmulPreferenceSetAttribute);
  SHARDREC_CUBLAS_FIND(cublasLtMatmulAlgoGetHeuristic);
  SHARDREC_CUBLAS_FIND(cublasLtMatmul);
#undef SHARDREC_CUBLAS_FIND
}

// What the loader says of a library that it cannot load.
std::array<char, 400> loader_text() {
  std::array<char, 400> text{};
  const char* const error = dlerror();
  std::snprintf(text.data(), text.size(), "%s", error != nullptr ? error : "no reason is given");
  return text;
}

int32_t use_library(void* library, const char* name, const char*& why) {
  Api found{};
  Symbols symbols(library);
  symbols.find("cublasLtGetVersion", found.cublasLtGetVersion);
  const int version =
      symbols.missing() == nullptr ? static_cast<int>(found.cublasLtGetVersion()) : 0;
  // The version comes first: it says more than the name of a function that an old library does not have.
  if (symbols.missing() == nullptr && version < kOldestVersion) {
    write_version(version);
    why = reason("%s is %s", name, version_text.data());
    return SHARDREC_CUBLAS_TOO_OLD;
  }
  find_all(symbols, found);
  if (symbols.missing() != nullptr) {
    why = reason("%s has no function %s", name, symbols.missing());
    return SHARDREC_CUBLAS_MISSING;
  }
  functions = found;
  loaded_version = version;
  write_version(version);
  return SHARDREC_CUBLAS_FILLED;
}

int32_t find_library(const char*& why) {
  const char* const configured = secure_getenv("SHARDREC_CUBLASLT_LIBRARY");
  if (configured != nullptr && *configured != '\0') {
    void* const library = dlopen(configured, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return use_library(library, configured, why);
    why = reason("%s cannot be loaded: %s", configured, loader_text().data());
    return SHARDREC_CUBLAS_MISSING;
  }
  std::array<std::array<char, 400>, kDefaultNames.size()> errors{};
  for (size_t i = 0; i < kDefaultNames.size(); ++i) {
    void* const library = dlopen(kDefaultNames[i], RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return use_library(library, kDefaultNames[i], why);
    errors[i] = loader_text();
  }
  why = reason("neither %s nor %s can be loaded: %s; %s", kDefaultNames[0], kDefaultNames[1],
               errors[0].data(), errors[1].data());
  return SHARDREC_CUBLAS_MISSING;
}

}  // namespace

int32_t load_library(shardrec_cublas_table& table) noexcept {
  const std::lock_guard lock(load_mutex);
  if (loaded_version == 0) {
    const int32_t status = find_library(table.reason);
    if (status != SHARDREC_CUBLAS_FILLED) return status;
  }
  table.library = version_text.data();
  table.version = loaded_version;
  return SHARDREC_CUBLAS_FILLED;
}

const Api& api() noexcept { return functions; }

Status checked(const char* call, Status status) noexcept {
  if (status != kSuccess) {
    const char* const name = functions.cublasLtGetStatusName(status);
    std::snprintf(error_text.data(), error_text.size(), "%s: %s", call,
                  name != nullptr ? name : "unknown status");
  }
  return status;
}

const char* last_error() noexcept { return error_text.data(); }

}  // namespace shardrec::dense::cublas
