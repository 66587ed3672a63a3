// AUC of true probabilities: no model can be expected to do better on these rows.
#pragma once

#include <shardrec/shardrec.hpp>
#include <vector>

namespace shardrec::cli {

class BestAuc {
 public:
  void add(double probability, bool click);
  // Of all that was added; AUC is 0.5 where there is nothing to rank.
  double value(shardrec_metric metric);

 private:
  void flush();
  Metrics metrics_;
  std::vector<float> probabilities_;
  std::vector<float> labels_;
};

}  // namespace shardrec::cli
