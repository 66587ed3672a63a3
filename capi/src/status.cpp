#include "shardrec/status.h"

#include <cstdlib>
#include <optional>
#include <string>

#include "guard.h"
#include "last_error.h"

using shardrec::capi::copy_text;
using shardrec::capi::guard;
using shardrec::capi::last_error;
using shardrec::capi::LastError;

namespace {

std::optional<int64_t> number_part(const LastError& error, shardrec_error_part part) {
  if (error.parts == nullptr) return std::nullopt;
  switch (part) {
    case SHARDREC_ERROR_RANK:
      return error.parts->rank;
    case SHARDREC_ERROR_POSITION:
      return error.parts->position;
    case SHARDREC_ERROR_VALUE:
      return error.parts->value;
    case SHARDREC_ERROR_LIMIT:
      return error.parts->limit;
    case SHARDREC_ERROR_SEQUENCE:
      return error.parts->sequence;
    default:
      return std::nullopt;
  }
}

const std::string* text_part(const LastError& error, shardrec_error_part part) {
  if (error.parts == nullptr) return nullptr;
  switch (part) {
    case SHARDREC_ERROR_TABLE:
      return &error.parts->table;
    case SHARDREC_ERROR_FEATURE:
      return &error.parts->feature;
    case SHARDREC_ERROR_OPERATION:
      return &error.parts->operation;
    case SHARDREC_ERROR_PATH:
      return &error.parts->path;
    default:
      return nullptr;
  }
}

}  // namespace

const char* shardrec_status_name(shardrec_status status) {
  switch (status) {
    case SHARDREC_OK:
      return "SHARDREC_OK";
    case SHARDREC_INVALID_ARGUMENT:
      return "SHARDREC_INVALID_ARGUMENT";
    case SHARDREC_INVALID_HANDLE:
      return "SHARDREC_INVALID_HANDLE";
    case SHARDREC_CLOSED:
      return "SHARDREC_CLOSED";
    case SHARDREC_BUSY:
      return "SHARDREC_BUSY";
    case SHARDREC_INVALID_STATE:
      return "SHARDREC_INVALID_STATE";
    case SHARDREC_INVALID_BATCH:
      return "SHARDREC_INVALID_BATCH";
    case SHARDREC_NOT_FOUND:
      return "SHARDREC_NOT_FOUND";
    case SHARDREC_UNSUPPORTED:
      return "SHARDREC_UNSUPPORTED";
    case SHARDREC_DISAGREEMENT:
      return "SHARDREC_DISAGREEMENT";
    case SHARDREC_OUT_OF_MEMORY:
      return "SHARDREC_OUT_OF_MEMORY";
    case SHARDREC_IO_ERROR:
      return "SHARDREC_IO_ERROR";
    case SHARDREC_CORRUPT_DATA:
      return "SHARDREC_CORRUPT_DATA";
    case SHARDREC_DEVICE_ERROR:
      return "SHARDREC_DEVICE_ERROR";
    case SHARDREC_PEER_FAILED:
      return "SHARDREC_PEER_FAILED";
    case SHARDREC_TIMEOUT:
      return "SHARDREC_TIMEOUT";
    case SHARDREC_MISMATCH:
      return "SHARDREC_MISMATCH";
    case SHARDREC_ABORTED:
      return "SHARDREC_ABORTED";
    case SHARDREC_CANCELLED:
      return "SHARDREC_CANCELLED";
    case SHARDREC_INTERNAL:
      return "SHARDREC_INTERNAL";
    case SHARDREC_STATUS_FORCE_32:
      break;
  }
  return "unknown status";
}

const char* shardrec_last_error(void) { return last_error().sentence; }

shardrec_status shardrec_last_error_status(void) { return last_error().status; }

// These two report through their status alone: recording an error would overwrite the one that is
// being read.
shardrec_status shardrec_last_error_i64(shardrec_error_part part, int64_t* out) {
  if (out == nullptr) return SHARDREC_INVALID_ARGUMENT;
  const std::optional<int64_t> number = number_part(last_error(), part);
  if (!number.has_value()) return SHARDREC_NOT_FOUND;
  *out = *number;
  return SHARDREC_OK;
}

shardrec_status shardrec_last_error_text(shardrec_error_part part, char** out_text) {
  if (out_text == nullptr) return SHARDREC_INVALID_ARGUMENT;
  const std::string* text = text_part(last_error(), part);
  if (text == nullptr || text->empty()) return SHARDREC_NOT_FOUND;
  try {
    *out_text = copy_text(*text);
    return SHARDREC_OK;
  } catch (...) {
    return SHARDREC_OUT_OF_MEMORY;
  }
}

void shardrec_text_free(char* text) { std::free(text); }
