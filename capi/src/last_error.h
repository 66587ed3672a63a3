// The last error of the calling thread: what shardrec_last_error and its kin read. Written by the
// guard only. Thread rule: each thread has its own.
#pragma once

#include "core/error.h"

namespace shardrec::capi {

// Both return the status. record_fixed_error() needs no memory; its sentence is a string literal.
shardrec_status record_error(const core::Error& error) noexcept;
shardrec_status record_fixed_error(shardrec_status status, const char* sentence) noexcept;

struct LastError {
  shardrec_status status;
  const char* sentence;
  const core::ErrorParts* parts;  // null: none are known
};
LastError last_error() noexcept;

}  // namespace shardrec::capi
