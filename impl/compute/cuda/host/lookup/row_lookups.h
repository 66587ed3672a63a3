// Lookups in rows of tables of a device, collected and started: a launch for each kind of them.
//
// Thread rule: that of the stream.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "compute/cuda/host/arguments.h"
#include "compute/cuda/host/launch_list.h"
#include "compute/table_rows.h"

namespace shardrec::compute::cuda::host {

class RowLookups {
 public:
  explicit RowLookups(std::shared_ptr<Stream> stream);

  // Begins another list of them.
  void clear();
  // lookup: all but what the table says, and the lanes. The table is not coded.
  void add(const TableRows& table, shardrec_cuda_lookup lookup);
  // Enqueues all. what: of a sentence, where the device refuses (host::require).
  void run(std::string_view what);

 private:
  struct Kind {
    shardrec_cuda_lookup_kind kind;
    LaunchList<shardrec_cuda_lookup> launch;
  };

  std::shared_ptr<Stream> stream_;
  Arguments arguments_;
  std::vector<Kind> kinds_;
};

}  // namespace shardrec::compute::cuda::host
