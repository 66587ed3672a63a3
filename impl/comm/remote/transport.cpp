#include "comm/remote/transport.h"

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "comm/engine_list.h"
#include "comm/plugin/transport_plugin.h"
#include "core/error.h"
#include "core/plugin.h"

namespace shardrec::comm::remote {
namespace {

using core::sentence;
using Table = shardrec_transport_table;
using PluginError = shardrec_transport_error;

std::string file_of(const EngineRow& engine) {
  return sentence("libshardrec_", engine.name, ".so.", SHARDREC_TRANSPORT_ABI);
}

Table load(const EngineRow& engine) {
  const core::Plugin plugin{.file = file_of(engine),
                            .what = sentence(engine.name, " plug-in"),
                            .function = "shardrec_transport_plugin",
                            .needed = sentence("the engine \"", engine.name, "\" needs"),
                            .package = std::string(engine.package)};
  const core::LoadedPlugin loaded = core::load_plugin(plugin);
  const auto fill = reinterpret_cast<shardrec_transport_plugin_function>(loaded.function);
  Table table{};
  table.size = sizeof table;
  table.abi = SHARDREC_TRANSPORT_ABI;
  PluginError error{.peer = -1, .text = ""};
  const int32_t status = fill(&table, &error);
  error.text[sizeof error.text - 1] = '\0';
  if (status == SHARDREC_TRANSPORT_ABI_MISMATCH || table.abi != SHARDREC_TRANSPORT_ABI ||
      table.size != sizeof table) {
    core::refuse_plugin_abi(plugin, loaded, {.abi = table.abi, .bytes = table.size},
                            {.abi = SHARDREC_TRANSPORT_ABI, .bytes = sizeof table});
  }
  const bool whole = table.open != nullptr && table.rank != nullptr && table.ranks != nullptr &&
                     table.send != nullptr && table.receive != nullptr && table.wait != nullptr &&
                     table.forget != nullptr && table.cancel != nullptr && table.close != nullptr &&
                     (table.has_group_states == 0 || table.announce != nullptr);
  if (status != SHARDREC_TRANSPORT_OK || !whole) {
    core::refuse_plugin(
        plugin, loaded,
        sentence("cannot be used: ", error.text[0] != '\0' ? error.text : "it does not say why"));
  }
  return table;
}

// Leaked: other threads may use a plug-in while the process ends.
std::mutex load_mutex;
std::array<Table, kEngines.size()> tables;
std::array<std::atomic<bool>, kEngines.size()> loaded;

const Table& table_of(const std::string& name) {
  for (size_t i = 0; i < kEngines.size(); ++i) {
    if (kEngines[i].name != name || !kEngines[i].is_transport()) continue;
    if (loaded[i].load(std::memory_order_acquire)) return tables[i];
    const std::lock_guard lock(load_mutex);
    if (!loaded[i].load(std::memory_order_relaxed)) {
      tables[i] = load(kEngines[i]);
      loaded[i].store(true, std::memory_order_release);
    }
    return tables[i];
  }
  core::fail(SHARDREC_UNSUPPORTED, sentence("there is no plug-in for the engine \"", name,
                                            "\"; there are ", process_engine_names(" and ")));
}

shardrec_status status_of(int32_t status) noexcept {
  switch (status) {
    case SHARDREC_TRANSPORT_UNUSABLE:
      return SHARDREC_UNSUPPORTED;
    case SHARDREC_TRANSPORT_FAILED:
      return SHARDREC_PEER_FAILED;
    case SHARDREC_TRANSPORT_TIMEOUT:
      return SHARDREC_TIMEOUT;
    case SHARDREC_TRANSPORT_CANCELLED:
      return SHARDREC_ABORTED;
    case SHARDREC_TRANSPORT_OUT_OF_MEMORY:
      return SHARDREC_OUT_OF_MEMORY;
    default:
      return SHARDREC_INTERNAL;
  }
}

std::string text_of(const PluginError& error) {
  return {error.text, strnlen(error.text, sizeof error.text)};
}

[[noreturn]] void raise(int32_t status, const PluginError& error) {
  core::ErrorParts parts;
  if (error.peer >= 0) parts.rank = error.peer;
  core::fail(status_of(status), text_of(error), std::move(parts));
}

// Passes group states from the plug-in's thread to the listener. The mutex is recursive, because a
// listener that is notified may stop listening.
class Reader {
 public:
  void hear(int from, ConstBytes group_state) noexcept {
    const std::lock_guard lock(mutex_);
    try {
      if (listener_ != nullptr) {
        const auto listener = listener_;  // outlives a listen() from within
        if (listener->heard) listener->heard(from, group_state);
      } else if (!ended_) {
        waiting_.emplace_back(from, std::vector(group_state.begin(), group_state.end()));
      }
    } catch (const std::exception&) {  // out of memory: the waiting call has a deadline
    }
  }

  void listen(StateBroadcast::Listener listener) {
    const std::lock_guard lock(mutex_);
    listener_.reset();
    ended_ = !listener.heard && !listener.lost;
    const auto waiting = std::exchange(waiting_, {});
    if (ended_) return;
    listener_ = std::make_shared<const StateBroadcast::Listener>(std::move(listener));
    for (const auto& [from, group_state] : waiting) hear(from, group_state);
  }

 private:
  std::recursive_mutex mutex_;
  std::shared_ptr<const StateBroadcast::Listener> listener_;
  bool ended_ = false;
  std::vector<std::pair<int, std::vector<std::byte>>> waiting_;
};

// The store on the plug-in's side of the border, while the ranks meet. What it throws is kept: it
// says more than a status.
class StoreBorder {
 public:
  void use(const TransportStore* store) {
    const std::lock_guard lock(mutex_);
    store_ = store;
  }
  void rethrow() {
    const std::lock_guard lock(mutex_);
    if (thrown_) std::rethrow_exception(thrown_);
  }

  static int32_t set(void* self, const char* key, const void* data, uint64_t bytes) {
    return static_cast<StoreBorder*>(self)->run([&](const TransportStore& store) {
      store.set(key, {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)});
    });
  }

  static int32_t get(void* self, const char* key, void* data, uint64_t capacity, uint64_t* bytes,
                     double seconds) {
    return static_cast<StoreBorder*>(self)->run([&](const TransportStore& store) {
      const std::vector<std::byte> value = store.get(key, seconds);
      if (value.size() > capacity) {
        core::fail(SHARDREC_INTERNAL, sentence("the value of \"", key, "\" has ", value.size(),
                                               " bytes, the plug-in has room for ", capacity));
      }
      if (!value.empty()) std::memcpy(data, value.data(), value.size());
      *bytes = value.size();
    });
  }

 private:
  template <class Function>
  int32_t run(const Function& function) noexcept {
    const TransportStore* store = nullptr;
    {
      const std::lock_guard lock(mutex_);
      store = store_;
    }
    if (store == nullptr) return SHARDREC_TRANSPORT_FAILED;
    try {
      function(*store);
      return SHARDREC_TRANSPORT_OK;
    } catch (const core::Error& error) {
      if (error.status() == SHARDREC_TIMEOUT) return SHARDREC_TRANSPORT_TIMEOUT;
      keep(std::current_exception());
    } catch (...) {
      keep(std::current_exception());
    }
    return SHARDREC_TRANSPORT_FAILED;
  }

  void keep(std::exception_ptr thrown) noexcept {
    const std::lock_guard lock(mutex_);
    if (!thrown_) thrown_ = std::move(thrown);
  }

  std::mutex mutex_;
  const TransportStore* store_ = nullptr;
  std::exception_ptr thrown_;
};

// An open transport. Closed when the carrier, the broadcast and all requests are destroyed.
struct Handle {
  explicit Handle(const Table& functions) : table(functions) {}
  ~Handle() {
    if (transport != nullptr) table.close(transport);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  const Table& table;
  std::string address;
  StoreBorder store;
  Reader reader;
  void* transport = nullptr;
};

class PluginRequest final : public Request {
 public:
  PluginRequest(std::shared_ptr<Handle> handle, void* request) noexcept
      : handle_(std::move(handle)), request_(request) {}
  ~PluginRequest() override { handle_->table.forget(handle_->transport, request_); }
  PluginRequest(const PluginRequest&) = delete;
  PluginRequest& operator=(const PluginRequest&) = delete;

  Result wait(double seconds) override {
    PluginError error{.peer = -1, .text = ""};
    const int32_t status = handle_->table.wait(handle_->transport, request_, seconds, &error);
    switch (status) {
      case SHARDREC_TRANSPORT_OK:
        return {.outcome = Outcome::kDone};
      case SHARDREC_TRANSPORT_TIMEOUT:
        return {.outcome = Outcome::kTimeout};
      case SHARDREC_TRANSPORT_CANCELLED:
        return {.outcome = Outcome::kCancelled};
      default:
        return {.outcome = Outcome::kFailed, .peer = error.peer, .text = text_of(error)};
    }
  }

 private:
  std::shared_ptr<Handle> handle_;
  void* request_;
};

class PluginCarrier final : public Carrier {
 public:
  explicit PluginCarrier(std::shared_ptr<Handle> handle) noexcept : handle_(std::move(handle)) {}

  std::unique_ptr<Request> send(int peer, uint32_t tag, ConstBytes data) override {
    return start([&](void** request, PluginError* error) {
      return handle_->table.send(handle_->transport, peer, tag, data.data(), data.size(), request,
                                 error);
    });
  }
  std::unique_ptr<Request> receive(int peer, uint32_t tag, std::span<std::byte> data) override {
    return start([&](void** request, PluginError* error) {
      return handle_->table.receive(handle_->transport, peer, tag, data.data(), data.size(),
                                    request, error);
    });
  }
  void cancel() noexcept override { handle_->table.cancel(handle_->transport); }

 private:
  template <class Function>
  std::unique_ptr<Request> start(const Function& function) {
    PluginError error{.peer = -1, .text = ""};
    void* request = nullptr;
    const int32_t status = function(&request, &error);
    if (status != SHARDREC_TRANSPORT_OK) raise(status, error);
    try {
      return std::make_unique<PluginRequest>(handle_, request);
    } catch (...) {
      handle_->table.forget(handle_->transport, request);
      throw;
    }
  }

  std::shared_ptr<Handle> handle_;
};

class PluginStateBroadcast final : public StateBroadcast {
 public:
  explicit PluginStateBroadcast(std::shared_ptr<Handle> handle) noexcept
      : handle_(std::move(handle)) {}
  void announce(ConstBytes group_state) noexcept override {
    handle_->table.announce(handle_->transport, group_state.data(), group_state.size());
  }
  void listen(Listener listener) override { handle_->reader.listen(std::move(listener)); }

 private:
  std::shared_ptr<Handle> handle_;
};

void hear(void* reader, int32_t from, const void* data, uint64_t bytes) {
  static_cast<Reader*>(reader)->hear(
      from, {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)});
}

}  // namespace

void load_transport(const std::string& engine) { table_of(engine); }

bool transport_installed(const EngineRow& engine) {
  return core::plugin_installed(file_of(engine));
}

bool transport_available(const std::string& engine) noexcept {
  try {
    table_of(engine);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void check_transport_settings(const std::string& engine) {
  const Table& table = table_of(engine);
  if (table.check_settings == nullptr) return;
  PluginError error{.peer = -1, .text = ""};
  const int32_t status = table.check_settings(&error);
  if (status == SHARDREC_TRANSPORT_OK) return;
  core::fail(status == SHARDREC_TRANSPORT_OUT_OF_MEMORY ? SHARDREC_OUT_OF_MEMORY
                                                        : SHARDREC_INVALID_ARGUMENT,
             text_of(error));
}

bool transport_is_launched(const std::string& engine) { return table_of(engine).is_launched != 0; }

Transport open_transport(const TransportJob& job) {
  const Table& table = table_of(job.engine);
  if (table.is_launched == 0 && (job.store == nullptr || job.rank < 0 || job.size < 1)) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               sentence("the engine \"", job.engine, "\" needs a rank, a size and a store"));
  }
  const auto handle = std::make_shared<Handle>(table);
  handle->address = job.address;
  handle->store.use(job.store);
  const shardrec_transport_job description{
      .rank = job.rank,
      .size = job.size,
      .seconds = job.seconds,
      .silence = job.silence,
      .address = handle->address.empty() ? nullptr : handle->address.c_str(),
      .store = &handle->store,
      .store_set = job.store != nullptr ? &StoreBorder::set : nullptr,
      .store_get = job.store != nullptr ? &StoreBorder::get : nullptr,
      .reader = &handle->reader,
      .group_state = &hear};
  PluginError error{.peer = -1, .text = ""};
  void* transport = nullptr;
  const int32_t status = table.open(&description, &transport, &error);
  handle->store.use(nullptr);
  if (status != SHARDREC_TRANSPORT_OK) {
    handle->store.rethrow();
    raise(status, error);
  }
  handle->transport = transport;
  Transport result{.rank = table.rank(transport),
                   .size = table.ranks(transport),
                   .carrier = std::make_shared<PluginCarrier>(handle),
                   .state_broadcast = nullptr};
  if (table.has_group_states != 0)
    result.state_broadcast = std::make_shared<PluginStateBroadcast>(handle);
  return result;
}

}  // namespace shardrec::comm::remote
