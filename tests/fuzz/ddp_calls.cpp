// Calls on sets of data-parallel parameters.
#include <cstdlib>

#include "fuzz/rank.h"

namespace shardrec::fuzz {
namespace {

// Calls of the set inside of it are refused, views are not.
void look(void* context, int32_t /*bucket*/) {
  auto* const ddp = static_cast<shardrec_ddp*>(context);
  shardrec_tensor view{};
  shardrec_ddp_gradient(ddp, 0, &view);
  shardrec_ddp_step(ddp);
  shardrec_ddp_mark_ready(ddp, 0, 1);
}

shardrec_status replace(void* context, int32_t bucket, const shardrec_tensor* buffer) {
  if (buffer->ndim != 1 || buffer->shape[0] < 0) broken_promise("a buffer has one dimension");
  return context == nullptr || bucket == 0 ? SHARDREC_OK : SHARDREC_INVALID_STATE;
}

}  // namespace

void Rank::ddp_call(Input& in) {
  shardrec_ddp* ddp = handle(in, &Rank::ddps_);
  switch (in.below(16)) {
    case 0:
      make(in, ddps_, [&](auto out) {
        return shardrec_ddp_create(handle(in, &Rank::comms_), handle_or_null(in, &Rank::options_),
                                   out);
      });
      return;
    case 1:
    case 2: {
      const shardrec_tensor* parameter = or_null(in, matrix(in, false, 2, 3));
      const shardrec_tensor* gradient =
          in.one_in(2) ? nullptr : or_null(in, matrix(in, false, 2, 3));
      int32_t index = 0;
      note(shardrec_ddp_add_parameter(ddp, name(in).c_str(), parameter, gradient,
                                      in.one_in(8) ? nullptr : &index));
      return;
    }
    case 3: {
      int32_t first = 0;
      note(shardrec_ddp_add_mlp(ddp, name(in).c_str(), handle(in, &Rank::mlps_), &first));
      return;
    }
    case 4: {
      const int64_t elements = in.of<int64_t>({6, 12, 0, 18});
      void* const data = memory(static_cast<size_t>(elements) * sizeof(double));
      note(shardrec_ddp_set_flat_gradient(
          ddp, or_null(in, vector(in, false, SHARDREC_FLOAT32, elements, data))));
      note(shardrec_ddp_set_optimizer(ddp, handle_or_null(in, &Rank::options_)));
      return;
    }
    case 5:
      note(shardrec_ddp_set_callback(ddp, in.one_in(2) ? nullptr : look, ddp));
      if (in.one_in(3)) note(shardrec_ddp_set_hook(ddp, replace, in.one_in(2) ? nullptr : ddp));
      return;
    case 6:
      note(shardrec_ddp_commit(ddp));
      return;
    case 7:
    case 8:
    case 9:
      return ddp_step(in, ddp);
    case 10:
      return ddp_views(in, ddp);
    case 11:
      note(shardrec_ddp_all_reduce(ddp));
      return;
    case 12:
      note(shardrec_ddp_check_equal(ddp));
      note(shardrec_ddp_broadcast(ddp,
                                  static_cast<int32_t>(in.one_in(6) ? in.number() : in.below(2))));
      return;
    case 13:
      note(shardrec_ddp_step(ddp));
      note(shardrec_ddp_zero_gradients(ddp));
      note(shardrec_ddp_set_learning_rate(ddp, in.real()));
      return;
    case 14:
      note(shardrec_ddp_join(ddp));
      return;
    default:
      // Out of order, and in ranges of all sorts.
      note(shardrec_ddp_begin(ddp, in.below(3)));
      note(shardrec_ddp_mark_ready(ddp, in.number(), in.number()));
      note(shardrec_ddp_mark_unused(ddp, in.number(), in.number()));
      if (in.one_in(2)) note(shardrec_ddp_end(ddp));
      if (in.one_in(2)) note(shardrec_ddp_wait(ddp));
  }
}

// A step that goes through where the set has been committed and its parameters are few.
void Rank::ddp_step(Input& in, shardrec_ddp* ddp) {
  note(shardrec_ddp_begin(ddp, in.one_in(4) ? 0 : 1));
  for (int64_t p = in.below(6); p-- > 0;) {
    note(in.one_in(6) ? shardrec_ddp_mark_unused(ddp, p, 1) : shardrec_ddp_mark_ready(ddp, p, 1));
  }
  if (!in.one_in(12)) note(shardrec_ddp_end(ddp));
  if (!in.one_in(12)) note(shardrec_ddp_wait(ddp));
  double norm = 0;
  note(shardrec_ddp_clip_gradients(ddp, static_cast<shardrec_clip>(in.below(4)), in.real(),
                                   in.one_in(4) ? nullptr : &norm));
  note(shardrec_ddp_step(ddp));
}

void Rank::ddp_views(Input& in, shardrec_ddp* ddp) {
  const int64_t index = in.one_in(4) ? in.number() : in.below(3);
  shardrec_tensor view{};
  int32_t bucket = 0;
  note(shardrec_ddp_gradient(ddp, index, in.one_in(8) ? nullptr : &view));
  note(shardrec_ddp_bucket_of(ddp, index, &bucket));
  note(shardrec_ddp_state(ddp, index, static_cast<int32_t>(in.one_in(4) ? in.number() : 0), &view));
  char* text = nullptr;
  take(shardrec_ddp_statistics_json(ddp, &text), text);
}

}  // namespace shardrec::fuzz
