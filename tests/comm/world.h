// Ranks as threads, for the tests of this folder.
#pragma once

#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "comm/local/local_group.h"
#include "core/error.h"

namespace shardrec::comm {

using Body = std::function<void(Communicator&)>;

inline core::Error as_error(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const core::Error& error) {
    return error;
  } catch (const std::exception& error) {
    return {SHARDREC_INTERNAL, std::string("not a core::Error: ") + error.what()};
  }
}

// What a call threw, if anything.
inline std::optional<core::Error> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (...) {
    return as_error(std::current_exception());
  }
  return std::nullopt;
}

using Errors = std::vector<std::optional<core::Error>>;  // by rank

// Runs body on every rank of a group, each in a thread with a communicator of its own, which `join`
// gives; the rank leaves it in order when body returns and destroys it without leaving when body
// throws. Returns what the ranks threw.
inline Errors run_joined(int ranks, const std::function<std::shared_ptr<Communicator>(int)>& join,
                         const Body& body) {
  Errors errors(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto communicator = join(rank);
      communicator->set_deadlines({.step = 60, .setup = 60, .warn = 30});  // no test hangs
      errors[static_cast<size_t>(rank)] = error_of([&] {
        body(*communicator);
        communicator->leave();
      });
    });
  }
  for (auto& thread : threads) thread.join();
  return errors;
}

// The same on the `local` engine.
inline Errors run_ranks(int ranks, const Body& body, int ranks_per_node = 0) {
  const auto group = local::make_group(ranks, ranks_per_node == 0 ? ranks : ranks_per_node);
  return run_joined(ranks, [&](int rank) { return local::join(group, rank); }, body);
}

inline ConstBytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
inline std::string text_of(ConstBytes bytes) {
  std::string text(bytes.size(), '\0');
  if (!bytes.empty()) std::memcpy(text.data(), bytes.data(), bytes.size());
  return text;
}

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace shardrec::comm
