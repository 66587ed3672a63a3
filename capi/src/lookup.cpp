#include "shardrec/lookup.h"

#include "guard.h"
#include "objects/collection_object.h"
#include "options.h"

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
        use->tables->shared_collection(),
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

shardrec_status shardrec_lookup_begin(shardrec_lookup* lookup, int64_t batch_size,
                                      const shardrec_tensor* values, const shardrec_tensor* lengths,
                                      const shardrec_tensor* weights) {
  return with_lookup(lookup, [&](embedding::Lookup& step) {
    step.begin({.batch_size = batch_size,
                .values = values,
                .lengths = lengths,
                .offsets = nullptr,
                .weights = weights});
  });
}

shardrec_status shardrec_lookup_begin_offsets(shardrec_lookup* lookup, int64_t batch_size,
                                              const shardrec_tensor* values,
                                              const shardrec_tensor* offsets,
                                              const shardrec_tensor* weights) {
  return with_lookup(lookup, [&](embedding::Lookup& step) {
    step.begin({.batch_size = batch_size,
                .values = values,
                .lengths = nullptr,
                .offsets = offsets,
                .weights = weights,
                .by_offsets = true});
  });
}

shardrec_status shardrec_lookup_begin_variable(shardrec_lookup* lookup, int64_t batch_size,
                                               const shardrec_tensor* batch_sizes,
                                               const shardrec_tensor* inverse,
                                               const shardrec_tensor* values,
                                               const shardrec_tensor* lengths,
                                               const shardrec_tensor* weights) {
  return with_lookup(lookup, [&](embedding::Lookup& step) {
    step.begin({.batch_size = batch_size,
                .values = values,
                .lengths = lengths,
                .offsets = nullptr,
                .weights = weights,
                .batch_sizes = batch_sizes,
                .inverse = inverse,
                .variable = true});
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

shardrec_status shardrec_lookup_send_gradients(shardrec_lookup* lookup, int32_t accumulate) {
  return with_lookup(lookup, [&](embedding::Lookup& step) {
    if (accumulate != 0 && accumulate != 1) {
      refuse_value("accumulate", int64_t{accumulate}, "0 or 1");
    }
    step.send_gradients(accumulate == 1);
  });
}

shardrec_status shardrec_lookup_backward(shardrec_lookup* lookup) {
  return with_lookup(lookup, [](embedding::Lookup& step) { step.backward(); });
}

shardrec_status shardrec_lookup_accumulate(shardrec_lookup* lookup) {
  return with_lookup(lookup, [](embedding::Lookup& step) { step.accumulate(); });
}

shardrec_status shardrec_lookup_weight_gradient(const shardrec_lookup* lookup,
                                                const shardrec_tensor* out) {
  return guard([&] { enter(lookup, Access::kExclusive)->lookup->weight_gradient(out); });
}

shardrec_status shardrec_lookup_skip(shardrec_lookup* lookup) {
  return with_lookup(lookup, [](embedding::Lookup& step) { step.skip(); });
}
