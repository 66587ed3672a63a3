// What the plug-ins are measured beside: a loop that calls Gloo or MPI itself.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace shardrec::bench {

class Direct {
 public:
  virtual ~Direct() = default;
  virtual int rank() const = 0;
  // With the other one of two ranks, both at once.
  virtual void exchange(std::span<const std::byte> send, std::span<std::byte> receive) = 0;
};

std::unique_ptr<Direct> direct_gloo(int rank, const std::string& folder);
std::unique_ptr<Direct> direct_mpi();  // starts MPI, and ends it when destroyed

}  // namespace shardrec::bench
