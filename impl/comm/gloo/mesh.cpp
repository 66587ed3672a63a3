#include "comm/gloo/mesh.h"

#include <gloo/transport/address.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "comm/gloo/guarded_context.h"
#include "comm/gloo/silence.h"
#include "core/random.h"

namespace shardrec::comm::gloo_plugin {
namespace {

using plugin::Clock;
using plugin::Failure;
using plugin::sentence;

constexpr std::chrono::milliseconds kGlance{100};  // how often the job's health is looked at
constexpr int kPeersPerKey = 128;                  // so that a value stays below the store's limit

// So short that a std::string needs no memory for it.
constexpr std::string_view kNoMemory = "out of memory";

Secret random_secret() {
  Secret secret{};
  try {
    core::fill_random(std::as_writable_bytes(std::span(secret)));
  } catch (const core::Error& error) {
    throw Failure(SHARDREC_TRANSPORT_UNUSABLE, -1, error.sentence());
  }
  return secret;
}

// Of an address in numbers. Not by Gloo, which crashes where the system's look-up of it fails.
gloo::transport::tcp::attr attributes_of(const std::string& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.c_str(), nullptr, &hints, &found);
  if (error == EAI_MEMORY) throw std::bad_alloc();
  if (error != 0) throw std::runtime_error(gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  gloo::transport::tcp::attr attributes;
  attributes.ai_family = found->ai_family;
  attributes.ai_socktype = found->ai_socktype;
  attributes.ai_protocol = found->ai_protocol;
  attributes.ai_addrlen = static_cast<int>(found->ai_addrlen);
  std::memset(&attributes.ai_addr, 0, sizeof attributes.ai_addr);
  std::memcpy(&attributes.ai_addr, found->ai_addr, found->ai_addrlen);
  return attributes;
}

// Runs on a thread of its own, so that the caller can keep an eye on the job, and end it.
class Connector {
 public:
  Connector(const shardrec_transport_job& job, const Peering& peering, Clock::time_point deadline)
      : job_(job),
        peering_(peering),
        deadline_(deadline),
        address_(job.address != nullptr ? job.address : "127.0.0.1") {
    mesh_.expected.resize(static_cast<size_t>(job.size));
    mesh_.presented.resize(static_cast<size_t>(job.size));
  }

  Mesh run() {
    std::thread thread = plugin::start_thread([this] { work(); });
    std::exception_ptr stopped;
    {
      std::unique_lock lock(mutex_);
      while (!finished_ && !stopped) {
        done_.wait_for(lock, kGlance);
        if (finished_) break;
        lock.unlock();
        try {
          check_job(job_);
          if (Clock::now() >= deadline_) throw late();
        } catch (...) {
          stopped = std::current_exception();
        }
        lock.lock();
      }
    }
    if (stopped) stop();
    thread.join();
    if (stopped) std::rethrow_exception(stopped);
    if (thrown_) std::rethrow_exception(thrown_);
    return std::move(mesh_);
  }

 private:
  bool is_peer(int rank) const {
    return rank != job_.rank && peering_.with[static_cast<size_t>(rank)];
  }

  std::string key_of(int rank, int peer) const {
    return sentence(peering_.key, rank, "/", peer / kPeersPerKey);
  }

  Failure late() const {
    return {SHARDREC_TRANSPORT_TIMEOUT, at_,
            sentence("rank ", at_.load(), " did not connect in time")};
  }

  void work() noexcept {
    try {
      listen();
      publish();
      for (at_ = 0; at_ < job_.size; ++at_) {
        if (is_peer(at_)) connect(at_);
      }
    } catch (...) {
      thrown_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    finished_ = true;
    done_.notify_all();
  }

  void listen() {
    try {
      auto device = std::make_shared<gloo::transport::tcp::Device>(attributes_of(address_));
      mesh_.device = device;
      mesh_.context = std::make_shared<GuardedContext>(std::move(device), job_.rank, job_.size);
      // Gloo waits five times as long for a connection.
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          std::max(deadline_ - Clock::now(), Clock::duration(kGlance)));
      mesh_.context->setTimeout(left / 5 + kGlance);
      for (int peer = 0; peer < job_.size; ++peer) {
        if (is_peer(peer)) mesh_.context->createPair(peer);
      }
      const std::lock_guard lock(mutex_);
      listening_ = true;
    } catch (const Failure&) {
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& thrown) {
      if (plugin::is_thread_shortage(thrown)) throw;
      throw Failure(SHARDREC_TRANSPORT_UNUSABLE, -1,
                    sentence("Gloo cannot listen on ", address_, ": ", message_of(thrown)));
    }
  }

  // One entry per rank: the number that it is to send, then the address to connect to. All zero
  // where it is not a peer.
  void publish() {
    std::vector<char> value;
    for (int peer = 0; peer < job_.size; ++peer) {
      if (is_peer(peer))
        entry_bytes_ = sizeof(Secret) + mesh_.context->getPair(peer)->address().bytes().size();
    }
    for (int peer = 0; peer < job_.size; ++peer) {
      std::vector<char> address(entry_bytes_ - sizeof(Secret));
      if (is_peer(peer)) {
        mesh_.expected[static_cast<size_t>(peer)] = random_secret();
        address = mesh_.context->getPair(peer)->address().bytes();
      }
      const Secret& secret = mesh_.expected[static_cast<size_t>(peer)];
      value.resize(value.size() + sizeof(Secret));
      std::memcpy(value.data() + value.size() - sizeof(Secret), secret.data(), sizeof(Secret));
      value.insert(value.end(), address.begin(), address.end());
      if ((peer + 1) % kPeersPerKey != 0 && peer + 1 != job_.size) continue;
      const int32_t status =
          job_.store_set(job_.store, key_of(job_.rank, peer).c_str(), value.data(), value.size());
      if (status != SHARDREC_TRANSPORT_OK)
        throw Failure(status, -1, "this rank's address cannot be put into the job's store");
      value.clear();
    }
  }

  void connect(int peer) {
    const std::vector<char> value = wait_for_entry(peer);
    const size_t at = static_cast<size_t>(job_.rank % kPeersPerKey) * entry_bytes_;
    if (at + entry_bytes_ > value.size())
      throw Failure(SHARDREC_TRANSPORT_FAILED, peer,
                    sentence("the address of rank ", peer, " in the job's store is cut short"));
    std::memcpy(mesh_.presented[static_cast<size_t>(peer)].data(), value.data() + at,
                sizeof(Secret));
    const auto begin = value.begin() + static_cast<std::ptrdiff_t>(at + sizeof(Secret));
    try {
      mesh_.context->getPair(peer)->connect(
          {begin, begin + static_cast<std::ptrdiff_t>(entry_bytes_ - sizeof(Secret))});
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& thrown) {
      if (Clock::now() >= deadline_) throw late();
      throw Failure(SHARDREC_TRANSPORT_FAILED, peer,
                    sentence("no connection to rank ", peer, ": ", message_of(thrown)));
    }
    check_stopped();
    end_when_silent(*mesh_.context->getPair(peer), job_.silence);
  }

  std::vector<char> wait_for_entry(int peer) {
    std::vector<char> value(SHARDREC_TRANSPORT_VALUE_BYTES);
    const std::string key = key_of(peer, job_.rank);
    for (;;) {
      check_stopped();
      uint64_t bytes = 0;
      const double seconds = std::chrono::duration<double>(kGlance).count();
      const int32_t status =
          job_.store_get(job_.store, key.c_str(), value.data(), value.size(), &bytes, seconds);
      if (status == SHARDREC_TRANSPORT_OK) {
        value.resize(std::min<size_t>(bytes, value.size()));
        return value;
      }
      if (status != SHARDREC_TRANSPORT_TIMEOUT)
        throw Failure(status, -1,
                      sentence("the job's store failed while this rank waited for rank ", peer));
    }
  }

  void check_stopped() {
    const std::lock_guard lock(mutex_);
    if (stopping_) throw Failure(SHARDREC_TRANSPORT_CANCELLED, -1, "stopped");
  }

  // A closed pair ends connect(); it then sees that it is to stop.
  void stop() noexcept {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    if (!listening_) return;
    lock.unlock();
    for (int peer = 0; peer < job_.size; ++peer) {
      if (is_peer(peer)) mesh_.context->getPair(peer)->close();
    }
  }

  const shardrec_transport_job& job_;
  const Peering& peering_;
  const Clock::time_point deadline_;
  const std::string address_;
  Mesh mesh_;
  size_t entry_bytes_ = 0;
  std::atomic<int> at_{0};  // the peer that is being connected to
  std::mutex mutex_;
  std::condition_variable done_;
  bool listening_ = false;
  bool finished_ = false;
  bool stopping_ = false;
  std::exception_ptr thrown_;
};

}  // namespace

Mesh connect_mesh(const shardrec_transport_job& job, const Peering& peering,
                  Clock::time_point deadline) {
  return Connector(job, peering, deadline).run();
}

void check_job(const shardrec_transport_job& job) {
  char nothing = 0;
  uint64_t bytes = 0;
  // Nobody sets this key: only the status is of interest.
  const int32_t status = job.store_get(job.store, "gloo/none", &nothing, 1, &bytes, 0);
  if (status != SHARDREC_TRANSPORT_OK && status != SHARDREC_TRANSPORT_TIMEOUT)
    throw Failure(status, -1, "the job ended while its ranks were meeting");
}

std::string_view message_of(const std::exception& thrown) noexcept {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) return kNoMemory;
  std::string_view text = thrown.what();
  const size_t end = text.find("] ");
  if (text.starts_with('[') && end != std::string_view::npos) text.remove_prefix(end + 2);
  return text;
}

}  // namespace shardrec::comm::gloo_plugin
