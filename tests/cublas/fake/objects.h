// What the library's handles and descriptors stand for.
//
// Thread rule: an object by one thread at a time; find(), add() and remove() by any.
#pragma once

#include <cstdint>
#include <set>

#include "dense/cublas/cublaslt_api.h"
#include "knobs.h"
#include "quiet.h"

namespace shardrec::dense::cublas {

struct LtHandleType {
  int device;
};

struct MatmulDescType {
  int32_t compute_type;
  int32_t scale_type;
  int32_t transpose_a = kAsItIs;
  int32_t transpose_b = kAsItIs;
  uint32_t epilogue = kDefault;
  void* bias = nullptr;
  void* aux = nullptr;
  int64_t aux_ld = 0;
};

struct MatrixLayoutType {
  int32_t dtype;
  int64_t rows;
  int64_t columns;
  int64_t ld;
};

struct PreferenceType {
  uint64_t workspace = 0;
  uint32_t schemes = 7;
  uint32_t align_a = 256;
  uint32_t align_b = 256;
  uint32_t align_c = 256;
  uint32_t align_d = 256;
};

}  // namespace shardrec::dense::cublas

namespace fake_cublaslt {

using namespace shardrec::dense::cublas;

// The objects of a kind that there are.
template <class Object>
class Objects {
 public:
  static Objects& all() {
    static Objects& objects = *new Objects;
    return objects;
  }

  Object* add(Object object) {
    auto* const added = new Object(object);
    const simt::QuietLock lock(mutex_);
    objects_.insert(added);
    knobs().live.fetch_add(1);
    return added;
  }
  // Null, and a violation, where it was destroyed or never was.
  Object* find(Object* object, const char* call) {
    const simt::QuietLock lock(mutex_);
    if (objects_.count(object) != 0) return object;
    violation("%s for an object that was destroyed or never was", call);
    return nullptr;
  }
  bool remove(Object* object, const char* call) {
    {
      const simt::QuietLock lock(mutex_);
      if (objects_.erase(object) != 0) {
        delete object;
        knobs().live.fetch_sub(1);
        return true;
      }
    }
    violation("%s for an object that was destroyed or never was", call);
    return false;
  }

 private:
  simt::QuietMutex mutex_;
  std::set<Object*> objects_;
};

}  // namespace fake_cublaslt
