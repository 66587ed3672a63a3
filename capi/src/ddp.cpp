#include "shardrec/ddp.h"

#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "dense_objects.h"
#include "guard.h"
#include "options.h"

using namespace shardrec::capi;
namespace comm = shardrec::comm;
namespace core = shardrec::core;
namespace dense = shardrec::dense;

namespace {

std::span<float> compact_floats(const shardrec_tensor* tensor, const char* name) {
  const core::FlatView view = core::flat_view(tensor, name);
  if (view.dtype != SHARDREC_FLOAT32) {
    core::fail(
        SHARDREC_UNSUPPORTED,
        core::sentence(name, " has dtype ", core::dtype_name(view.dtype), "; float32 is accepted"),
        {.value = view.dtype});
  }
  return view.as<float>();
}

std::vector<int64_t> shape_of(const shardrec_tensor& tensor) {
  return {tensor.shape, tensor.shape + tensor.ndim};
}

}  // namespace

shardrec_status shardrec_ddp_create(shardrec_comm* comm, const shardrec_options* options,
                                    shardrec_ddp** out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(comm, Access::kShared);
    use->membership->require_open();
    const Options values = read_options(options, SHARDREC_OPTIONS_DDP);
    create(out, std::make_shared<DdpObject>(DdpObject{
                    use->membership,
                    dense::Ddp(use->membership->share(),
                               {.average = values.i64(SHARDREC_OPTION_DDP_AVERAGE) != 0,
                                .broadcast = values.i64(SHARDREC_OPTION_DDP_BROADCAST) != 0})}));
  });
}

void shardrec_ddp_destroy(shardrec_ddp** ddp) { destroy(ddp); }

shardrec_status shardrec_ddp_add(shardrec_ddp* ddp, const char* name,
                                 const shardrec_tensor* parameter,
                                 const shardrec_tensor* gradient) {
  return guard([&] {
    const auto use = enter(ddp, Access::kExclusive);
    const std::string text(require_text(name, "name"));
    const std::span<float> values = compact_floats(parameter, "parameter");
    const std::span<float> slopes = compact_floats(gradient, "gradient");
    std::vector<int64_t> shape = shape_of(*parameter);
    if (shape != shape_of(*gradient)) {
      core::fail(
          SHARDREC_INVALID_ARGUMENT,
          core::sentence("parameter \"", text,
                         "\" and its gradient have different shapes; one shape is accepted"));
    }
    use->ddp.add(text, std::move(shape), values, slopes);
  });
}

shardrec_status shardrec_ddp_commit(shardrec_ddp* ddp) {
  return guard([&] {
    const auto use = enter(ddp, Access::kExclusive);
    use->membership->require_open();
    use->ddp.commit();
  });
}

shardrec_status shardrec_ddp_all_reduce(shardrec_ddp* ddp) {
  return guard([&] {
    const auto use = enter(ddp, Access::kExclusive);
    use->membership->require_open();
    comm::tell_shortage(use->membership->communicator(), "ddp: all_reduce",
                        [&] { use->ddp.all_reduce(); });
  });
}
