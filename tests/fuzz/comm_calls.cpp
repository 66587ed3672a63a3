// Calls on local groups and communicators.
#include <cstdlib>

#include "fuzz/rank.h"

namespace shardrec::fuzz {

void Rank::comm_call(Input& in) {
  shardrec_comm* comm = handle(in, &Rank::comms_);
  switch (in.below(13)) {
    case 0:
    case 1:
      note(shardrec_comm_barrier(comm));
      return;
    case 2:
    case 3: {
      const int64_t length = in.of<int64_t>({3, 0, 1, 500});
      const auto dtype = in.of<shardrec_dtype>(
          {SHARDREC_FLOAT32, SHARDREC_FLOAT64, SHARDREC_INT32, SHARDREC_INT64});
      const shardrec_tensor* tensor = or_null(
          in,
          vector(in, false, dtype, length, memory(static_cast<size_t>(length) * sizeof(double))));
      note(shardrec_comm_all_reduce(comm, tensor, as_enum<shardrec_reduction>(in.below(5))));
      return;
    }
    case 10:
    case 11:
      return tensors_call(in, comm);
    case 12: {
      const auto key = static_cast<int32_t>(in.number());
      const auto color = static_cast<int32_t>(in.one_in(8) ? in.number() : in.below(2));
      if (color < 0) {  // no part, no handle
        shardrec_comm* none = nullptr;
        note(shardrec_comm_split(comm, color, key, in.one_in(8) ? nullptr : &none));
        if (none != nullptr) broken_promise("a refused call hands out nothing");
        return;
      }
      make(in, comms_, [&](auto out) { return shardrec_comm_split(comm, color, key, out); });
      return;
    }
    case 4:
      make(in, groups_, [&](auto out) {
        return shardrec_local_create(static_cast<int32_t>(in.of<int64_t>({1, 2, 3, in.number()})),
                                     static_cast<int32_t>(in.of<int64_t>({1, 2, in.number()})),
                                     nullptr, out);
      });
      return;
    case 5: {
      make(in, comms_, [&](auto out) {
        return shardrec_comm_create_local(handle(in, &Rank::groups_),
                                          static_cast<int32_t>(in.number()), nullptr, out);
      });
      for (int slot = 0; slot < 2; ++slot) {
        if (comms_.live(slot) == nullptr) continue;
        shardrec_comm_set_f64(comms_.live(slot), SHARDREC_COMM_STEP_SECONDS, 0.03);
        shardrec_comm_set_f64(comms_.live(slot), SHARDREC_COMM_SETUP_SECONDS, 0.03);
      }
      return;
    }
    case 6: {
      const auto key = as_enum<shardrec_comm_property>(in.below(5));
      double value = 0;
      note(shardrec_comm_get_f64(comm, key, &value));
      note(shardrec_comm_set_f64(comm, key, in.of({0.02, 0.01, -1.0, 0.0, 0.0 / 0.0})));
      return;
    }
    case 7: {
      int32_t value = 0;
      note(shardrec_comm_rank(comm, in.one_in(8) ? nullptr : &value));
      note(shardrec_comm_size(comm, &value));
      note(shardrec_comm_status(comm));
      return;
    }
    case 8:
      if (in.one_in(3)) note(shardrec_comm_close(comm));
      return;
    default:
      if (in.one_in(3)) {
        note(shardrec_comm_abort(comm, in.of<const char*>({nullptr, "why", "\xff", ""})));
      }
  }
}

// Tensors of which some fit together on both ranks.
void Rank::tensors_call(Input& in, shardrec_comm* comm) {
  const int64_t rows = in.of<int64_t>({2, 0, 1, 4, 64});
  const int64_t cols = in.of<int64_t>({3, 1, 0, 16});
  const shardrec_tensor* tensor = or_null(in, matrix(in, false, rows, cols));
  const shardrec_tensor* more = or_null(in, matrix(in, false, 2 * rows, cols));
  switch (in.below(4)) {
    case 0:
      note(shardrec_comm_broadcast(comm, tensor,
                                   static_cast<int32_t>(in.one_in(6) ? in.number() : in.below(2))));
      return;
    case 1:
      note(shardrec_comm_all_gather(comm, tensor, more));
      return;
    case 2:
      note(shardrec_comm_reduce_scatter(comm, more, tensor,
                                        as_enum<shardrec_reduction>(in.below(5))));
      return;
    default: {
      const auto counts = [&]() -> const shardrec_tensor* {
        if (in.one_in(2)) return nullptr;
        auto* const data = static_cast<int64_t*>(memory(2 * sizeof(int64_t)));
        data[0] = in.one_in(6) ? in.number() : rows;
        data[1] = in.one_in(6) ? in.number() : rows;
        return or_null(in, vector(in, false, SHARDREC_INT64, 2, data));
      };
      const shardrec_tensor* sent = counts();
      note(shardrec_comm_all_to_all(comm, more, sent, in.one_in(3) ? more : tensor, counts()));
    }
  }
}

}  // namespace shardrec::fuzz
