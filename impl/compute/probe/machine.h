// This machine, as profiles of its memory name it.
#pragma once

#include "compute/profile/memory_profile.h"

namespace shardrec::compute {

// With the instruction set of the kernels in use. Any thread.
Machine this_machine();

}  // namespace shardrec::compute
