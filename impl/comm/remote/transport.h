// An engine between processes, out of a plug-in (transport_plugin.h): its Carrier, and its
// StateBroadcast if the plug-in has one. A plug-in is loaded when its engine is first used
// (core/plugin.h) and never unloaded.
//
// Thread rule: any thread may call anything. The transport is closed when the carrier, the broadcast
// and all requests are destroyed; this takes up to a second.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/engine_list.h"
#include "comm/remote/link.h"

namespace shardrec::comm::remote {

// engine: the name of one that is a plug-in (engine_list.h). Throws UNSUPPORTED: another name, the
// plug-in is missing (names the files looked for and the package to install) or speaks another ABI.
void load_transport(const std::string& engine);
bool transport_available(const std::string& engine) noexcept;
// Whether the engine's plug-in is installed, loaded or not.
bool transport_installed(const EngineRow& engine);
// Checks the environment variables that the engine's plug-in reads. Throws INVALID_ARGUMENT, and as
// load_transport() does.
void check_transport_settings(const std::string& engine);
// Whether a launcher says who the ranks are, so that neither a store nor a rank is needed. Throws
// as load_transport() does.
bool transport_is_launched(const std::string& engine);

// What the ranks share while they meet. Both throw core::Error; get waits until somebody has set
// the key, and throws TIMEOUT. Any thread.
struct TransportStore {
  std::function<void(const std::string& key, ConstBytes value)> set;
  std::function<std::vector<std::byte>(const std::string& key, double seconds)> get;
};

struct TransportJob {
  std::string engine;
  int rank = -1;  // -1, for a launched engine: as its launcher says
  int size = -1;
  double seconds = 1800;
  double silence = 0;     // seconds until a host that is cut off counts as gone; 0: no such limit
  std::string address{};  // to bind to, in numbers; empty: the engine's choice
  const TransportStore* store = nullptr;  // where the engine needs one; used until this returns
};

struct Transport {
  int rank = 0;
  int size = 1;
  std::shared_ptr<Carrier> carrier;
  std::shared_ptr<StateBroadcast> state_broadcast;  // null: the engine has none
};

// Collective: returns when this rank can send to every other one. Throws UNSUPPORTED (the plug-in
// is missing, or cannot be used here: says why), PEER_FAILED, TIMEOUT, OUT_OF_MEMORY, or what the
// store threw.
Transport open_transport(const TransportJob& job);

}  // namespace shardrec::comm::remote
