#include "shardrec/metrics.h"

#include <memory>

#include "core/tensor.h"
#include "dense/metrics/metrics.h"
#include "guard.h"
#include "handle.h"
#include "objects/comm_object.h"
#include "objects/dense_objects.h"
#include "options.h"

namespace shardrec::capi {

struct MetricsObject {
  std::shared_ptr<Membership> membership;  // null: this rank alone
  dense::Metrics metrics;
};

template <>
struct Handle<shardrec_metrics> {
  using Object = MetricsObject;
  static constexpr Kind kKind = Kind::kMetrics;
};

}  // namespace shardrec::capi

using namespace shardrec::capi;
namespace core = shardrec::core;
namespace dense = shardrec::dense;

shardrec_status shardrec_metrics_create(shardrec_comm* comm, const shardrec_options* options,
                                        shardrec_metrics** out) {
  return guard([&] {
    require_out(out, "out");
    const dense::device::ContextOptions place =
        place_from(read_options(options, SHARDREC_OPTIONS_METRICS));
    if (comm == nullptr) {
      create(out, std::make_shared<MetricsObject>(
                      MetricsObject{nullptr, dense::Metrics(nullptr, place)}));
      return;
    }
    const auto use = enter(comm, Access::kShared);
    use->membership->require_open();
    create(out, std::make_shared<MetricsObject>(MetricsObject{
                    use->membership, dense::Metrics(use->membership->share(), place)}));
  });
}

void shardrec_metrics_destroy(shardrec_metrics** metrics) { destroy(metrics); }

shardrec_status shardrec_metrics_update(shardrec_metrics* metrics,
                                        const shardrec_tensor* probabilities,
                                        const shardrec_tensor* labels) {
  return guard([&] {
    const auto use = enter(metrics, Access::kExclusive);
    const core::DeviceSet devices = use->metrics.caller_devices();
    const dense::device::CallerMatrix predicted =
        column_for(devices, probabilities, "probabilities");
    use->metrics.update(predicted, column_for(devices, labels, "labels", predicted.rows.cols));
  });
}

shardrec_status shardrec_metrics_compute(shardrec_metrics* metrics) {
  return guard([&] {
    const auto use = enter(metrics, Access::kExclusive);
    if (use->membership != nullptr) use->membership->require_open();
    use->metrics.compute();
  });
}

shardrec_status shardrec_metrics_get(const shardrec_metrics* metrics, shardrec_metric metric,
                                     double* out) {
  return guard([&] {
    const auto use = enter(metrics, Access::kExclusive);
    require_out(out, "out");
    *out = use->metrics.get(metric);
  });
}

shardrec_status shardrec_metrics_reset(shardrec_metrics* metrics) {
  return guard([&] { enter(metrics, Access::kExclusive)->metrics.reset(); });
}
