#include "embedding/batch/caller_memory.h"

#include <algorithm>

namespace shardrec::embedding {
namespace {

bool is_reached(shardrec_device_type type, const compute::Backend& backend) {
  return type != SHARDREC_DEVICE_CPU || backend.reaches_host();
}

// As many rows at once as a back end moves.
template <class Move>
void move_rows(int64_t rows, size_t row_bytes, const Move& move) {
  const int64_t most = compute::rows_at_once(row_bytes);
  for (int64_t first = 0; first < rows; first += most) move(first, std::min(most, rows - first));
}

}  // namespace

OutputView CallerMemory::matrix(const OutputView& view, int64_t rows, int64_t columns, bool fetch,
                                compute::Backend& backend) {
  if (view.data == nullptr || is_reached(view.device.type, backend)) return view;
  const size_t row_bytes = static_cast<size_t>(columns) * compute::element_bytes(view.element);
  const OutputView reached{.data = memory_.resize(static_cast<size_t>(rows) * row_bytes),
                           .element = view.element,
                           .stride = columns,
                           .device = view.device};
  if (!fetch) return reached;
  move_rows(rows, row_bytes, [&](int64_t first, int64_t count) {
    const compute::RowTransfer transfer{.from = {.data = view.at(first, 0),
                                                 .element = view.element,
                                                 .stride = static_cast<size_t>(view.stride)},
                                        .to = {.data = reached.at(first, 0),
                                               .element = view.element,
                                               .stride = static_cast<size_t>(columns)},
                                        .rows = count,
                                        .width = columns};
    backend.transfer().copy_from_host({&transfer, 1});
  });
  return reached;
}

void CallerMemory::give_back(const OutputView& reached, const OutputView& view, int64_t rows,
                             int64_t columns, compute::Backend& backend) {
  if (reached.data == view.data) return;
  const size_t row_bytes = static_cast<size_t>(columns) * compute::element_bytes(view.element);
  move_rows(rows, row_bytes, [&](int64_t first, int64_t count) {
    const compute::RowTransfer transfer{.from = {.data = reached.at(first, 0),
                                                 .element = view.element,
                                                 .stride = static_cast<size_t>(columns)},
                                        .to = {.data = view.at(first, 0),
                                               .element = view.element,
                                               .stride = static_cast<size_t>(view.stride)},
                                        .rows = count,
                                        .width = columns};
    backend.transfer().copy_to_host({&transfer, 1});
  });
}

}  // namespace shardrec::embedding
