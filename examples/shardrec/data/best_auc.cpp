// The AUC of true probabilities, by the library's exact metric.
#include "data/best_auc.h"

namespace shardrec::cli {
namespace {

constexpr size_t kBlock = 8192;

}  // namespace

void BestAuc::add(double probability, bool click) {
  probabilities_.push_back(static_cast<float>(probability));
  labels_.push_back(click ? 1.0f : 0.0f);
  if (labels_.size() == kBlock) flush();
}

double BestAuc::value(shardrec_metric metric) {
  flush();
  metrics_.compute();
  return metrics_.find_metric(metric).value_or(0.5);
}

void BestAuc::flush() {
  metrics_.update(probabilities_, labels_);
  probabilities_.clear();
  labels_.clear();
}

}  // namespace shardrec::cli
