// The thread that watches a long call: it shows progress and passes interrupts on.
#include "command/long_work.h"

#include <chrono>
#include <utility>

#include "command/interrupt.h"
#include "command/numbers.h"

namespace shardrec::cli {
namespace {

constexpr std::chrono::milliseconds kLook{50};

}  // namespace

LongWork::LongWork(std::string title, bool shown, OnInterrupt on_interrupt)
    : line_(std::move(title), shown), on_interrupt_(on_interrupt) {
  thread_ = std::thread([this] { watch(); });
}

LongWork::~LongWork() {
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void LongWork::watch() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kLook, [this] { return over_; })) {
    if (on_interrupt_ == OnInterrupt::kCancel && interrupted()) {
      control_.cancel();
    }
    const auto [done, total] = control_.progress();
    if (total > 0) {
      line_.show(static_cast<double>(done) / static_cast<double>(total),
                 bytes_text(done) + " of " + bytes_text(total));
    } else {
      line_.show(-1);
    }
  }
}

}  // namespace shardrec::cli
