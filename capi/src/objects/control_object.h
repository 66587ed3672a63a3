// The object behind shardrec_control. Work that was given one holds it by shared_ptr (shared_control()),
// so that the handle may be destroyed meanwhile.
#pragma once

#include <memory>

#include "core/control.h"
#include "handle.h"
#include "shardrec/control.h"

namespace shardrec::capi {

template <>
struct Handle<shardrec_control> {
  using Object = core::Control;
  static constexpr Kind kKind = Kind::kControl;
};

// What a call may be given, in the form in which it holds it; null for NULL.
inline std::shared_ptr<core::Control> shared_control(shardrec_control* handle) {
  return handle == nullptr ? nullptr : enter(handle, Access::kShared).share();
}

}  // namespace shardrec::capi
