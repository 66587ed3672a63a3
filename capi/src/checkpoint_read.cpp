// What an open checkpoint holds, read by one rank alone.
#include <algorithm>
#include <string>
#include <utility>

#include "checkpoint/read/match.h"
#include "checkpoint/read/saved.h"
#include "checkpoint/store/describe.h"
#include "core/tensor.h"
#include "guard.h"
#include "objects/checkpoint_object.h"
#include "objects/model_object.h"
#include "structs.h"

namespace shardrec::capi {
namespace {

const checkpoint::ManifestDense& host_tensor(const checkpoint::Opened& opened, const char* name,
                                             int32_t rank) {
  return checkpoint::find_item(opened, checkpoint::ItemKind::kHostTensor,
                               std::string(require_text(name, "name")), rank)
      .tensors.front();
}

}  // namespace
}  // namespace shardrec::capi

using namespace shardrec;  // NOLINT(google-build-using-namespace): the C functions live outside
using namespace shardrec::capi;  // NOLINT(google-build-using-namespace)

shardrec_status shardrec_checkpoint_info(const shardrec_checkpoint* checkpoint,
                                         shardrec_opened* out) {
  return guard([&] {
    const auto use = enter(checkpoint, Access::kExclusive);
    const checkpoint::Manifest& manifest = use->session.opened().manifest;
    int64_t bytes = 0;
    for (const checkpoint::ManifestFile& file : manifest.files) bytes += file.bytes;
    const auto items = [&](checkpoint::ItemKind kind) {
      return static_cast<int32_t>(
          std::ranges::count(manifest.items, kind, &checkpoint::ManifestItem::kind));
    };
    write_struct(out, "out",
                 shardrec_opened{.struct_size = sizeof(shardrec_opened),
                                 .step = manifest.step,
                                 .commit = manifest.commit,
                                 .bytes = bytes,
                                 .format = manifest.format,
                                 .ranks = manifest.ranks,
                                 .collections = static_cast<int32_t>(manifest.collections.size()),
                                 .layers = items(checkpoint::ItemKind::kLayers),
                                 .parameters = items(checkpoint::ItemKind::kParameters),
                                 .tensors = items(checkpoint::ItemKind::kHostTensor)});
  });
}

shardrec_status shardrec_checkpoint_model(shardrec_checkpoint* checkpoint, const char* name,
                                          shardrec_model** out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(checkpoint, Access::kExclusive);
    create(out, std::make_shared<plan::Model>(checkpoint::saved_model(
                    use->session.opened(), std::string(require_text(name, "name")))));
  });
}

shardrec_status shardrec_checkpoint_plan(shardrec_checkpoint* checkpoint, const char* name,
                                         shardrec_plan** out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(checkpoint, Access::kExclusive);
    create(out, std::make_shared<PlanObject>(checkpoint::saved_plan(
                    use->session.opened(), std::string(require_text(name, "name")))));
  });
}

shardrec_status shardrec_checkpoint_mlp(shardrec_checkpoint* checkpoint, const char* name,
                                        const shardrec_options* options, shardrec_mlp** out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(checkpoint, Access::kExclusive);
    const checkpoint::Opened& opened = use->session.opened();
    const std::string text(require_text(name, "name"));
    create(out, checkpoint::saved_layers(opened, text,
                                         mlp_options(read_options(options, SHARDREC_OPTIONS_MLP))));
  });
}

shardrec_status shardrec_checkpoint_tensor_info(shardrec_checkpoint* checkpoint, const char* name,
                                                int32_t rank, shardrec_saved_tensor* out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(checkpoint, Access::kExclusive);
    const checkpoint::ManifestDense& saved = host_tensor(use->session.opened(), name, rank);
    write_struct(
        out, "out",
        shardrec_saved_tensor{.struct_size = sizeof(shardrec_saved_tensor),
                              .bytes = bytes_of(saved),
                              .tensor = core::compact_view(nullptr, saved.dtype, saved.shape)});
  });
}

shardrec_status shardrec_checkpoint_get_tensor(shardrec_checkpoint* checkpoint, const char* name,
                                               int32_t rank, const shardrec_tensor* out) {
  return guard([&] {
    const auto use = enter(checkpoint, Access::kExclusive);
    const checkpoint::Opened& opened = use->session.opened();
    const checkpoint::ManifestDense& saved = host_tensor(opened, name, rank);
    const core::FlatView view = core::flat_view(out, "out");
    const std::vector<int64_t> shape(out->shape, out->shape + out->ndim);
    if (view.dtype != saved.dtype || shape != saved.shape) {
      core::fail(
          SHARDREC_INVALID_ARGUMENT,
          core::sentence("out has another dtype or shape than tensor \"", name,
                         "\" of the checkpoint; shardrec_checkpoint_tensor_info tells both"));
    }
    checkpoint::read_dense(
        opened, saved, {static_cast<std::byte*>(view.data), static_cast<size_t>(bytes_of(saved))});
  });
}

shardrec_status shardrec_checkpoint_contents_json(shardrec_checkpoint* checkpoint,
                                                  char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    const auto use = enter(checkpoint, Access::kExclusive);
    *out_text = copy_text(checkpoint::contents_json(use->session.opened()));
  });
}

shardrec_status shardrec_checkpoint_list_json(const char* directory, char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    refuse_after_fork();
    *out_text = copy_text(checkpoint::list_json(
        checkpoint::list_checkpoints(std::string(require_text(directory, "directory")))));
  });
}
