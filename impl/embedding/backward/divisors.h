// What gradients are divided by (option GRADIENT_DIVISOR): those of cut tables by what follows from their sharding group,
// those of replicated ones, and of exact groups, by what follows from all ranks.
#pragma once

#include "embedding/tables/layout.h"

namespace shardrec::embedding {

struct Divisor {
  float value = 1;
  // Is it divided by on the owner, of tables where that is the same (TableLayout::owner_applies_divisor)?
  bool by_owner = false;

  float for_source(const TableLayout& table) const { return is_late(table) ? 1 : value; }
  float owner_scale(const TableLayout& table) const { return is_late(table) ? 1 / value : 1; }

 private:
  bool is_late(const TableLayout& table) const { return by_owner && table.owner_applies_divisor; }
};

struct Divisors {
  Divisor cut;
  Divisor replicated;

  const Divisor& of(const TableLayout& table) const { return table.replicated ? replicated : cut; }
};

}  // namespace shardrec::embedding
