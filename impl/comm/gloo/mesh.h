// How ranks find each other: every rank opens one listening socket per peer, puts their addresses
// into the job's store, and connects to the others'. A connection says nothing of who made it, so
// with each address goes a random number, which the peer that read the store sends first
// (Transport::greet).
#pragma once

#include <gloo/transport/device.h>
#include <gloo/transport/tcp/context.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/plugin/plugin_side.h"
#include "comm/plugin/transport_plugin.h"

namespace shardrec::comm::gloo_plugin {

using Secret = std::array<uint64_t, 2>;

// Which ranks to connect to, and under which key of the job's store the addresses are. Two meshes of
// one job have different keys.
struct Peering {
  std::string key = "gloo/";
  std::vector<bool> with{};  // by rank; this rank's own element is ignored
};

struct Mesh {
  std::shared_ptr<gloo::transport::Device> device;
  std::shared_ptr<gloo::transport::tcp::Context> context;  // no pair: not a peer
  std::vector<Secret> expected;                            // by peer: what it sends first
  std::vector<Secret> presented;                           // by peer: what this rank sends it
};

// Throws plugin::Failure. All of Gloo's work happens on a thread with signals blocked.
Mesh connect_mesh(const shardrec_transport_job& job, const Peering& peering,
                  plugin::Clock::time_point deadline);

// Throws plugin::Failure when the store says that the job has failed. Does not wait.
void check_job(const shardrec_transport_job& job);

// "[/build/file.cc:12] Connection closed" without the place in Gloo's source; valid as long as what
// was thrown. Needs no memory.
std::string_view message_of(const std::exception& thrown) noexcept;

}  // namespace shardrec::comm::gloo_plugin
