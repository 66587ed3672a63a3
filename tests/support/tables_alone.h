// Tables alone as a checkpoint of their own: for tests of what is in it, not of checkpoints.
#pragma once

#include <string>

#include "shardrec/checkpoint.h"
#include "shardrec/shardrec.hpp"

namespace shardrec::test {

// Collective. directory: of no other run.
inline void save_tables(Comm& comm, Collection& tables, const std::string& directory) {
  Checkpoint checkpoint(comm, directory);
  checkpoint.add("tables", tables);
  checkpoint.commit(0);
}

// Collective. name: of the collection in the checkpoint.
inline void load_tables(Comm& comm, Collection& tables, const std::string& directory,
                        const std::string& name = "tables") {
  Checkpoint checkpoint(comm, directory);
  checkpoint.add(name, tables);
  checkpoint.open();
  checkpoint.load();
}

// The same of the C API's handles; what fails is the first error.
inline shardrec_status save_or_load_tables(shardrec_comm* comm, shardrec_collection* tables,
                                           const std::string& directory, bool save) {
  shardrec_checkpoint* checkpoint = nullptr;
  shardrec_status status =
      shardrec_checkpoint_create(comm, directory.c_str(), nullptr, &checkpoint);
  if (status != SHARDREC_OK) return status;
  status = shardrec_checkpoint_add_collection(checkpoint, "tables", tables);
  if (status == SHARDREC_OK && save) status = shardrec_checkpoint_commit(checkpoint, 0, nullptr);
  if (status == SHARDREC_OK && !save) status = shardrec_checkpoint_open(checkpoint, -1);
  if (status == SHARDREC_OK && !save) status = shardrec_checkpoint_load(checkpoint, nullptr);
  shardrec_checkpoint_destroy(&checkpoint);
  return status;
}

}  // namespace shardrec::test
