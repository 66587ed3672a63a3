#include "shardrec/observe.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "comm/exposition.h"
#include "compute/cuda/host/device_calls.h"
#include "core/exposition.h"
#include "core/trace.h"
#include "embedding/exposition.h"
#include "guard.h"
#include "objects/collection_object.h"
#include "objects/comm_object.h"

namespace shardrec::capi {
namespace {

using core::sentence;

constexpr int64_t kMostEvents = int64_t{1} << 24;

std::vector<embedding::ObservedCollection> observed_collections() {
  auto objects = open_objects<shardrec_collection>();
  std::sort(objects.begin(), objects.end(), [](const auto& a, const auto& b) {
    const uint64_t left = a->membership->number();
    const uint64_t right = b->membership->number();
    return left != right ? left < right : a->number < b->number;
  });
  std::vector<embedding::ObservedCollection> observed;
  for (const auto& object : objects) {
    std::string labels = sentence(comm::labels_of(*object->membership), ",",
                                  core::label("collection", sentence(object->number)));
    // Of the whole object, whose parts end in their order.
    observed.push_back(
        {std::shared_ptr<embedding::Collection>(object, &object->collection()), std::move(labels)});
  }
  return observed;
}

std::vector<std::shared_ptr<const Membership>> memberships() {
  std::vector<std::shared_ptr<const Membership>> found;
  for (const auto& comm : open_objects<shardrec_comm>()) found.push_back(comm->membership);
  return found;
}

}  // namespace
}  // namespace shardrec::capi

using namespace shardrec;  // NOLINT(google-build-using-namespace): the C functions live outside
using namespace shardrec::capi;  // NOLINT(google-build-using-namespace)

shardrec_status shardrec_counters_text(char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    core::Exposition out;
    out.family("shardrec_live_objects", "gauge", "Handles that are open.");
    out.sample("", live_objects());
    compute::cuda::host::write_device_calls(out);
    comm::write_communicators(out, memberships());
    embedding::write_collections(out, observed_collections());
    *out_text = copy_text(out.text());
  });
}

shardrec_status shardrec_trace_start(int64_t events) {
  return guard([&] {
    refuse_after_fork();
    if (events < 1 || events > kMostEvents) refuse_value("events", events, "1 to 2^24");
    core::start_trace(static_cast<size_t>(events));
    watch_forks();
  });
}

void shardrec_trace_stop(void) { core::stop_trace(); }

shardrec_status shardrec_trace_json(char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    refuse_after_fork();
    *out_text = copy_text(core::trace_json());
  });
}
