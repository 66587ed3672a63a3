// The objects behind shardrec_ddp, shardrec_mlp and shardrec_interaction.
#pragma once

#include <memory>
#include <utility>

#include "dense/ddp/ddp.h"
#include "dense/layers/interaction.h"
#include "dense/layers/mlp.h"
#include "handle.h"
#include "objects/comm_object.h"
#include "options.h"
#include "shardrec/ddp.h"
#include "shardrec/layers.h"

namespace shardrec::capi {

struct DdpObject {
  DdpObject(std::shared_ptr<Membership> its_membership, const dense::DdpOptions& options)
      : membership(std::move(its_membership)), ddp(membership->share(), options) {}

  std::shared_ptr<Membership> membership;
  dense::Ddp ddp;
};

// Options of kind MLP.
dense::MlpOptions mlp_options(const Options& options);
// DEVICE, DEVICE_WAIT and STREAM of any kind that has them.
dense::device::ContextOptions place_from(const Options& options);
// A compact FLOAT32 tensor [size] or [size, 1] on one of the devices, as a matrix of one row.
dense::device::CallerMatrix column_for(core::DeviceSet devices, const shardrec_tensor* tensor,
                                       const char* name, int64_t size = core::kAnySize);

template <>
struct Handle<shardrec_ddp> {
  using Object = DdpObject;
  static constexpr Kind kKind = Kind::kDdp;
};
template <>
struct Handle<shardrec_mlp> {
  using Object = dense::Mlp;
  static constexpr Kind kKind = Kind::kMlp;
};
template <>
struct Handle<shardrec_interaction> {
  using Object = dense::Interaction;
  static constexpr Kind kKind = Kind::kInteraction;
};

}  // namespace shardrec::capi
