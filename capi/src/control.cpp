#include "shardrec/control.h"

#include <memory>

#include "guard.h"
#include "objects/control_object.h"
#include "options.h"

using namespace shardrec::capi;
namespace core = shardrec::core;

shardrec_status shardrec_control_create(const shardrec_options* options, shardrec_control** out) {
  return guard([&] {
    require_out(out, "out");
    refuse_options(options, "controls");
    create(out, std::make_shared<core::Control>());
  });
}

void shardrec_control_destroy(shardrec_control** control) { destroy(control); }

shardrec_status shardrec_control_cancel(shardrec_control* control) {
  return guard([&] { enter(control, Access::kShared)->cancel(); });
}

shardrec_status shardrec_control_progress(const shardrec_control* control, int64_t* out_done,
                                          int64_t* out_total) {
  return guard([&] {
    const auto use = enter(control, Access::kShared);
    if (out_done != nullptr) *out_done = use->done();
    if (out_total != nullptr) *out_total = use->total();
  });
}
