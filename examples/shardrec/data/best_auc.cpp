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
  check(shardrec_metrics_compute(metrics_.get()));
  double value = 0;
  const shardrec_status status = shardrec_metrics_get(metrics_.get(), metric, &value);
  if (status == SHARDREC_NOT_FOUND) return 0.5;
  check(status);
  return value;
}

void BestAuc::flush() {
  const shardrec_tensor probabilities = vector_view(probabilities_);
  const shardrec_tensor labels = vector_view(labels_);
  check(shardrec_metrics_update(metrics_.get(), &probabilities, &labels));
  probabilities_.clear();
  labels_.clear();
}

}  // namespace shardrec::cli
