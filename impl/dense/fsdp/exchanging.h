// How calls of a set that exchange something fail.
#pragma once

#include "core/error.h"
#include "dense/fsdp/fsdp.h"

namespace shardrec::dense {

template <class Body>
void Fsdp::exchanging(const char* name, const Body& body) const {
  try {
    body();
  } catch (const core::Error& error) {
    // What one rank's caller did, before anything was posted, is told to it alone.
    const bool is_refusal =
        error.status() == SHARDREC_DISAGREEMENT || error.status() == SHARDREC_INVALID_STATE;
    if (!is_refusal) groups_.world->fail(name);
    throw;
  } catch (...) {
    groups_.world->fail(name);
    throw;
  }
}

}  // namespace shardrec::dense
