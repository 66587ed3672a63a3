// The thread that watches a long call: it draws progress and passes interrupts on.
#include "command/long_work.h"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <utility>

#include "command/interrupt.h"
#include "command/numbers.h"

namespace shardrec::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{50};
constexpr std::chrono::seconds kLong{1};
constexpr std::chrono::milliseconds kRedraw{200};
constexpr std::chrono::seconds kLine{10};

}  // namespace

LongWork::LongWork(std::string title, bool shown, OnInterrupt on_interrupt)
    : title_(std::move(title)),
      shown_(shown),
      terminal_(isatty(STDERR_FILENO) == 1),
      on_interrupt_(on_interrupt) {
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
  auto next = Clock::now() + kLong;
  bool drawn = false;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kLook, [this] { return over_; })) {
    if (on_interrupt_ == OnInterrupt::kCancel && interrupted()) {
      control_.cancel();
    }
    if (!shown_ || Clock::now() < next) continue;
    show();
    drawn = true;
    next = Clock::now() + (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kLine));
  }
  if (drawn && terminal_) std::cerr << "\r" << std::string(60, ' ') << "\r" << std::flush;
}

void LongWork::show() const {
  const auto [done, total] = control_.progress();
  std::string line = title_;
  if (total > 0) {
    const double share = static_cast<double>(done) / static_cast<double>(total);
    line += " " + fixed(100 * share, 0) + "%  " + bytes_text(done) + " of " + bytes_text(total);
  }
  if (terminal_) {
    line.resize(std::max<size_t>(line.size(), 60), ' ');
    std::cerr << "\r" << line << std::flush;
  } else {
    std::cerr << line + "\n";
  }
}

}  // namespace shardrec::cli
