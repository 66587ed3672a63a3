#include <chrono>
#include <thread>
#include <utility>

#include "serving/workspace.h"

namespace shardrec::serving {
namespace {

std::atomic<uint64_t> next_number{1};

// The workspace that this thread had last, so that threads that take turns do not share its memory.
struct Last {
  uint64_t number = 0;  // of the Workspaces that it belongs to
  Workspace* workspace = nullptr;
};
thread_local Last last;

constexpr std::chrono::microseconds kPoll{100};

}  // namespace

Workspaces::Workspaces(std::unique_ptr<const Version> version)
    : number_(next_number.fetch_add(1, std::memory_order_relaxed)), current_(version.release()) {}

Workspaces::~Workspaces() {
  delete current_.load(std::memory_order_acquire);
  for (Workspace* workspace = all_.load(std::memory_order_acquire); workspace != nullptr;) {
    delete std::exchange(workspace, workspace->next_);
  }
}

Workspaces::Use::~Use() {
  workspace_.reading_.store(nullptr, std::memory_order_release);
  workspace_.in_use_.store(false, std::memory_order_release);
}

Workspace& Workspaces::take() {
  const auto try_take = [](Workspace& workspace) {
    return !workspace.in_use_.load(std::memory_order_relaxed) &&
           !workspace.in_use_.exchange(true, std::memory_order_acquire);
  };
  if (last.number == number_ && try_take(*last.workspace)) return *last.workspace;
  Workspace* taken = nullptr;
  for (Workspace* each = all_.load(std::memory_order_acquire); each != nullptr;
       each = each->next_) {
    if (!try_take(*each)) continue;
    taken = each;
    break;
  }
  if (taken == nullptr) {
    auto made = std::make_unique<Workspace>();
    made->in_use_.store(true, std::memory_order_relaxed);
    made->next_ = all_.load(std::memory_order_relaxed);
    // In one order with what exchange() reads: it sees every workspace that may name the old version.
    while (!all_.compare_exchange_weak(made->next_, made.get(), std::memory_order_seq_cst)) {
    }
    taken = made.release();
  }
  last = {number_, taken};
  return *taken;
}

Workspaces::Use Workspaces::enter() {
  Workspace& workspace = take();
  for (;;) {
    const Version* const version = current_.load(std::memory_order_seq_cst);
    workspace.reading_.store(version, std::memory_order_seq_cst);
    if (current_.load(std::memory_order_seq_cst) == version) return {workspace, *version};
  }
}

void Workspaces::exchange(std::unique_ptr<const Version> next) {
  const std::unique_ptr<const Version> old(
      current_.exchange(next.release(), std::memory_order_seq_cst));
  for (Workspace* workspace = all_.load(std::memory_order_seq_cst); workspace != nullptr;
       workspace = workspace->next_) {
    while (workspace->reading_.load(std::memory_order_seq_cst) == old.get()) {
      std::this_thread::sleep_for(kPoll);
    }
  }
}

}  // namespace shardrec::serving
