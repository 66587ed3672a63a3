#include "shardrec/checkpoint.h"

#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/gathering.h"
#include "checkpoint_object.h"
#include "comm/collective/agree.h"
#include "control_object.h"
#include "guard.h"

namespace shardrec::capi {
namespace {

std::string require_name(const char* name, checkpoint::EmptyName empty) {
  return checkpoint::checked_name(require_text(name, "name"), empty);
}

// Adds what check() accepts, under a name that is free; leaves all as it was where it throws.
template <class Type, class Check>
void add(CheckpointObject& object, std::vector<Added<Type>>& added, std::string name, Type* handle,
         const Check& check) {
  object.names.require_free(name);
  check();
  added.reserve(added.size() + 1);
  object.names.take(name);
  added.push_back({std::move(name), handle});
}

// The calls on the handles that were added, which last as long as a commit or load, and what they
// lead to, gathered.
class Entered {
 public:
  // Throws what enter() does; CLOSED names what was destroyed.
  explicit Entered(const CheckpointObject& object) {
    for (const auto& added : object.collections) {
      gathering.add(added.name, use(collections_, added)->state());
    }
    for (const auto& added : object.layers) gathering.add(added.name, *use(layers_, added));
    for (const auto& added : object.parameters) {
      gathering.add(added.name, use(parameters_, added)->ddp);
    }
  }

  checkpoint::Gathering gathering;

 private:
  template <class Type>
  static Use<Type>& use(std::list<Use<Type>>& uses, const Added<Type>& added) {
    try {
      enter(added.handle, Access::kShared);
    } catch (const core::Error& error) {
      core::fail(error.status(), core::sentence("\"", added.name,
                                                "\", which was added to this"
                                                " checkpoint: ",
                                                error.sentence()));
    }
    return uses.emplace_back(detail::ticket_of(added.handle), Access::kExclusive);
  }

  // Uses do not move.
  std::list<Use<shardrec_collection>> collections_;
  std::list<Use<shardrec_mlp>> layers_;
  std::list<Use<shardrec_ddp>> parameters_;
};

// Runs the body of a collective call.
template <class Body>
void collective(const char* name, shardrec_checkpoint* handle, Body body) {
  const auto use = enter(handle, Access::kExclusive);
  use->membership->require_open();
  comm::tell_shortage(use->membership->communicator(), name, [&] { body(*use); });
}

// The operation in which the ranks agree on their arguments. What a rank is given is read there: one
// that got no good handle must not leave the others waiting.
comm::Operation preparing(const char* name) {
  return {.name = name, .kind = 1, .deadline_kind = comm::DeadlineKind::kSetup};
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
    const std::string text = require_name(name, checkpoint::EmptyName::kAccepted);
    add(*use, use->collections, text, collection, [&] {
      if (enter(collection, Access::kShared)->membership == use->membership) return;
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence("collection \"", text,
                                "\" was made on another communicator than the"
                                " checkpoint; the same one, or a mesh of it, is accepted"));
    });
  });
}

shardrec_status shardrec_checkpoint_add_mlp(shardrec_checkpoint* checkpoint, const char* name,
                                            shardrec_mlp* mlp) {
  return guard([&] {
    const auto use = enter(checkpoint, Access::kExclusive);
    add(*use, use->layers, require_name(name, checkpoint::EmptyName::kRefused), mlp,
        [&] { enter(mlp, Access::kShared); });
  });
}

shardrec_status shardrec_checkpoint_add_ddp(shardrec_checkpoint* checkpoint, const char* name,
                                            shardrec_ddp* ddp) {
  return guard([&] {
    const auto use = enter(checkpoint, Access::kExclusive);
    add(*use, use->parameters, require_name(name, checkpoint::EmptyName::kRefused), ddp,
        [&] { enter(ddp, Access::kShared); });
  });
}

shardrec_status shardrec_checkpoint_set_tensor(shardrec_checkpoint* checkpoint, const char* name,
                                               const shardrec_tensor* tensor) {
  return guard([&] {
    const auto use = enter(checkpoint, Access::kExclusive);
    const std::string text = require_name(name, checkpoint::EmptyName::kRefused);
    if (tensor == nullptr) {
      use->tensors.erase(text, use->names);
    } else {
      use->tensors.set(text, tensor, use->names);
    }
  });
}

shardrec_status shardrec_checkpoint_commit(shardrec_checkpoint* checkpoint, int64_t step,
                                           shardrec_control* control) {
  return guard([&] {
    collective("commit", checkpoint, [&](CheckpointObject& object) {
      const checkpoint::Group group = object.channels.group();
      std::shared_ptr<core::Control> progress;
      std::optional<Entered> added;
      checkpoint::Contents contents;
      comm::agree(group.collectives, preparing("commit"), [&] {
        progress = shared_control(control);
        if (step < 0) refuse_value("step", step, "0 or more");
        added.emplace(object);
        contents = added->gathering.to_save(object.tensors);
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
      std::optional<Entered> added;
      checkpoint::Contents contents;
      comm::agree(group.collectives, preparing("load"), [&] {
        progress = shared_control(control);
        (void)object.require_opened();
        added.emplace(object);
        contents = added->gathering.to_load();
      });
      checkpoint::load(group, *object.opened, contents, progress.get(),
                       [&] { added->gathering.begin_filling(); });
      added->gathering.apply(contents);
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
