// Calls on sets of sharded parameters.
#include "fuzz/rank.h"

namespace shardrec::fuzz {

void Rank::fsdp_call(Input& in) {
  shardrec_fsdp* fsdp = handle(in, &Rank::fsdps_);
  const auto unit = [&] { return static_cast<int32_t>(in.one_in(8) ? in.number() : in.below(2)); };
  int32_t index = 0;
  switch (in.below(11)) {
    case 0:
      make(in, fsdps_, [&](auto out) {
        return shardrec_fsdp_create(handle(in, &Rank::comms_), nullptr,
                                    handle_or_null(in, &Rank::options_), out);
      });
      return;
    case 1:
      note(shardrec_fsdp_add_unit(fsdp, name(in).c_str(), in.one_in(8) ? nullptr : &index));
      return;
    case 2:
      note(shardrec_fsdp_add_parameter(fsdp, unit(), name(in).c_str(), in.number(),
                                       in.one_in(3) ? in.number() : 0,
                                       in.one_in(8) ? nullptr : &index));
      return;
    case 3:
      note(shardrec_fsdp_set_optimizer(fsdp, handle_or_null(in, &Rank::options_)));
      note(shardrec_fsdp_commit(fsdp));
      return;
    case 4:
    case 5:
      return fsdp_step(in, fsdp);
    case 6: {
      int64_t offset = 0;
      const auto array = static_cast<int32_t>(in.one_in(8) ? in.number() : in.below(4));
      shardrec_tensor view{};
      note(shardrec_fsdp_shard(fsdp, unit(), array, &offset, &view));
      const shardrec_tensor* whole = or_null(in, matrix(in, false, 2, 3));
      note(shardrec_fsdp_full(fsdp, unit(), array, whole));
      note(shardrec_fsdp_set_full(fsdp, unit(), array, whole, in.of({-1, 0, 1, 2, -2})));
      return;
    }
    case 7: {
      double norm = 0;
      note(shardrec_fsdp_clip_gradients(fsdp, as_enum<shardrec_clip>(in.below(4)), in.real(),
                                        &norm));
      note(shardrec_fsdp_step(fsdp));
      note(shardrec_fsdp_zero_gradients(fsdp));
      note(shardrec_fsdp_set_learning_rate(fsdp, in.real()));
      return;
    }
    case 8: {
      note(shardrec_fsdp_check_equal(fsdp));
      char* text = nullptr;
      take(shardrec_fsdp_statistics_json(fsdp, &text), text);
      return;
    }
    case 9:
      note(shardrec_fsdp_add_mlp(fsdp, name(in).c_str(), handle(in, &Rank::mlps_), in.number(),
                                 in.one_in(8) ? nullptr : &index));
      return;
    default:  // out of order
      note(shardrec_fsdp_begin(fsdp, in.below(3)));
      note(shardrec_fsdp_mark_ready(fsdp, unit()));
      note(shardrec_fsdp_reshard(fsdp, unit()));
      if (in.one_in(2)) note(shardrec_fsdp_end(fsdp));
      if (in.one_in(2)) note(shardrec_fsdp_wait(fsdp));
  }
}

// A step that goes through where the set has been committed and has two units of a parameter each.
void Rank::fsdp_step(Input& in, shardrec_fsdp* fsdp) {
  shardrec_tensor view{};
  note(shardrec_fsdp_begin(fsdp, in.one_in(4) ? 0 : 1));
  for (const int32_t unit : {0, 1}) {
    if (!in.one_in(16)) note(shardrec_fsdp_unshard(fsdp, unit));
    if (!in.one_in(8)) note(shardrec_fsdp_wait_unshard(fsdp, unit));
    note(shardrec_fsdp_parameter(fsdp, unit, &view));
    if (!in.one_in(16)) note(shardrec_fsdp_reshard(fsdp, unit));
  }
  for (const int32_t unit : {1, 0}) {
    if (!in.one_in(4)) note(shardrec_fsdp_unshard(fsdp, unit));
    note(shardrec_fsdp_gradient(fsdp, unit, in.one_in(8) ? nullptr : &view));
    if (!in.one_in(16)) note(shardrec_fsdp_mark_ready(fsdp, unit));
  }
  if (!in.one_in(12)) note(shardrec_fsdp_end(fsdp));
  if (!in.one_in(12)) note(shardrec_fsdp_wait(fsdp));
  note(shardrec_fsdp_step(fsdp));
}

}  // namespace shardrec::fuzz
