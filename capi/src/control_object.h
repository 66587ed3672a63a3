// The object behind shardrec_control. Work that was given one holds it by shared_ptr, so that the
// handle may be destroyed meanwhile: enter(control, Access::kShared).share().
#pragma once

#include "core/control.h"
#include "handle.h"
#include "shardrec/control.h"

namespace shardrec::capi {

template <>
struct Handle<shardrec_control> {
  using Object = core::Control;
  static constexpr Kind kKind = Kind::kControl;
};

}  // namespace shardrec::capi
