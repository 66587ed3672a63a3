// Blocking collectives of tensors of any dtype, whose rows may lie apart. Each call is collective.
//
// What a rank sends is copied before anything is written, so that tensors may overlap in any way:
// the result is as if `tensor` were read first. Elements count row by row; what must be equal on
// all ranks is their number and dtype, not the shape (else MISMATCH, and the communicator is dead).
// Operation::detail and size are set by the calls.
#pragma once

#include <cstdint>
#include <span>

#include "comm/collective/collectives.h"
#include "core/row_tensor.h"
#include "core/tensor.h"

namespace shardrec::comm {

// Reduces in place. dtype FLOAT32, FLOAT64, INT32 or INT64; the bits are those of
// Collectives::all_reduce.
void all_reduce(Collectives& collectives, Operation operation, Reduction reduction,
                const core::FlatView& tensor);

// The elements of rank root are copied over those of all others.
void broadcast(Collectives& collectives, Operation operation, int root,
               const core::RowTensor& tensor);

// out: the elements of rank 0, then those of rank 1, and so on; it has size() times as many.
void all_gather(Collectives& collectives, Operation operation, const core::RowTensor& tensor,
                const core::RowTensor& out);

// out: the reduction over the ranks of the rank()-th of size() equal parts of tensor. dtype
// FLOAT32, FLOAT64, INT32 or INT64; the bits are those of Collectives::all_reduce.
void reduce_scatter(Collectives& collectives, Operation operation, Reduction reduction,
                    const core::RowTensor& tensor, const core::RowTensor& out);

// Rows of tensor go to the ranks in order, send_rows[r] to rank r; out gets the rows of rank 0,
// then those of rank 1, receive_rows[r] of rank r. Their sums are the numbers of rows. Ranks
// compare what each is to send with what its receiver expects, and dtypes and row lengths, before
// any row moves: where they differ, every rank throws the same AgreedError of DISAGREEMENT, and the
// communicator lives.
void all_to_all(Collectives& collectives, const Operation& operation, const core::RowTensor& tensor,
                std::span<const int64_t> send_rows, const core::RowTensor& out,
                std::span<const int64_t> receive_rows);

}  // namespace shardrec::comm
