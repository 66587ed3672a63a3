#include <string>

#include "checkpoint/load.h"
#include "checkpoint/save.h"
#include "checkpoint/store.h"
#include "collection_object.h"
#include "control_object.h"
#include "guard.h"

namespace shardrec::capi {
namespace {

// Runs body(object, directory, control) of a save or a load; the control may be NULL.
template <class Body>
void with_checkpoint(const char* name, shardrec_collection* handle, const char* directory,
                     shardrec_control* control_handle, Body body) {
  const auto use = enter(handle, Access::kExclusive);
  use->membership->require_open();
  comm::tell_shortage(use->membership->communicator(), name, [&] {
    const std::string path(require_text(directory, "directory"));
    const auto control = shared_control(control_handle);
    body(*use, path, control.get());
  });
}

}  // namespace
}  // namespace shardrec::capi

using namespace shardrec;  // NOLINT(google-build-using-namespace): the C functions live outside
using namespace shardrec::capi;  // NOLINT(google-build-using-namespace)

shardrec_status shardrec_collection_save(shardrec_collection* collection, const char* directory,
                                         shardrec_control* control) {
  return guard([&] {
    with_checkpoint(
        "save", collection, directory, control,
        [](CollectionObject& object, const std::string& path, core::Control* progress) {
          checkpoint::Contents contents;
          contents.collections.push_back(checkpoint::contents_to_save(object.state(), ""));
          checkpoint::save(object.checkpoints->group(),
                           {.directory = path, .step = object.collection->step()}, contents,
                           progress);
        });
  });
}

shardrec_status shardrec_collection_load(shardrec_collection* collection, const char* directory,
                                         shardrec_control* control) {
  return guard([&] {
    with_checkpoint(
        "load", collection, directory, control,
        [](CollectionObject& object, const std::string& path, core::Control* progress) {
          const checkpoint::Group group = object.checkpoints->group();
          checkpoint::Contents contents;
          contents.collections.push_back(checkpoint::contents_to_load(object.state(), ""));
          checkpoint::load(group, checkpoint::open(group, path), contents, progress,
                           [&] { object.collection->set_filled_in_part(true); });
          checkpoint::apply_loaded(object.state(), contents.collections.front());
        });
  });
}
