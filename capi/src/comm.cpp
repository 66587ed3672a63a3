#include "shardrec/comm.h"

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "comm/engine_list.h"
#include "comm/engines/engine.h"
#include "comm/nccl/plugin.h"
#include "guard.h"
#include "objects/comm_object.h"
#include "objects/rendezvous_object.h"
#include "options.h"

namespace shardrec::capi {
namespace {

using core::fail;
using core::sentence;

constexpr double kMostSeconds = 1e9;

struct Property {
  shardrec_comm_property key;
  const char* name;
  double comm::Deadlines::* field;
};

const Property& find_property(shardrec_comm_property key) {
  static constexpr std::array<Property, 3> kProperties = {{
      {SHARDREC_COMM_STEP_SECONDS, "SHARDREC_COMM_STEP_SECONDS", &comm::Deadlines::step},
      {SHARDREC_COMM_SETUP_SECONDS, "SHARDREC_COMM_SETUP_SECONDS", &comm::Deadlines::setup},
      {SHARDREC_COMM_WARN_SECONDS, "SHARDREC_COMM_WARN_SECONDS", &comm::Deadlines::warn},
  }};
  for (const Property& property : kProperties) {
    if (property.key == key) return property;
  }
  refuse_value("the property", int64_t{key},
               "SHARDREC_COMM_STEP_SECONDS, SHARDREC_COMM_SETUP_SECONDS, "
               "SHARDREC_COMM_WARN_SECONDS or SHARDREC_COMM_NCCL");
}

void set_bodies(comm::Communicator& communicator, double value) {
  if (value != 0 && value != 1) refuse_value("SHARDREC_COMM_NCCL", value, "0 or 1");
  if (value != 0) (void)comm::nccl::table();  // what is missing is said at once
  communicator.set_device_bodies(value != 0 ? comm::DeviceBodies::kNccl
                                            : comm::DeviceBodies::kHost);
}

std::string engine_name(shardrec_engine value) {
  const comm::EngineRow* engine = comm::find_engine(value);
  if (engine == nullptr) {
    refuse_value("the engine", int64_t{value},
                 comm::process_engine_names(" or ", &comm::EngineRow::constant));
  }
  return std::string(engine->name);
}

comm::EngineOptions engine_options(const Options& options, std::string engine) {
  return {.engine = std::move(engine),
          .seconds = options.f64(SHARDREC_OPTION_COMM_SETUP_SECONDS),
          .rank_zero_seconds = options.f64(SHARDREC_OPTION_RANK_ZERO_SECONDS),
          .interface = options.text(SHARDREC_OPTION_INTERFACE),
          .allow_plain_tcp = options.i64(SHARDREC_OPTION_ALLOW_PLAIN_TCP) == 1};
}

std::string chosen_engine(const Options& options) {
  const auto chosen = options.find_i64(SHARDREC_OPTION_ENGINE);
  return chosen ? engine_name(static_cast<shardrec_engine>(*chosen))
                : comm::engine_of_environment();
}

std::shared_ptr<comm::Communicator> connect_by_token(const comm::EngineOptions& options,
                                                     std::string_view text, int rank, int size) {
  const auto token = comm::rendezvous::parse_token(text);
  return comm::connect(options, token, rank, size, server_of(token));
}

}  // namespace

Comm::Comm(std::shared_ptr<comm::Communicator> communicator)
    : Comm(std::make_shared<Membership>(std::move(communicator))) {}

Comm::Comm(std::shared_ptr<Membership> its_membership)
    : membership(std::move(its_membership)),
      collectives(membership->communicator().open_channel(comm::Purpose::kControl),
                  membership->communicator().rank(), membership->communicator().size()),
      threads(membership->communicator().default_threads()) {}

void Comm::closing() noexcept {
  if (!membership->closed()) membership->disconnect();
}

}  // namespace shardrec::capi

using namespace shardrec::capi;
namespace core = shardrec::core;
namespace comm_ns = shardrec::comm;

shardrec_status shardrec_local_create(int32_t ranks, int32_t ranks_per_node,
                                      const shardrec_options* options, shardrec_local** out) {
  return guard([&] {
    require_out(out, "out");
    refuse_options(options, "groups of threads");
    if (ranks < 1 || ranks > 1024) refuse_value("ranks", int64_t{ranks}, "1 to 1024");
    if (ranks_per_node < 1 || ranks_per_node > ranks) {
      refuse_value("ranks_per_node", int64_t{ranks_per_node}, core::sentence("1 to ", ranks));
    }
    create(out, comm_ns::local::make_group(ranks, ranks_per_node));
  });
}

void shardrec_local_destroy(shardrec_local** group) { destroy(group); }

shardrec_status shardrec_comm_create_local(shardrec_local* group, int32_t rank,
                                           const shardrec_options* options, shardrec_comm** out) {
  return guard([&] {
    require_out(out, "out");
    refuse_options(options, "ranks that are threads");
    const auto use = enter(group, Access::kShared);
    const int size = comm_ns::local::group_size(*use);
    if (rank < 0 || rank >= size) {
      refuse_value("rank", int64_t{rank}, core::sentence("0 to ", size - 1));
    }
    Reserved<shardrec_comm> reserved;  // before the rank is taken
    reserved.publish(out, std::make_shared<Comm>(comm_ns::local::join(use.share(), rank)));
  });
}

shardrec_status shardrec_comm_create(shardrec_engine engine, int32_t rank, int32_t size,
                                     const char* token, const shardrec_options* options,
                                     shardrec_comm** out) {
  return guard([&] {
    require_out(out, "out");
    const comm_ns::EngineOptions how =
        engine_options(read_options(options, SHARDREC_OPTIONS_COMM), engine_name(engine));
    const bool launched = comm_ns::is_launched(how.engine, token != nullptr);
    if (launched && token != nullptr) {
      core::fail(SHARDREC_INVALID_ARGUMENT,
                 core::sentence("token is not null; ranks of ", how.engine,
                                " are told by its launcher who they are"));
    }
    Reserved<shardrec_comm> reserved;
    auto communicator = launched ? comm_ns::connect_as_launched(how, rank, size)
                                 : connect_by_token(how, require_text(token, "token"), rank, size);
    reserved.publish(out, std::make_shared<Comm>(std::move(communicator)));
  });
}

shardrec_status shardrec_comm_create_from_env(const shardrec_options* options,
                                              shardrec_comm** out) {
  return guard([&] {
    require_out(out, "out");
    const Options given = read_options(options, SHARDREC_OPTIONS_COMM);
    Reserved<shardrec_comm> reserved;
    reserved.publish(out, std::make_shared<Comm>(comm_ns::connect_from_environment(
                              engine_options(given, chosen_engine(given)))));
  });
}

void shardrec_comm_destroy(shardrec_comm** comm) { destroy(comm); }

shardrec_status shardrec_comm_rank(const shardrec_comm* comm, int32_t* out) {
  return guard([&] {
    const auto use = enter(comm, Access::kShared);
    require_out(out, "out");
    *out = use->membership->communicator().rank();
  });
}

shardrec_status shardrec_comm_size(const shardrec_comm* comm, int32_t* out) {
  return guard([&] {
    const auto use = enter(comm, Access::kShared);
    require_out(out, "out");
    *out = use->membership->communicator().size();
  });
}

shardrec_status shardrec_comm_set_f64(shardrec_comm* comm, shardrec_comm_property key,
                                      double value) {
  return guard([&] {
    const auto use = enter(comm, Access::kShared);
    if (key == SHARDREC_COMM_NCCL) {
      set_bodies(use->membership->communicator(), value);
      return;
    }
    const Property& property = find_property(key);
    if (!(value > 0 && value <= kMostSeconds)) {
      refuse_value(property.name, value, "a number of seconds above 0, at most 1e9,");
    }
    use->membership->set_deadline(property.field, value);
  });
}

shardrec_status shardrec_comm_get_f64(const shardrec_comm* comm, shardrec_comm_property key,
                                      double* out) {
  return guard([&] {
    const auto use = enter(comm, Access::kShared);
    if (key == SHARDREC_COMM_NCCL) {
      require_out(out, "out");
      *out =
          use->membership->communicator().device_bodies() == comm_ns::DeviceBodies::kNccl ? 1 : 0;
      return;
    }
    const Property& property = find_property(key);
    require_out(out, "out");
    *out = use->membership->communicator().deadlines().*property.field;
  });
}

shardrec_status shardrec_comm_status(const shardrec_comm* comm) {
  return guard([&] {
    const auto use = enter(comm, Access::kShared);
    use->membership->require_open();
    use->membership->communicator().check();
  });
}

shardrec_status shardrec_comm_operations_json(const shardrec_comm* comm, char** out_text) {
  return guard([&] {
    const auto use = enter(comm, Access::kShared);
    require_out(out_text, "out_text");
    *out_text = copy_text(use->membership->recorder().json());
  });
}

shardrec_status shardrec_comm_barrier(shardrec_comm* comm) {
  return guard([&] {
    const auto use = enter(comm, Access::kExclusive);
    collective_call(use, "barrier",
                    [&] { use->collectives.barrier(operation_of(CommCall::kBarrier, "barrier")); });
  });
}

shardrec_status shardrec_comm_split(shardrec_comm* comm, int32_t color, int32_t key,
                                    shardrec_comm** out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(comm, Access::kExclusive);
    Reserved<shardrec_comm> reserved;
    collective_call(use, "split", [&] {
      // Splits have a channel of their own, on which ranks in another call would not be heard of.
      auto split = operation_of(CommCall::kSplit, "split");
      split.deadline_kind = comm_ns::DeadlineKind::kSetup;
      use->collectives.barrier(split);
      const auto membership = use->membership->split(use->membership->communicator(), color, key);
      if (membership == nullptr) {
        *out = nullptr;
        return;
      }
      auto object = std::make_shared<Comm>(membership);
      reserved.publish(out, std::move(object));
    });
  });
}

shardrec_status shardrec_comm_close(shardrec_comm* comm) {
  return guard([&] {
    const auto use = enter(comm, Access::kExclusive);
    collective_call(use, "close", [&] {
      auto close = operation_of(CommCall::kClose, "close");
      close.last = true;
      use->collectives.barrier(close);
      use->membership->close();
    });
  });
}

shardrec_status shardrec_comm_abort(shardrec_comm* comm, const char* reason) {
  return guard([&] {
    const auto use = enter(comm, Access::kShared);
    const std::string text(reason == nullptr ? "" : require_text(reason, "reason"));
    use->membership->require_open();
    use->membership->communicator().abort(text);
  });
}
