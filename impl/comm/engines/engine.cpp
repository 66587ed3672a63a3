#include "comm/engines/engine.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "comm/clock.h"
#include "comm/collective/processors.h"
#include "comm/engine_list.h"
#include "comm/nccl/plugin.h"
#include "comm/plugin/transport_plugin.h"
#include "comm/remote/clock_offset.h"
#include "comm/remote/link.h"
#include "comm/remote/transport.h"
#include "comm/rendezvous/client/rendezvous.h"
#include "comm/rendezvous/net/interfaces.h"
#include "comm/rendezvous/protocol/layout.h"
#include "core/error.h"
#include "core/trace.h"

namespace shardrec::comm {
namespace {

// Keeps what a communicator's broadcast needs. The server outlives the client of its own process.
struct Kept {
  std::shared_ptr<rendezvous::Server> server;
  std::shared_ptr<rendezvous::Client> client;
};

// Of ranks whose clocks have been compared, for traces, and that know who shares their processors.
std::shared_ptr<Communicator> make(const remote::RankLayout& layout,
                                   const std::shared_ptr<remote::Carrier>& carrier,
                                   const std::shared_ptr<remote::StateBroadcast>& state_broadcast,
                                   const EngineOptions& options) {
  auto communicator = remote::make_communicator(layout, carrier, state_broadcast);
  core::note_clock(remote::measure_clock(*communicator, *carrier, {.seconds = options.seconds}));
  share_processors(*communicator, options.seconds);
  return communicator;
}

// Where this rank listens for the others. That the rendezvous can be reached from other machines
// says that they may take part.
std::string address_for(const EngineOptions& options, const rendezvous::Address& own) {
  if (options.interface.empty()) return own.host();
  const rendezvous::Address chosen = rendezvous::find_interface(options.interface);
  if (!chosen.is_loopback() && own.is_loopback() && !options.allow_plain_tcp) {
    core::fail(
        SHARDREC_INVALID_ARGUMENT,
        core::sentence("other machines can reach this rank at ", chosen.host(), " (interface ",
                       options.interface,
                       "), and what ranks send to each other is clear text; 127.0.0.1 (and a "
                       "tunnel), or SHARDREC_OPTION_ALLOW_PLAIN_TCP = 1 (in the environment "
                       "SHARDREC_ALLOW_PLAIN_TCP=1), is accepted"));
  }
  return chosen.host();
}

// Who fails while the connections are made does not know for what they are.
remote::Transport open_for_create(const remote::TransportJob& job) {
  try {
    return remote::open_transport(job);
  } catch (const core::Error& error) {
    if (!error.parts().operation.empty()) throw;
    core::ErrorParts parts = error.parts();
    parts.operation = "comm_create";
    core::fail(error.status(), error.sentence(), std::move(parts));
  }
}

// Of the server's limit, which says more of what it notices: with the time that a wait gives it to
// do so, the transport's comes a little later.
constexpr double kTransportSilence = 0.95;

std::shared_ptr<Communicator> over(rendezvous::Meeting meeting, const EngineOptions& options) {
  const auto kept = std::make_shared<Kept>(
      Kept{.server = std::move(meeting.server), .client = std::move(meeting.client)});
  rendezvous::Client& client = *kept->client;
  const remote::TransportStore store{
      .set =
          [&](const std::string& key, ConstBytes value) {
            client.set(key, value, after(Clock::now(), options.seconds));
          },
      .get = [&](const std::string& key,
                 double seconds) { return client.get(key, after(Clock::now(), seconds)); }};
  remote::Transport transport =
      open_for_create({.engine = options.engine,
                       .rank = meeting.layout.rank,
                       .size = meeting.layout.size,
                       .seconds = options.seconds,
                       .silence = kTransportSilence * client.silence_seconds(),
                       .address = address_for(options, client.local_address()),
                       .store = &store});
  std::shared_ptr<remote::StateBroadcast> state_broadcast = transport.state_broadcast;
  if (state_broadcast == nullptr)
    state_broadcast = std::shared_ptr<remote::StateBroadcast>(kept, kept->client.get());
  return make(meeting.layout, transport.carrier, state_broadcast, options);
}

// What each rank says of where it is. The plain bytes of one kind of machine: a job's processes
// run the same build.
struct Where {
  rendezvous::HostId host{};
  uint64_t process = 0;
};

// Before there is a communicator: its channels do not use the highest tag.
std::vector<rendezvous::Join> hear_where_all_are(const remote::Transport& transport,
                                                 double seconds) {
  constexpr uint32_t kTag = (uint32_t{1} << SHARDREC_TRANSPORT_TAG_BITS) - 1;
  const Clock::time_point deadline = after(Clock::now(), seconds);
  std::vector<Where> where(static_cast<size_t>(transport.size));
  Where& own = where[static_cast<size_t>(transport.rank)];
  own = {.host = rendezvous::this_host(), .process = rendezvous::this_process()};
  struct Pending {
    int peer;
    std::unique_ptr<remote::Request> request;
  };
  std::vector<Pending> pending;
  for (int peer = 0; peer < transport.size; ++peer) {
    if (peer == transport.rank) continue;
    pending.push_back(
        {peer,
         transport.carrier->receive(
             peer, kTag, std::as_writable_bytes(std::span(&where[static_cast<size_t>(peer)], 1)))});
    pending.push_back(
        {peer, transport.carrier->send(peer, kTag, std::as_bytes(std::span(&own, 1)))});
  }
  for (const Pending& each : pending) {
    const remote::Result result =
        each.request->wait(std::max(seconds_until(deadline, Clock::now()), 0.0));
    if (result.outcome == remote::Outcome::kDone) continue;
    const bool late = result.outcome == remote::Outcome::kTimeout;
    core::fail(late ? SHARDREC_TIMEOUT : SHARDREC_PEER_FAILED,
               core::sentence("rank ", each.peer, late ? " has not said" : " will not say",
                              " where it runs", result.text.empty() ? "" : ": ", result.text),
               {.rank = each.peer, .operation = "comm_create"});
  }
  std::vector<rendezvous::Join> all;
  for (size_t rank = 0; rank < where.size(); ++rank) {
    all.push_back({.rank = static_cast<int>(rank),
                   .size = transport.size,
                   .host = where[rank].host,
                   .process = where[rank].process});
  }
  return all;
}

// Ranks of an engine with a launcher.
std::shared_ptr<Communicator> launched_by(const EngineOptions& options, int rank, int size) {
  if (!options.interface.empty()) {
    core::fail(
        SHARDREC_INVALID_ARGUMENT,
        core::sentence("the interface is \"", options.interface, "\"; ranks of ", options.engine,
                       " use those that its launcher chooses, and an empty text is accepted"));
  }
  remote::Transport transport =
      open_for_create({.engine = options.engine, .seconds = options.seconds});
  const auto all = hear_where_all_are(transport, options.seconds);
  const remote::RankLayout layout{
      .rank = transport.rank,
      .size = transport.size,
      .ranks_per_node = rendezvous::ranks_per_node(all),
      .ranks_in_process = rendezvous::ranks_in_process(all)[static_cast<size_t>(transport.rank)]};
  auto made = make(layout, transport.carrier, transport.state_broadcast, options);
  if ((rank != -1 && rank != made->rank()) || (size != -1 && size != made->size())) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("rank ", rank, " of ", size,
                              " was asked for; the launcher made this process rank ", made->rank(),
                              " of ", made->size(), " (-1 takes what it says)"),
               {.rank = made->rank(), .value = rank});
  }
  return made;
}

// Did mpirun, or another launcher of an MPI, start this process?
bool is_started_by_mpi() noexcept {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(variable) != nullptr) return true;
  }
  return false;
}

DeviceBodies bodies_of(const std::string& engine) noexcept {
  const EngineRow* const row = find_process_engine(engine);
  return row == nullptr ? DeviceBodies::kHost : row->bodies;
}

// The engine that carries the messages of hosts. Of an engine that carries bodies alone: MPI or Gloo.
std::string host_engine(const std::string& engine, bool mpi) {
  if (bodies_of(engine) == DeviceBodies::kHost) return engine;
  (void)nccl::table();  // what is missing is said before anybody waits
  return mpi ? "mpi" : "gloo";
}

// Makes a communicator over the hosts' engine, and gives it the bodies of the engine that was asked for.
template <class Make>
std::shared_ptr<Communicator> with_bodies(EngineOptions options, bool mpi, Make make) {
  const DeviceBodies bodies = bodies_of(options.engine);
  options.engine = host_engine(options.engine, mpi);
  std::shared_ptr<Communicator> made = make(options);
  if (bodies != DeviceBodies::kHost) made->set_device_bodies(bodies);
  return made;
}

bool is_installed(const EngineRow& engine) {
  if (!engine.is_plugin()) return true;
  return engine.is_transport() ? remote::transport_installed(engine) : nccl::is_available();
}

// Throws UNSUPPORTED.
void load_engine(const EngineRow& engine) {
  if (engine.is_transport()) {
    remote::load_transport(std::string(engine.name));
  } else if (engine.is_plugin()) {
    remote::load_transport(host_engine(std::string(engine.name), is_started_by_mpi()));
  }
}

}  // namespace

std::vector<std::string_view> installed_engines() {
  std::vector<std::string_view> names;
  for (const EngineRow& engine : kEngines) {
    if (is_installed(engine)) names.push_back(engine.name);
  }
  return names;
}

std::string missing_engine(const std::string& name) {
  std::string names;
  for (const EngineRow& engine : kEngines) {
    core::append(names, core::sentence(names.empty() ? "" : ", ", engine.name));
    if (engine.name != name) continue;
    try {
      load_engine(engine);
      return {};
    } catch (const core::Error& error) {
      if (error.status() != SHARDREC_UNSUPPORTED) throw;
      return error.sentence();
    }
  }
  return core::sentence("there is no engine \"", name, "\"; there are ", names);
}

std::string engine_of_environment() {
  const char* named = std::getenv("SHARDREC_ENGINE");
  if (named == nullptr || *named == '\0') return EngineOptions{}.engine;
  if (find_process_engine(named) == nullptr) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("the environment variable SHARDREC_ENGINE is \"", named, "\"; ",
                              process_engine_names(" or "), " is accepted"));
  }
  return named;
}

void add_network_of_environment(EngineOptions& options) {
  const char* interface = std::getenv("SHARDREC_INTERFACE");
  if (options.interface.empty() && interface != nullptr && *interface != '\0') {
    if (!rendezvous::is_interface(interface)) {
      core::fail(
          SHARDREC_INVALID_ARGUMENT,
          "the environment variable SHARDREC_INTERFACE is no name of a network interface and no "
          "address; 1 to 64 printable characters without spaces are accepted");
    }
    options.interface = interface;
  }
  const char* allowed = std::getenv("SHARDREC_ALLOW_PLAIN_TCP");
  const std::string_view says = allowed == nullptr ? "" : allowed;
  if (!says.empty() && says != "0" && says != "1") {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("the environment variable SHARDREC_ALLOW_PLAIN_TCP is \"", says,
                              "\"; 0 or 1 is accepted"));
  }
  if (says == "1") options.allow_plain_tcp = true;
}

bool is_launched(const std::string& engine, bool by_token) {
  return remote::transport_is_launched(host_engine(engine, !by_token));
}

std::shared_ptr<Communicator> connect(const EngineOptions& options, const rendezvous::Token& token,
                                      int rank, int size,
                                      std::shared_ptr<rendezvous::Server> server) {
  return with_bodies(options, false, [&](const EngineOptions& hosts) {
    remote::load_transport(hosts.engine);  // a missing plug-in is said before anybody waits
    remote::check_transport_settings(hosts.engine);
    rendezvous::Meeting meeting = rendezvous::join(
        token, rank, size, {.seconds = hosts.seconds, .belief = {.has_started = true}});
    meeting.server = std::move(server);
    return over(std::move(meeting), hosts);
  });
}

std::shared_ptr<Communicator> connect_from_environment(EngineOptions options) {
  // Launchers of MPI set theirs for programs without MPI too.
  const bool by_variables = std::getenv("RANK") != nullptr && std::getenv("WORLD_SIZE") != nullptr;
  const bool mpi = is_started_by_mpi() && !by_variables;
  if (is_launched(options.engine, !mpi)) return connect_as_launched(options);
  add_network_of_environment(options);
  return with_bodies(std::move(options), mpi, [](const EngineOptions& hosts) {
    remote::check_transport_settings(hosts.engine);
    return over(rendezvous::from_environment(
                    {.seconds = hosts.seconds, .seconds_until_rank_zero = hosts.rank_zero_seconds}),
                hosts);
  });
}

std::shared_ptr<Communicator> connect_as_launched(const EngineOptions& options, int rank,
                                                  int size) {
  return with_bodies(options, true,
                     [&](const EngineOptions& hosts) { return launched_by(hosts, rank, size); });
}

}  // namespace shardrec::comm
