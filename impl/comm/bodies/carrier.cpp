#include "comm/bodies/carrier.h"

#include "comm/bodies/carriers.h"

namespace shardrec::comm {

std::unique_ptr<BodyCarrier> make_carrier(compute::Backend& backend) {
  if (backend.host_reaches_memory()) return make_in_place_carrier(backend);
  if (backend.peers_reach_memory()) return make_shared_carrier(backend, backend.memory());
  return make_copied_carrier(backend);
}

}  // namespace shardrec::comm
