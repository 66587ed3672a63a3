#include "group.h"

#include <memory>
#include <utility>
#include <vector>

#include "emulated.h"
#include "knobs.h"
#include "registry.h"

namespace fake_nccl {

using namespace shardrec::comm::nccl;

namespace {

struct OfCommunicator {
  Comm handle;
  std::unique_ptr<Operation> operation;
};

struct Group {
  int depth = 0;
  Result error = kSuccess;
  std::vector<OfCommunicator> operations;

  ~Group() {
    if (depth != 0) violation("a thread ends in a group");
  }
};

Group& group() {
  thread_local Group of_thread;
  return of_thread;
}

void add(Operation& operation, const Part& part) {
  if (part.send != nullptr) operation.sends.push_back(*part.send);
  if (part.receive != nullptr) operation.receives.push_back(*part.receive);
  if (part.collective != nullptr) operation.collectives.push_back(*part.collective);
}

Result add_to_group(Comm handle, Communicator& communicator, int64_t stream, const Part& part) {
  for (OfCommunicator& other : group().operations) {
    if (other.handle != handle) continue;
    if (other.operation->stream != stream) {
      violation("%s: a group has calls of one communicator in different streams", part.name);
      return kInvalidUsage;
    }
    add(*other.operation, part);
    return kSuccess;
  }
  auto operation = std::make_unique<Operation>(communicator, stream);
  add(*operation, part);
  group().operations.push_back({handle, std::move(operation)});
  return kSuccess;
}

Result check_part(const Communicator& communicator, int64_t stream, const Part& part) {
  const int device = simt::emulated()->device_of_stream(stream);
  if (device != communicator.issuer.device) {
    violation("%s in a stream of device %d, for a communicator of device %d", part.name, device,
              communicator.issuer.device);
    return kInvalidArgument;
  }
  if (part.collective != nullptr) return kSuccess;
  const int peer = part.send != nullptr ? part.send->peer : part.receive->peer;
  return peer >= 0 && peer < communicator.place.size ? kSuccess : kInvalidArgument;
}

Result add_checked(Comm handle, int64_t stream, const Part& part) {
  const Call call(handle, CallKind::kOperation, part.name);
  Communicator* const communicator = call.communicator();
  if (communicator == nullptr) return kInvalidArgument;
  if (call.is_refused()) return kInvalidUsage;
  if (communicator->error() != kSuccess) return communicator->error();
  const Result checked = check_part(*communicator, stream, part);
  if (checked != kSuccess) return checked;
  if (is_in_group()) return add_to_group(handle, *communicator, stream, part);
  auto operation = std::make_unique<Operation>(*communicator, stream);
  add(*operation, part);
  operation->sequence = communicator->issuer.next_sequence();
  return communicator->begin(std::move(operation));
}

Result begin_grouped(OfCommunicator& of, std::vector<std::pair<Issuer*, uint64_t>>& sequences) {
  const Call call(of.handle, CallKind::kOperation, "ncclGroupEnd");
  Communicator* const communicator = call.communicator();
  if (communicator == nullptr) return kInvalidArgument;
  if (call.is_refused()) return kInvalidUsage;
  // Calls of a group have no order among them.
  uint64_t sequence = 0;
  for (const auto& [issuer, number] : sequences) {
    if (issuer == &communicator->issuer) sequence = number;
  }
  if (sequence == 0) {
    sequence = communicator->issuer.next_sequence();
    sequences.emplace_back(&communicator->issuer, sequence);
  }
  of.operation->sequence = sequence;
  return communicator->begin(std::move(of.operation));
}

}  // namespace

bool is_in_group() { return group().depth != 0; }

void start_group() { ++group().depth; }

Result end_group() {
  Group& mine = group();
  if (mine.depth == 0) {
    violation("ncclGroupEnd without ncclGroupStart");
    return kInvalidUsage;
  }
  if (--mine.depth != 0) return kSuccess;
  std::vector<OfCommunicator> operations = std::move(mine.operations);
  mine.operations.clear();
  Result result = std::exchange(mine.error, kSuccess);
  if (result != kSuccess) return result;
  std::vector<std::pair<Issuer*, uint64_t>> sequences;
  for (OfCommunicator& of : operations) {
    const Result begun = begin_grouped(of, sequences);
    if (result == kSuccess || (result == kInProgress && begun != kSuccess)) result = begun;
  }
  return result;
}

Result add_part(Comm handle, int64_t stream, const Part& part) {
  const Result result = add_checked(handle, stream, part);
  if (is_in_group() && result != kSuccess && group().error == kSuccess) group().error = result;
  return result;
}

}  // namespace fake_nccl
