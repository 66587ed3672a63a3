#include <string>

#include "checkpoint/store/session.h"
#include "guard.h"
#include "objects/collection_object.h"
#include "objects/control_object.h"

namespace shardrec::capi {
namespace {

// Runs a save or a load; the control may be NULL.
using Body = void (*)(const checkpoint::Group&, training::Tables&, const std::string&,
                      core::Control*);
void with_checkpoint(const char* name, shardrec_collection* handle, const char* directory,
                     shardrec_control* control_handle, Body body) {
  const auto use = enter(handle, Access::kExclusive);
  use->membership->require_open();
  comm::tell_shortage(use->membership->communicator(), name, [&] {
    const std::string path(require_text(directory, "directory"));
    const auto control = shared_control(control_handle);
    body(use->checkpoints.group(), *use->tables, path, control.get());
  });
}

}  // namespace
}  // namespace shardrec::capi

using namespace shardrec;  // NOLINT(google-build-using-namespace): the C functions live outside
using namespace shardrec::capi;  // NOLINT(google-build-using-namespace)

shardrec_status shardrec_collection_save(shardrec_collection* collection, const char* directory,
                                         shardrec_control* control) {
  return guard([&] {
    with_checkpoint("save", collection, directory, control, checkpoint::save_collection);
  });
}

shardrec_status shardrec_collection_load(shardrec_collection* collection, const char* directory,
                                         shardrec_control* control) {
  return guard([&] {
    with_checkpoint("load", collection, directory, control, checkpoint::load_collection);
  });
}
