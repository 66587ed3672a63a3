#include "comm/failure.h"

#include <charconv>
#include <utility>

#include "comm/communicator.h"
#include "core/error.h"

namespace shardrec::comm {
namespace {

using core::sentence;

shardrec_status status_of(Cause cause) noexcept {
  switch (cause) {
    case Cause::kDestroyed:
    case Cause::kLeft:
    case Cause::kAbandoned:
    case Cause::kGaveUp:
    case Cause::kLost:
    case Cause::kTransport:
    case Cause::kGarbled:
    case Cause::kDevice:
      return SHARDREC_PEER_FAILED;
    case Cause::kDeviceLate:
    case Cause::kLate:
    case Cause::kUnread:
      return SHARDREC_TIMEOUT;
    case Cause::kOperation:
    case Cause::kArguments:
    case Cause::kSize:
    case Cause::kPurpose:
      return SHARDREC_MISMATCH;
    case Cause::kAborted:
      break;
  }
  return SHARDREC_ABORTED;
}

bool is_mismatch(Cause cause) noexcept { return status_of(cause) == SHARDREC_MISMATCH; }

// No rank is to blame for a mismatch. The error of each of the two ranks, and of a rank that is in the
// same operation as one of them, names the other one.
Failure seen_from(Failure failure, const CallSite& site) {
  if (!is_mismatch(failure.cause) || failure.inherited) return failure;
  const bool seen_from_failed_rank =
      failure.failed_rank == site.rank ||
      (failure.observer != site.rank && failure.operation != failure.failed_rank_operation &&
       failure.failed_rank_operation == site.operation);
  if (seen_from_failed_rank) {
    std::swap(failure.failed_rank, failure.observer);
    std::swap(failure.operation, failure.failed_rank_operation);
    std::swap(failure.size, failure.failed_rank_size);
  }
  return failure;
}

std::string subject(const Failure& failure, int rank, const CallSite& site) {
  return sentence(!failure.inherited && rank == site.rank ? "this rank " : "rank ", rank);
}

std::string describe(const Failure& failure, const CallSite& site) {
  const std::string failed_rank = subject(failure, failure.failed_rank, site);
  const std::string observer = subject(failure, failure.observer, site);
  const std::string exchange = sentence(" (exchange ", failure.sequence, ")");
  const std::string operation = sentence("\"", failure.operation, "\"");
  switch (failure.cause) {
    case Cause::kDestroyed:
      return sentence(failed_rank, " destroyed its communicator without closing it, and ", observer,
                      " waited for it in ", operation, exchange);
    case Cause::kLeft:
      return sentence(failed_rank, " has closed its communicator, and ", observer,
                      " still waited for it in ", operation, exchange);
    case Cause::kAbandoned:
      return sentence(failed_rank, " destroyed its side of ", operation, exchange, " while ",
                      observer, " waited for it");
    case Cause::kGaveUp:
      return sentence(failed_rank, " gave up ", operation, " and takes no further part in it");
    case Cause::kLate:
      return sentence(failed_rank, " did not come to ", operation, exchange, " within ",
                      decimal(failure.seconds), " s of ", observer, " waiting for it; it ",
                      failure.failed_rank_operation);
    case Cause::kUnread:
      return sentence(failed_rank, " did not finish reading ", operation, exchange, " of ",
                      observer, " within ", decimal(failure.seconds), " s; it ",
                      failure.failed_rank_operation);
    case Cause::kOperation:
      return sentence(failed_rank, " is in \"", failure.failed_rank_operation, "\"", exchange,
                      " while ", observer, " is in ", operation, "; all ranks must call the same");
    case Cause::kArguments:
      return sentence(failed_rank, " is in ", operation, exchange, " with other arguments than ",
                      observer, "; what is to be equal on all ranks (type, plan, reduction, root)",
                      " differs");
    case Cause::kSize:
      return sentence(failed_rank, " brings ", failure.failed_rank_size, " elements to ", operation,
                      exchange, " while ", observer, " brings ", failure.size,
                      "; sizes must be equal on all ranks");
    case Cause::kPurpose:
      return sentence(failed_rank, " is in \"", failure.failed_rank_operation, "\" while ",
                      observer, " is in ", operation, exchange,
                      "; the ranks made their objects in different order");
    case Cause::kLost:
      return sentence(failed_rank, " is gone: ", failure.reason);
    case Cause::kTransport:
      return sentence("the connection of ", observer, " with ", failed_rank, " failed in ",
                      operation, exchange, ": ", failure.reason);
    case Cause::kGarbled:
      return sentence("what came from ", failed_rank, " in ", operation, exchange,
                      " is no message of this library: ", failure.reason);
    case Cause::kDevice:
      return sentence("what the device of ", failed_rank, " sends and receives failed in ",
                      operation, exchange, ": ", failure.reason);
    case Cause::kDeviceLate:
      return sentence("what the device of ", failed_rank, " sends and receives in ", operation,
                      exchange, " was not over within ", decimal(failure.seconds), " s");
    case Cause::kAborted:
      break;
  }
  return failure.reason.empty()
             ? sentence(failed_rank, " aborted the communicator and gave no reason")
             : sentence(failed_rank, " aborted the communicator: ", failure.reason);
}

}  // namespace

void throw_failure(const Failure& recorded, const CallSite& site) {
  const Failure failure = seen_from(recorded, site);
  const std::string here = site.operation;
  std::string text;
  if (failure.inherited) text = "the communicator that this one was split from is dead: ";
  text += describe(failure, site);
  const bool elsewhere = here != failure.operation || site.sequence != failure.sequence;
  if (!here.empty() && (failure.inherited || elsewhere)) {
    text += sentence("; this ends \"", here, "\" (exchange ", site.sequence, ") of this rank ",
                     site.rank);
  }
  core::ErrorParts parts;
  parts.rank = failure.failed_rank;
  parts.sequence = static_cast<int64_t>(here.empty() ? failure.sequence : site.sequence);
  parts.operation = here.empty() ? failure.operation : here;
  core::fail(status_of(failure.cause), std::move(text), std::move(parts));
}

void Communicator::check_before(const char* operation) const {
  try {
    check();
  } catch (const core::Error& error) {
    core::ErrorParts parts = error.parts();
    parts.operation = operation;
    core::fail(
        error.status(),
        sentence(error.sentence(), "; this refuses \"", operation, "\" of this rank ", rank()),
        std::move(parts));
  }
}

std::string decimal(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

}  // namespace shardrec::comm
