// Training runs of which the digest is recorded: every optimizer with every kind of sharding and
// every type of a table, the rest of what a run has drawn for each of them.
//
// Numbers are drawn as integers and scaled, so that every machine draws the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "embedding/scenario.h"

namespace shardrec::test {

struct Configuration {
  std::string name;  // "adam/row_wise/float16/mean/2x2/plain/int8+none", unique
  int world = 1;     // ranks, of all replicas
  uint64_t seed = 0;

  // What the name says, drawn anew each time.
  struct Run {
    Scenario scenario;
    Deal deal;
  };
  Run make() const;

  // Indexes into the lists of configurations.cpp.
  struct Choice {
    size_t optimizer = 0;
    size_t sharding = 0;
    size_t storage = 0;
    size_t pooling = 0;
    size_t shape = 0;
    size_t input = 0;
    size_t forward = 0;
    size_t backward = 0;
  } choice;
};

// Always the same ones in the same order.
std::vector<Configuration> configurations();

// Indexes of 30 of them, ascending: each optimizer, kind of sharding, type of table and so on is among them about
// as often as any other of its kind. For engines and back ends, whose arithmetic is that of all: they differ in the
// ways of messages and in who waits for whom.
std::vector<size_t> spread_of_configurations();

}  // namespace shardrec::test
