#include <mpi.h>

#include "direct.h"

namespace shardrec::bench {
namespace {

class DirectMpi final : public Direct {
 public:
  DirectMpi() {
    int level = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  }
  ~DirectMpi() override { MPI_Finalize(); }
  DirectMpi(const DirectMpi&) = delete;
  DirectMpi& operator=(const DirectMpi&) = delete;

  int rank() const override { return rank_; }

  void exchange(std::span<const std::byte> send, std::span<std::byte> receive) override {
    MPI_Sendrecv(send.data(), static_cast<int>(send.size()), MPI_BYTE, 1 - rank_, 1, receive.data(),
                 static_cast<int>(receive.size()), MPI_BYTE, 1 - rank_, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }

 private:
  int rank_ = 0;
};

}  // namespace

std::unique_ptr<Direct> direct_mpi() { return std::make_unique<DirectMpi>(); }

}  // namespace shardrec::bench
