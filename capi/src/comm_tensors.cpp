// Collectives on tensors: shardrec_comm_all_reduce, broadcast, all_gather, reduce_scatter and
// all_to_all.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "comm/collective/tensor_collectives.h"
#include "core/row_tensor.h"
#include "core/tensor.h"
#include "guard.h"
#include "objects/comm_object.h"
#include "shardrec/comm.h"

namespace shardrec::capi {
namespace {

using core::fail;
using core::sentence;

comm::Reduction reduction_of(shardrec_reduction reduction) {
  switch (reduction) {
    case SHARDREC_REDUCTION_SUM:
      return comm::Reduction::kSum;
    case SHARDREC_REDUCTION_MIN:
      return comm::Reduction::kMin;
    case SHARDREC_REDUCTION_MAX:
      return comm::Reduction::kMax;
    case SHARDREC_REDUCTION_MEAN:
      return comm::Reduction::kMean;
    default:
      refuse_value("the reduction", int64_t{reduction},
                   "SHARDREC_REDUCTION_SUM, _MIN, _MAX or _MEAN");
  }
}

void check_reducible(int32_t dtype, comm::Reduction reduction) {
  const bool real = dtype == SHARDREC_FLOAT32 || dtype == SHARDREC_FLOAT64;
  const bool integer = dtype == SHARDREC_INT32 || dtype == SHARDREC_INT64;
  if (!real && !integer) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("tensor has dtype ", core::dtype_name(dtype),
                  "; float32, float64, int32 or int64 is accepted"),
         {.value = dtype});
  }
  if (integer && reduction == comm::Reduction::kMean) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("tensor has dtype ", core::dtype_name(dtype),
                  "; SHARDREC_REDUCTION_MEAN takes float32 or float64"),
         {.value = dtype});
  }
}

void check_same_dtype(const core::RowTensor& tensor, const core::RowTensor& out) {
  if (tensor.dtype == out.dtype) return;
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence("out has dtype ", core::dtype_name(out.dtype), "; that of tensor, ",
                core::dtype_name(tensor.dtype), ", is accepted"),
       {.value = out.dtype});
}

// whole has `ranks` times the elements of part.
void check_parts(const core::RowTensor& whole, const char* name_of_whole,
                 const core::RowTensor& part, const char* name_of_part, int ranks) {
  // Both counts fit in memory, their product need not.
  if (whole.size() % ranks == 0 && whole.size() / ranks == part.size()) return;
  fail(SHARDREC_INVALID_ARGUMENT,
       sentence(name_of_whole, " has ", whole.size(), " elements; for ", ranks, " ranks, ", ranks,
                " times the ", part.size(), " of ", name_of_part, " are needed"),
       {.value = whole.size(), .limit = part.size()});
}

// How many rows of a tensor go to, or come from, each rank: as `counts` says, or equal parts.
std::vector<int64_t> row_counts(const shardrec_tensor* counts, const char* name,
                                const core::RowTensor& tensor, const char* name_of_tensor,
                                int ranks) {
  if (counts == nullptr) {
    if (tensor.rows % ranks != 0) {
      fail(SHARDREC_INVALID_ARGUMENT,
           sentence(name_of_tensor, " has ", tensor.rows, " rows, which are no equal parts for ",
                    ranks, " ranks; without ", name, " a multiple of ", ranks, " is accepted"),
           {.value = tensor.rows, .limit = ranks});
    }
    return std::vector<int64_t>(static_cast<size_t>(ranks), tensor.rows / ranks);
  }
  const std::span<const int64_t> given = core::vector_view<int64_t>(counts, name, ranks);
  int64_t left = tensor.rows;
  for (size_t r = 0; r < given.size(); ++r) {
    if (given[r] < 0 || given[r] > left) {
      fail(SHARDREC_INVALID_ARGUMENT,
           sentence(name, "[", r, "] is ", given[r], "; 0 to ", left, " is accepted, the rows of ",
                    name_of_tensor, " that are left"),
           {.position = static_cast<int64_t>(r), .value = given[r], .limit = left});
    }
    left -= given[r];
  }
  if (left != 0) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence(name, " adds up to ", tensor.rows - left, "; ", name_of_tensor, " has ",
                  tensor.rows, " rows"),
         {.value = tensor.rows - left, .limit = tensor.rows});
  }
  return {given.begin(), given.end()};
}

}  // namespace
}  // namespace shardrec::capi

using namespace shardrec::capi;
namespace core = shardrec::core;
namespace comm_ns = shardrec::comm;

shardrec_status shardrec_comm_all_reduce(shardrec_comm* comm, const shardrec_tensor* tensor,
                                         shardrec_reduction reduction) {
  return guard([&] {
    const auto use = enter(comm, Access::kExclusive);
    const comm_ns::Reduction how = reduction_of(reduction);
    const core::FlatView view = core::flat_view(tensor, "tensor");
    check_reducible(view.dtype, how);
    collective_call(use, "all_reduce", [&] {
      comm_ns::all_reduce(use->collectives, operation_of(CommCall::kAllReduce, "all_reduce"), how,
                          view);
    });
  });
}

shardrec_status shardrec_comm_broadcast(shardrec_comm* comm, const shardrec_tensor* tensor,
                                        int32_t root) {
  return guard([&] {
    const auto use = enter(comm, Access::kExclusive);
    const int ranks = use->collectives.size();
    if (root < 0 || root >= ranks) {
      refuse_value("root", int64_t{root}, core::sentence("0 to ", ranks - 1));
    }
    const core::RowTensor view = core::row_tensor(tensor, "tensor");
    collective_call(use, "broadcast", [&] {
      comm_ns::broadcast(use->collectives, operation_of(CommCall::kBroadcast, "broadcast"), root,
                         view);
    });
  });
}

shardrec_status shardrec_comm_all_gather(shardrec_comm* comm, const shardrec_tensor* tensor,
                                         const shardrec_tensor* out) {
  return guard([&] {
    const auto use = enter(comm, Access::kExclusive);
    const core::RowTensor view = core::row_tensor(tensor, "tensor");
    const core::RowTensor all = core::row_tensor(out, "out");
    check_same_dtype(view, all);
    check_parts(all, "out", view, "tensor", use->collectives.size());
    collective_call(use, "all_gather", [&] {
      comm_ns::all_gather(use->collectives, operation_of(CommCall::kAllGather, "all_gather"), view,
                          all);
    });
  });
}

shardrec_status shardrec_comm_reduce_scatter(shardrec_comm* comm, const shardrec_tensor* tensor,
                                             const shardrec_tensor* out,
                                             shardrec_reduction reduction) {
  return guard([&] {
    const auto use = enter(comm, Access::kExclusive);
    const comm_ns::Reduction how = reduction_of(reduction);
    const core::RowTensor view = core::row_tensor(tensor, "tensor");
    check_reducible(view.dtype, how);
    const core::RowTensor part = core::row_tensor(out, "out");
    check_same_dtype(view, part);
    check_parts(view, "tensor", part, "out", use->collectives.size());
    collective_call(use, "reduce_scatter", [&] {
      comm_ns::reduce_scatter(use->collectives,
                              operation_of(CommCall::kReduceScatter, "reduce_scatter"), how, view,
                              part);
    });
  });
}

shardrec_status shardrec_comm_all_to_all(shardrec_comm* comm, const shardrec_tensor* tensor,
                                         const shardrec_tensor* send_counts,
                                         const shardrec_tensor* out,
                                         const shardrec_tensor* receive_counts) {
  return guard([&] {
    const auto use = enter(comm, Access::kExclusive);
    const int ranks = use->collectives.size();
    const core::RowTensor rows = core::row_tensor(tensor, "tensor");
    const core::RowTensor into = core::row_tensor(out, "out");
    check_same_dtype(rows, into);
    if (rows.columns != into.columns) {
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence("out has rows of ", into.columns,
                                " elements; those of tensor have ", rows.columns),
                 {.value = into.columns, .limit = rows.columns});
    }
    const auto sent = row_counts(send_counts, "send_counts", rows, "tensor", ranks);
    const auto received = row_counts(receive_counts, "receive_counts", into, "out", ranks);
    collective_call(use, "all_to_all", [&] {
      comm_ns::all_to_all(use->collectives, operation_of(CommCall::kAllToAll, "all_to_all"), rows,
                          sent, into, received);
    });
  });
}
