// The choice of the next call.
#include "fuzz/rank.h"

namespace shardrec::fuzz {

void Rank::call(Input& in) {
  const int which = in.below(16);
  if (which < 4) return step(in);
  if (which < 7) return lookup_call(in);
  if (which < 9) return collection_call(in);
  switch (which) {
    case 9:
      return options_call(in);
    case 10:
      return model_call(in);
    case 11:
      return plan_call(in);
    case 12:
      return comm_call(in);
    case 13:
      return dense_call(in);
    case 14:
      return library_call(in);
    default:
      return drop_something(in);
  }
}

}  // namespace shardrec::fuzz
