#include "shardrec/lookup.h"

#include "guard.h"
#include "objects/collection_object.h"
#include "options.h"
#include "structs.h"

using namespace shardrec;  // NOLINT(google-build-using-namespace): the C functions live outside
using namespace shardrec::capi;  // NOLINT(google-build-using-namespace)

namespace {

// Runs a body on an open lookup that no other thread uses.
template <class Body>
shardrec_status with_lookup(shardrec_lookup* handle, Body body) {
  return guard([&] {
    const auto use = enter(handle, Access::kExclusive);
    use->membership->require_open();
    body(*use->lookup);
  });
}

embedding::Finish finish_of(shardrec_update update) {
  switch (update) {
    case SHARDREC_UPDATE_APPLY:
      return embedding::Finish::kBackward;
    case SHARDREC_UPDATE_ACCUMULATE:
      return embedding::Finish::kAccumulate;
    case SHARDREC_UPDATE_SKIP:
      return embedding::Finish::kSkip;
    default:
      refuse_value("update", int64_t{update},
                   "SHARDREC_UPDATE_APPLY (0), ACCUMULATE (1) or SKIP (2)");
  }
}

// A flag that was taken up, until the call returns.
struct GivenBack {
  BusyFlag& flag;
  ~GivenBack() { flag.give_back(); }
};

}  // namespace

shardrec_status shardrec_lookup_create(shardrec_collection* collection,
                                       const shardrec_options* options, shardrec_lookup** out) {
  return guard([&] {
    require_out(out, "out");
    const Options settings = read_options(options, SHARDREC_OPTIONS_LOOKUP);
    const auto use = enter(collection, Access::kExclusive);
    use->membership->require_open();
    Reserved<shardrec_lookup> reserved;
    auto object = std::make_shared<LookupObject>();
    object->membership = use->membership;
    object->busy = use->busy;
    object->lookup = std::make_unique<embedding::Lookup>(
        use->tables->collection_of_lookups(),
        embedding::LookupOptions{
            .borrow = settings.i64(SHARDREC_OPTION_BORROW) != 0,
            .weight_gradient = settings.i64(SHARDREC_OPTION_WEIGHT_GRADIENT) != 0});
    reserved.publish(out, std::move(object));
  });
}

void shardrec_lookup_destroy(shardrec_lookup** lookup) { destroy(lookup); }

shardrec_status shardrec_lookup_set_stream(shardrec_lookup* lookup, int64_t stream) {
  return with_lookup(lookup, [&](embedding::Lookup& step) { step.set_stream(stream); });
}

shardrec_status shardrec_lookup_begin(shardrec_lookup* lookup, const shardrec_batch* batch) {
  return with_lookup(lookup, [&](embedding::Lookup& step) {
    const shardrec_batch arguments = read_struct(batch, "batch");
    step.begin(arguments);
  });
}

shardrec_status shardrec_lookup_output_shape(const shardrec_lookup* lookup, int32_t output,
                                             int64_t* out_rows, int64_t* out_columns) {
  return guard([&] {
    const auto use = enter(lookup, Access::kExclusive);
    const auto [rows, columns] = use->lookup->output_shape(output);
    if (out_rows != nullptr) *out_rows = rows;
    if (out_columns != nullptr) *out_columns = columns;
  });
}

shardrec_status shardrec_lookup_forward(shardrec_lookup* lookup, int32_t output,
                                        const shardrec_tensor* out) {
  return with_lookup(lookup, [&](embedding::Lookup& step) { step.forward(output, out); });
}

shardrec_status shardrec_lookup_all_done(const shardrec_lookup* lookup, int32_t* out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(lookup, Access::kExclusive);
    *out = use->lookup->all_done() ? 1 : 0;
  });
}

shardrec_status shardrec_lookup_set_gradient(shardrec_lookup* lookup, int32_t output,
                                             const shardrec_tensor* gradient) {
  return with_lookup(lookup, [&](embedding::Lookup& step) { step.set_gradient(output, gradient); });
}

shardrec_status shardrec_lookup_send_gradients(shardrec_lookup* lookup, shardrec_update update) {
  return with_lookup(lookup, [&](embedding::Lookup& step) {
    if (update != SHARDREC_UPDATE_APPLY && update != SHARDREC_UPDATE_ACCUMULATE) {
      refuse_value("update", int64_t{update},
                   "SHARDREC_UPDATE_APPLY (0) or SHARDREC_UPDATE_ACCUMULATE (1)");
    }
    step.send_gradients(update == SHARDREC_UPDATE_ACCUMULATE);
  });
}

shardrec_status shardrec_lookup_backward(shardrec_lookup* lookup, shardrec_update update) {
  return with_lookup(lookup, [&](embedding::Lookup& step) { step.backward(finish_of(update)); });
}

shardrec_status shardrec_lookup_backward_begin(shardrec_lookup* lookup, shardrec_update update) {
  return guard([&] {
    const auto use = enter(lookup, Access::kExclusive);
    use->membership->require_open();
    use->lookup->backward_begin(finish_of(update));
    use->in_backward = true;
    use->busy->leave();
  });
}

shardrec_status shardrec_lookup_backward_wait(shardrec_lookup* lookup) {
  return guard([&] {
    const auto use = enter(lookup, Access::kShared);
    if (!use->in_backward) {
      core::fail(SHARDREC_INVALID_STATE, "backward_wait was called without backward_begin");
    }
    if (!use->busy->try_take_up()) throw_busy(Kind::kLookup);
    use->in_backward = false;
    const GivenBack given_back{*use->busy};
    use->lookup->backward_wait();
  });
}

shardrec_status shardrec_lookup_weight_gradient(const shardrec_lookup* lookup,
                                                const shardrec_tensor* out) {
  return guard([&] { enter(lookup, Access::kExclusive)->lookup->weight_gradient(out); });
}
