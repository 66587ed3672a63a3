// The values that ranks share, and the ranks that wait for one. Bounded: limits.h. One thread at a
// time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/rendezvous/protocol/wire.h"

namespace shardrec::comm::rendezvous {

class Store {
 public:
  struct Waiter {
    int rank;
    uint64_t id;
  };

  // Replaces the value of the key. `woken` gets the ranks that waited for it. False if there is no room.
  bool set(const std::string& key, ConstBytes value, std::vector<Waiter>& woken);
  // Null if the key has no value; the waiter is then noted, unless its rank waits for too many keys.
  const Bytes* get(const std::string& key, Waiter waiter, bool& noted);
  void forget(int rank, uint64_t id);
  void forget_all(int rank);

 private:
  std::map<std::string, Bytes> values_;
  std::map<std::string, std::vector<Waiter>> waiting_;
  std::map<int, size_t> waits_;  // by rank
  size_t bytes_ = 0;

  template <class Gone>
  void drop_waiters(Gone gone);
};

}  // namespace shardrec::comm::rendezvous
