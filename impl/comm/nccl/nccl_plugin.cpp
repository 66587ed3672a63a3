// The NCCL plug-in's one function and its table: calls of NVIDIA's library.
#include "comm/nccl/nccl_plugin.h"

#include <bit>
#include <cstring>

#include "comm/nccl/library.h"

namespace shardrec::comm::nccl {
namespace {

bool is_error(Result result) { return result != kSuccess && result != kInProgress; }

CudaStream stream_of(int64_t stream) { return std::bit_cast<CudaStream>(stream); }

const char* result_text(shardrec_nccl_result result) {
  const char* const text = api().ncclGetErrorString(static_cast<Result>(result));
  return text != nullptr ? text : "unknown result";
}

const char* last_error() {
  const char* const text = api().ncclGetLastError(nullptr);
  return text != nullptr ? text : "";
}

shardrec_nccl_result make_id(uint8_t* out) {
  UniqueId id{};
  const Result result = api().ncclGetUniqueId(&id);
  std::memcpy(out, id.bytes, sizeof id.bytes);
  return result;
}

shardrec_nccl_result create(const uint8_t* id, int32_t rank, int32_t size, int32_t most_ctas,
                            shardrec_nccl_comm** out) {
  *out = nullptr;
  UniqueId unique{};
  std::memcpy(unique.bytes, id, sizeof unique.bytes);
  Config config;
  config.blocking = 0;
  if (most_ctas != 0) config.max_ctas = most_ctas;
  Comm comm = nullptr;
  const Result result = api().ncclCommInitRankConfig(&comm, size, unique, rank, &config);
  if (!is_error(result)) {
    *out = comm;
  } else if (comm != nullptr) {
    api().ncclCommAbort(comm);
  }
  return result;
}

shardrec_nccl_result progress(shardrec_nccl_comm* comm) {
  Result state = kSuccess;
  const Result result = api().ncclCommGetAsyncError(comm, &state);
  return result != kSuccess ? result : state;
}

// Calls of a group. A group that was begun is ended whatever becomes of its calls: it belongs to the thread.
class Group {
 public:
  Group() : result_(api().ncclGroupStart()) { begun_ = result_ == kSuccess; }

  bool is_good() const { return !is_error(result_); }
  void add(Result result) {
    if (is_good()) result_ = result;
  }
  // The first error, else what the end of the group says: the calls in it begin nothing.
  Result end() {
    if (!begun_) return result_;
    const Result result = api().ncclGroupEnd();
    return is_good() ? result : result_;
  }

 private:
  Result result_;
  bool begun_;
};

bool is_empty(const shardrec_nccl_part* parts, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    if (parts[i].bytes != 0) return false;
  }
  return true;
}

shardrec_nccl_result exchange(shardrec_nccl_comm* comm, int64_t stream,
                              const shardrec_nccl_part* sends, int32_t send_count,
                              const shardrec_nccl_part* receives, int32_t receive_count) {
  if (is_empty(sends, send_count) && is_empty(receives, receive_count)) return kSuccess;
  const CudaStream in = stream_of(stream);
  Group group;
  for (int32_t i = 0; i < send_count && group.is_good(); ++i) {
    const shardrec_nccl_part& part = sends[i];
    if (part.bytes == 0) continue;
    group.add(api().ncclSend(part.data, part.bytes, kInt8, part.peer, comm, in));
  }
  for (int32_t i = 0; i < receive_count && group.is_good(); ++i) {
    const shardrec_nccl_part& part = receives[i];
    if (part.bytes == 0) continue;
    group.add(api().ncclRecv(part.data, part.bytes, kInt8, part.peer, comm, in));
  }
  return group.end();
}

shardrec_nccl_result all_reduce(shardrec_nccl_comm* comm, int64_t stream,
                                const shardrec_nccl_vector* vector) {
  return api().ncclAllReduce(vector->in, vector->out, vector->count, vector->dtype,
                             vector->reduction, comm, stream_of(stream));
}

shardrec_nccl_result reduce_scatter(shardrec_nccl_comm* comm, int64_t stream,
                                    const shardrec_nccl_vector* vector) {
  return api().ncclReduceScatter(vector->in, vector->out, vector->count, vector->dtype,
                                 vector->reduction, comm, stream_of(stream));
}

shardrec_nccl_result all_gather(shardrec_nccl_comm* comm, int64_t stream,
                                const shardrec_nccl_vector* vector) {
  return api().ncclAllGather(vector->in, vector->out, vector->count, vector->dtype, comm,
                             stream_of(stream));
}

shardrec_nccl_result abort(shardrec_nccl_comm* comm) { return api().ncclCommAbort(comm); }

shardrec_nccl_result finalize(shardrec_nccl_comm* comm) { return api().ncclCommFinalize(comm); }

shardrec_nccl_result destroy(shardrec_nccl_comm* comm) { return api().ncclCommDestroy(comm); }

}  // namespace
}  // namespace shardrec::comm::nccl

extern "C" __attribute__((visibility("default"))) int32_t
shardrec_nccl_plugin(shardrec_nccl_table* table) {
  namespace nccl = shardrec::comm::nccl;
  const bool same = table->size == sizeof *table && table->abi == SHARDREC_NCCL_ABI;
  table->size = sizeof *table;
  table->abi = SHARDREC_NCCL_ABI;
  if (!same) return SHARDREC_NCCL_ABI_MISMATCH;  // and nothing more: the table may be a smaller one
  table->reason = "";
  const int32_t status = nccl::load_library(*table);
  if (status != SHARDREC_NCCL_FILLED) return status;
  table->result_text = nccl::result_text;
  table->last_error = nccl::last_error;
  table->make_id = nccl::make_id;
  table->create = nccl::create;
  table->progress = nccl::progress;
  table->exchange = nccl::exchange;
  table->all_reduce = nccl::all_reduce;
  table->reduce_scatter = nccl::reduce_scatter;
  table->all_gather = nccl::all_gather;
  table->abort = nccl::abort;
  table->finalize = nccl::finalize;
  table->destroy = nccl::destroy;
  return SHARDREC_NCCL_FILLED;
}
