#include "shardrec/checkpoint.h"

#include <algorithm>
#include <list>
#include <string>
#include <utility>

#include "checkpoint/layers.h"
#include "checkpoint_object.h"
#include "comm/collective/agree.h"
#include "control_object.h"
#include "core/tensor.h"
#include "guard.h"

namespace shardrec::capi {
namespace {

constexpr size_t kMostNameBytes = 255;

void require_free_name(const CheckpointObject& object, const std::string& name) {
  const auto taken = [&](const auto& added) {
    return std::any_of(added.begin(), added.end(),
                       [&](const auto& known) { return known.name == name; });
  };
  if (taken(object.collections) || taken(object.layers) || taken(object.parameters) ||
      object.tensors.count(name) != 0) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("\"", name,
                              "\" was added to this checkpoint already; names are"
                              " unique among all that is added and set"));
  }
}

// A name that tensors in files can begin with.
std::string require_name(const char* name, bool may_be_empty) {
  std::string text(require_text(name, "name"));
  if ((text.empty() && !may_be_empty) || text.size() > kMostNameBytes ||
      text.find('/') != std::string::npos) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("name is \"", text.substr(0, kMostNameBytes),
                              "\"; a text of 1 to 255 bytes without '/' is accepted"));
  }
  return text;
}

// What a commit or load is about, and the calls on its handles, which last as long.
class Gathered {
 public:
  // Throws what enter() does; CLOSED names what was destroyed.
  explicit Gathered(CheckpointObject& object) {
    for (const auto& added : object.collections) collections_.emplace_back(added);
    for (const auto& added : object.layers) layers_.emplace_back(added);
    for (const auto& added : object.parameters) parameters_.emplace_back(added);
  }

  checkpoint::Contents to_save(const CheckpointObject& object) {
    checkpoint::Contents contents;
    for (auto& collection : collections_) {
      contents.collections.push_back(
          checkpoint::contents_to_save(collection.use->state(), collection.name));
    }
    add_dense(contents);
    for (const auto& [name, tensor] : object.tensors) {
      // Saving only reads.
      contents.items.push_back(
          {.kind = checkpoint::ItemKind::kHostTensor,
           .name = name,
           .description = {},
           .tensors = {{.name = "tensor",
                        .dtype = tensor.dtype,
                        .shape = tensor.shape,
                        .data = const_cast<std::byte*>(tensor.bytes.data())}}});
    }
    return contents;
  }

  checkpoint::Contents to_load() {
    checkpoint::Contents contents;
    for (auto& collection : collections_) {
      contents.collections.push_back(
          checkpoint::contents_to_load(collection.use->state(), collection.name));
    }
    add_dense(contents);
    return contents;
  }

  void begin_filling() noexcept {
    for (auto& collection : collections_) collection.use->collection->set_filled_in_part(true);
  }
  void apply(const checkpoint::Contents& loaded) noexcept {
    for (size_t c = 0; auto& collection : collections_) {
      checkpoint::apply_loaded(collection.use->state(), loaded.collections[c++]);
    }
    for (checkpoint::LayersState& state : states_) state.apply();
  }

 private:
  template <class Type>
  struct Entered {
    explicit Entered(const Added<Type>& added)
        : name(added.name), use(ticket_of_open(added), Access::kExclusive) {}

    static uint64_t ticket_of_open(const Added<Type>& added) {
      try {
        enter(added.handle, Access::kShared);
      } catch (const core::Error& error) {
        core::fail(error.status(), core::sentence("\"", added.name,
                                                  "\", which was added to this"
                                                  " checkpoint: ",
                                                  error.sentence()));
      }
      return detail::ticket_of(added.handle);
    }

    std::string name;
    Use<Type> use;
  };

  void add_dense(checkpoint::Contents& contents) {
    for (auto& layers : layers_) {
      states_.emplace_back(*layers.use);
      contents.items.push_back({.kind = checkpoint::ItemKind::kLayers,
                                .name = layers.name,
                                .description = checkpoint::describe_layers(*layers.use),
                                .tensors = states_.back().tensors()});
    }
    for (auto& parameters : parameters_) {
      checkpoint::ItemContents& item = contents.items.emplace_back(checkpoint::ItemContents{
          .kind = checkpoint::ItemKind::kParameters, .name = parameters.name});
      for (const dense::Ddp::Parameter& parameter : parameters.use->ddp.parameters()) {
        item.tensors.push_back({.name = parameter.name,
                                .dtype = SHARDREC_FLOAT32,
                                .shape = parameter.shape,
                                .data = std::as_writable_bytes(parameter.values).data()});
      }
    }
  }

  // Uses do not move.
  std::list<Entered<shardrec_collection>> collections_;
  std::list<Entered<shardrec_mlp>> layers_;
  std::list<Entered<shardrec_ddp>> parameters_;
  std::list<checkpoint::LayersState> states_;
};

// Runs the body of a collective call.
template <class Body>
void collective(const char* name, shardrec_checkpoint* handle, Body body) {
  const auto use = enter(handle, Access::kExclusive);
  use->membership->require_open();
  comm::tell_shortage(use->membership->communicator(), name, [&] { body(*use); });
}

// Null for NULL. Asked for where ranks agree: one that got no good handle must not leave the others
// waiting.
std::shared_ptr<core::Control> shared_control(shardrec_control* handle) {
  return handle == nullptr ? nullptr : enter(handle, Access::kShared).share();
}

comm::Operation preparing(const char* name) {
  return {.name = name, .kind = 1, .patience = comm::Patience::kSetup};
}

void require_any(const CheckpointObject& object, bool tensors_count) {
  const bool any = !object.collections.empty() || !object.layers.empty() ||
                   !object.parameters.empty() || (tensors_count && !object.tensors.empty());
  if (!any) core::fail(SHARDREC_INVALID_STATE, "nothing was added to this checkpoint");
}

}  // namespace

const checkpoint::Opened& CheckpointObject::require_opened() const {
  if (!opened) {
    core::fail(SHARDREC_INVALID_STATE,
               "no checkpoint is open: call shardrec_checkpoint_open first");
  }
  return *opened;
}

}  // namespace shardrec::capi

using namespace shardrec;  // NOLINT(google-build-using-namespace): the C functions live outside
using namespace shardrec::capi;  // NOLINT(google-build-using-namespace)

shardrec_status shardrec_checkpoint_create(shardrec_comm* comm, const char* directory,
                                           const shardrec_options* options,
                                           shardrec_checkpoint** out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(comm, Access::kShared);
    use->membership->require_open();
    std::string path(require_text(directory, "directory"));
    if (path.empty()) {
      core::fail(SHARDREC_INVALID_ARGUMENT, "directory is empty; a name is expected");
    }
    const Options values = read_options(options, SHARDREC_OPTIONS_CHECKPOINT);
    create(out, std::make_shared<CheckpointObject>(use->membership, std::move(path),
                                                   values.i64(SHARDREC_OPTION_KEEP_LAST)));
  });
}

void shardrec_checkpoint_destroy(shardrec_checkpoint** checkpoint) { destroy(checkpoint); }

shardrec_status shardrec_checkpoint_add_collection(shardrec_checkpoint* checkpoint,
                                                   const char* name,
                                                   shardrec_collection* collection) {
  return guard([&] {
    const auto use = enter(checkpoint, Access::kExclusive);
    std::string text = require_name(name, true);
    require_free_name(*use, text);
    if (enter(collection, Access::kShared)->membership != use->membership) {
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence("collection \"", text,
                                "\" was made on another communicator than the"
                                " checkpoint; the same one, or a mesh of it, is accepted"));
    }
    use->collections.push_back({std::move(text), collection});
  });
}

shardrec_status shardrec_checkpoint_add_mlp(shardrec_checkpoint* checkpoint, const char* name,
                                            shardrec_mlp* mlp) {
  return guard([&] {
    const auto use = enter(checkpoint, Access::kExclusive);
    std::string text = require_name(name, false);
    require_free_name(*use, text);
    enter(mlp, Access::kShared);
    use->layers.push_back({std::move(text), mlp});
  });
}

shardrec_status shardrec_checkpoint_add_ddp(shardrec_checkpoint* checkpoint, const char* name,
                                            shardrec_ddp* ddp) {
  return guard([&] {
    const auto use = enter(checkpoint, Access::kExclusive);
    std::string text = require_name(name, false);
    require_free_name(*use, text);
    enter(ddp, Access::kShared);
    use->parameters.push_back({std::move(text), ddp});
  });
}

shardrec_status shardrec_checkpoint_set_tensor(shardrec_checkpoint* checkpoint, const char* name,
                                               const shardrec_tensor* tensor) {
  return guard([&] {
    const auto use = enter(checkpoint, Access::kExclusive);
    std::string text = require_name(name, false);
    if (tensor == nullptr) {
      if (use->tensors.erase(text) == 0) {
        core::fail(SHARDREC_NOT_FOUND, core::sentence("no tensor \"", text, "\" was set"));
      }
      return;
    }
    const core::FlatView view = core::flat_view(tensor, "tensor");
    if (use->tensors.count(text) == 0) require_free_name(*use, text);
    HostTensor copy{.dtype = static_cast<shardrec_dtype>(view.dtype),
                    .shape = {tensor->shape, tensor->shape + tensor->ndim}};
    const auto* bytes = static_cast<const std::byte*>(view.data);
    const size_t size = static_cast<size_t>(view.size) * core::dtype_size(view.dtype);
    if (size != 0) copy.bytes.assign(bytes, bytes + size);
    use->tensors.insert_or_assign(std::move(text), std::move(copy));
  });
}

shardrec_status shardrec_checkpoint_commit(shardrec_checkpoint* checkpoint, int64_t step,
                                           shardrec_control* control) {
  return guard([&] {
    collective("commit", checkpoint, [&](CheckpointObject& object) {
      const checkpoint::Group group = object.channels.group();
      std::shared_ptr<core::Control> progress;
      std::optional<Gathered> gathered;
      checkpoint::Contents contents;
      comm::agree(group.collectives, preparing("commit"), [&] {
        progress = shared_control(control);
        if (step < 0) refuse_value("step", step, "0 or more");
        require_any(object, true);
        gathered.emplace(object);
        contents = gathered->to_save(object);
      });
      checkpoint::commit_step(group, object.directory, step, object.keep, contents, object.lineage,
                              progress.get());
    });
  });
}

shardrec_status shardrec_checkpoint_open(shardrec_checkpoint* checkpoint, int64_t step) {
  return guard([&] {
    collective("open", checkpoint, [&](CheckpointObject& object) {
      const checkpoint::Group group = object.channels.group();
      comm::agree(group.collectives, preparing("open"), [&] {
        if (step < -1) refuse_value("step", step, "-1 for the newest, 0 or more");
      });
      checkpoint::Lineage lineage;
      object.opened = checkpoint::open_step(group, object.directory, step, lineage);
      object.lineage = std::move(lineage);
    });
  });
}

shardrec_status shardrec_checkpoint_load(shardrec_checkpoint* checkpoint,
                                         shardrec_control* control) {
  return guard([&] {
    collective("load", checkpoint, [&](CheckpointObject& object) {
      const checkpoint::Group group = object.channels.group();
      std::shared_ptr<core::Control> progress;
      std::optional<Gathered> gathered;
      checkpoint::Contents contents;
      comm::agree(group.collectives, preparing("load"), [&] {
        progress = shared_control(control);
        (void)object.require_opened();
        require_any(object, false);
        gathered.emplace(object);
        contents = gathered->to_load();
      });
      checkpoint::load(group, *object.opened, contents, progress.get(),
                       [&] { gathered->begin_filling(); });
      gathered->apply(contents);
    });
  });
}

shardrec_status shardrec_checkpoint_verify(shardrec_checkpoint* checkpoint,
                                           shardrec_control* control) {
  return guard([&] {
    collective("verify", checkpoint, [&](CheckpointObject& object) {
      const checkpoint::Group group = object.channels.group();
      std::shared_ptr<core::Control> progress;
      comm::agree(group.collectives, preparing("verify"), [&] {
        progress = shared_control(control);
        (void)object.require_opened();
      });
      checkpoint::verify(group, *object.opened, progress.get());
    });
  });
}
