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
      return SHARDREC_PEER_FAILED;
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

// A mismatch has no guilty side: each of the two ranks, and who is in the same operation, is told
// of the other.
Failure seen_from(Failure failure, const CallSite& site) {
  if (!is_mismatch(failure.cause) || failure.inherited) return failure;
  const bool with_culprit =
      failure.culprit == site.rank ||
      (failure.witness != site.rank && failure.operation != failure.culprit_operation &&
       failure.culprit_operation == site.operation);
  if (with_culprit) {
    std::swap(failure.culprit, failure.witness);
    std::swap(failure.operation, failure.culprit_operation);
    std::swap(failure.size, failure.culprit_size);
  }
  return failure;
}

std::string subject(const Failure& failure, int rank, const CallSite& site) {
  return sentence(!failure.inherited && rank == site.rank ? "this rank " : "rank ", rank);
}

std::string describe(const Failure& failure, const CallSite& site) {
  const std::string culprit = subject(failure, failure.culprit, site);
  const std::string witness = subject(failure, failure.witness, site);
  const std::string exchange = sentence(" (exchange ", failure.sequence, ")");
  const std::string operation = sentence("\"", failure.operation, "\"");
  switch (failure.cause) {
    case Cause::kDestroyed:
      return sentence(culprit, " destroyed its communicator without closing it, and ", witness,
                      " waited for it in ", operation, exchange);
    case Cause::kLeft:
      return sentence(culprit, " has closed its communicator, and ", witness,
                      " still waited for it in ", operation, exchange);
    case Cause::kAbandoned:
      return sentence(culprit, " destroyed its side of ", operation, exchange, " while ", witness,
                      " waited for it");
    case Cause::kGaveUp:
      return sentence(culprit, " gave up ", operation, " and takes no further part in it");
    case Cause::kLate:
      return sentence(culprit, " did not come to ", operation, exchange, " within ",
                      decimal(failure.seconds), " s of ", witness, " waiting for it; it ",
                      failure.culprit_operation);
    case Cause::kUnread:
      return sentence(culprit, " did not finish reading ", operation, exchange, " of ", witness,
                      " within ", decimal(failure.seconds), " s; it ", failure.culprit_operation);
    case Cause::kOperation:
      return sentence(culprit, " is in \"", failure.culprit_operation, "\"", exchange, " while ",
                      witness, " is in ", operation, "; all ranks must call the same");
    case Cause::kArguments:
      return sentence(culprit, " is in ", operation, exchange, " with other arguments than ",
                      witness, "; what is to be equal on all ranks (type, plan, reduction, root)",
                      " differs");
    case Cause::kSize:
      return sentence(culprit, " brings ", failure.culprit_size, " elements to ", operation,
                      exchange, " while ", witness, " brings ", failure.size,
                      "; sizes must be equal on all ranks");
    case Cause::kPurpose:
      return sentence(culprit, " is in \"", failure.culprit_operation, "\" while ", witness,
                      " is in ", operation, exchange,
                      "; the ranks made their objects in different order");
    case Cause::kLost:
      return sentence(culprit, " is gone: ", failure.reason);
    case Cause::kTransport:
      return sentence("the connection of ", witness, " with ", culprit, " failed in ", operation,
                      exchange, ": ", failure.reason);
    case Cause::kGarbled:
      return sentence("what came from ", culprit, " in ", operation, exchange,
                      " is no message of this library: ", failure.reason);
    case Cause::kAborted:
      break;
  }
  return failure.reason.empty() ? sentence(culprit, " aborted the communicator and gave no reason")
                                : sentence(culprit, " aborted the communicator: ", failure.reason);
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
  parts.rank = failure.culprit;
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
