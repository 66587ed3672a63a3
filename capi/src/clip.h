// What clip_gradients of sets of parameters are given.
#pragma once

#include <cmath>

#include "guard.h"
#include "shardrec/ddp.h"

namespace shardrec::capi {

// Throws INVALID_ARGUMENT.
inline void require_clip(shardrec_clip clip, double bound) {
  if (clip < SHARDREC_CLIP_L2 || clip > SHARDREC_CLIP_VALUE) {
    refuse_value("clip", int64_t{clip},
                 "SHARDREC_CLIP_L2 (0), SHARDREC_CLIP_INFINITY (1) or SHARDREC_CLIP_VALUE (2)");
  }
  if (!(std::isfinite(bound) && bound >= 0)) {
    refuse_value("bound", bound, "a finite number, 0 or more,");
  }
}

}  // namespace shardrec::capi
