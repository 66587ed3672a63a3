#include "shardrec/checkpoint.h"

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "guard.h"
#include "objects/checkpoint_object.h"
#include "objects/control_object.h"

namespace shardrec::capi {
namespace {

std::string require_name(const char* name, checkpoint::EmptyName empty) {
  return checkpoint::checked_name(require_text(name, "name"), empty);
}

// Adds what check() accepts, under a name that is free; leaves all as it was where it throws.
template <class Type, class Check>
void add(CheckpointObject& object, std::vector<Added<Type>>& added, std::string name, Type* handle,
         const Check& check) {
  object.session.names().require_free(name);
  check();
  added.reserve(added.size() + 1);
  object.session.names().take(name);
  added.push_back({std::move(name), handle});
}

// The calls on the handles that were added, which last as long as a commit or load, and what they
// lead to, gathered.
class Entered {
 public:
  // Throws what enter() does; CLOSED names what was destroyed.
  explicit Entered(const CheckpointObject& object) {
    for (const auto& added : object.collections) {
      gathering.add(added.name, *use(collections_, added)->tables);
    }
    for (const auto& added : object.sharded) {
      gathering.add(added.name, use(sharded_, added)->fsdp);
    }
    for (const auto& added : object.layers) {
      gathering.add(added.name, *use(layers_, added), object.membership->communicator());
    }
    for (const auto& added : object.parameters) {
      gathering.add(added.name, use(parameters_, added)->ddp);
    }
  }

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
  std::list<Use<shardrec_fsdp>> sharded_;

 public:
  checkpoint::Gathering gathering;  // ends before the uses
};

// What this rank brings to a commit or load: what was added, entered until the call ends.
checkpoint::Request enter_added(const CheckpointObject& object, shardrec_control* control,
                                std::optional<Entered>& added) {
  checkpoint::Request request{.control = shared_control(control)};
  added.emplace(object);
  request.gathering = &added->gathering;
  return request;
}

// Runs the body of a collective call.
template <class Body>
void collective(const char* name, shardrec_checkpoint* handle, Body body) {
  const auto use = enter(handle, Access::kExclusive);
  use->membership->require_open();
  comm::tell_shortage(use->membership->communicator(), name, [&] { body(*use); });
}

}  // namespace
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
    const checkpoint::SessionOptions session{
        .keep = values.i64(SHARDREC_OPTION_KEEP_LAST),
        .most_deltas = values.i64(SHARDREC_OPTION_MOST_DELTAS),
        .delta_states = values.i64(SHARDREC_OPTION_DELTA_STATES) != 0
                            ? checkpoint::DeltaStates::kWritten
                            : checkpoint::DeltaStates::kLeftOut};
    create(out, std::make_shared<CheckpointObject>(use->membership, std::move(path), session));
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

shardrec_status shardrec_checkpoint_add_fsdp(shardrec_checkpoint* checkpoint, const char* name,
                                             shardrec_fsdp* fsdp) {
  return guard([&] {
    const auto use = enter(checkpoint, Access::kExclusive);
    const std::string text = require_name(name, checkpoint::EmptyName::kRefused);
    add(*use, use->sharded, text, fsdp, [&] {
      if (enter(fsdp, Access::kShared)->membership == use->membership) return;
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence("sharded parameters \"", text,
                                "\" were made on another communicator than the"
                                " checkpoint; the same one is accepted"));
    });
  });
}

shardrec_status shardrec_checkpoint_set_tensor(shardrec_checkpoint* checkpoint, const char* name,
                                               const shardrec_tensor* tensor) {
  return guard([&] {
    const auto use = enter(checkpoint, Access::kExclusive);
    const std::string text = require_name(name, checkpoint::EmptyName::kRefused);
    if (tensor == nullptr) {
      use->session.tensors().erase(text, use->session.names());
    } else {
      use->session.tensors().set(text, tensor, use->session.names());
    }
  });
}

shardrec_status shardrec_checkpoint_commit(shardrec_checkpoint* checkpoint, int64_t step,
                                           shardrec_control* control) {
  return guard([&] {
    collective("commit", checkpoint, [&](CheckpointObject& object) {
      std::optional<Entered> added;
      object.session.commit(step, [&] { return enter_added(object, control, added); });
    });
  });
}

shardrec_status shardrec_checkpoint_commit_delta(shardrec_checkpoint* checkpoint, int64_t step,
                                                 shardrec_control* control, int32_t* out_delta) {
  return guard([&] {
    collective("commit_delta", checkpoint, [&](CheckpointObject& object) {
      std::optional<Entered> added;
      const bool delta = object.session.commit_delta(step, [&] {
        require_out(out_delta, "out_delta");
        return enter_added(object, control, added);
      });
      *out_delta = delta ? 1 : 0;
    });
  });
}

shardrec_status shardrec_checkpoint_commit_begin(shardrec_checkpoint* checkpoint, int64_t step,
                                                 shardrec_control* control) {
  return guard([&] {
    collective("commit_begin", checkpoint, [&](CheckpointObject& object) {
      std::optional<Entered> added;
      object.session.commit_begin(step, [&] { return enter_added(object, control, added); });
    });
  });
}

shardrec_status shardrec_checkpoint_commit_delta_begin(shardrec_checkpoint* checkpoint,
                                                       int64_t step, shardrec_control* control,
                                                       int32_t* out_delta) {
  return guard([&] {
    collective("commit_delta_begin", checkpoint, [&](CheckpointObject& object) {
      std::optional<Entered> added;
      const bool delta = object.session.commit_delta_begin(step, [&] {
        require_out(out_delta, "out_delta");
        return enter_added(object, control, added);
      });
      *out_delta = delta ? 1 : 0;
    });
  });
}

shardrec_status shardrec_checkpoint_commit_wait(shardrec_checkpoint* checkpoint, int32_t timeout_ms,
                                                int32_t* out_done) {
  return guard([&] {
    collective("commit_wait", checkpoint, [&](CheckpointObject& object) {
      const bool done =
          object.session.commit_wait(timeout_ms, [&] { require_out(out_done, "out_done"); });
      *out_done = done ? 1 : 0;
    });
  });
}

shardrec_status shardrec_checkpoint_open(shardrec_checkpoint* checkpoint, int64_t step) {
  return guard([&] {
    collective("open", checkpoint, [&](CheckpointObject& object) { object.session.open(step); });
  });
}

shardrec_status shardrec_checkpoint_load(shardrec_checkpoint* checkpoint,
                                         shardrec_control* control) {
  return guard([&] {
    collective("load", checkpoint, [&](CheckpointObject& object) {
      std::optional<Entered> added;
      object.session.load([&] { return enter_added(object, control, added); });
    });
  });
}

shardrec_status shardrec_checkpoint_load_partial(shardrec_checkpoint* checkpoint, const char* json,
                                                 shardrec_control* control, char** out_text) {
  return guard([&] {
    collective("load_partial", checkpoint, [&](CheckpointObject& object) {
      std::optional<Entered> added;
      std::unique_ptr<char, decltype(&shardrec_text_free)> report(nullptr, shardrec_text_free);
      object.session.load_partial(
          [&] {
            require_out(out_text, "out_text");
            const std::string_view rules = require_text(json, "json");
            checkpoint::Request request = enter_added(object, control, added);
            request.rules = rules;
            return request;
          },
          [&](const std::string& written) { report.reset(copy_text(written)); });
      *out_text = report.release();
    });
  });
}

shardrec_status shardrec_checkpoint_verify(shardrec_checkpoint* checkpoint,
                                           shardrec_control* control) {
  return guard([&] {
    collective("verify", checkpoint, [&](CheckpointObject& object) {
      object.session.verify([&] { return shared_control(control); });
    });
  });
}
