// A Criteo click log: its files, and passes over them.
#include <memory>

#include "data/click_log.h"
#include "data/criteo_files.h"
#include "data/criteo_pass.h"

namespace shardrec::cli {
namespace {

class CriteoLog final : public ClickLog {
 public:
  explicit CriteoLog(const ClickLogOptions& options)
      : files_(options), bad_lines_(options.tolerance) {}

  [[nodiscard]] const Schema& schema() const override { return files_.schema; }
  [[nodiscard]] const BadLines& bad_lines() const override { return bad_lines_; }
  [[nodiscard]] bool labelled() const override { return files_.labelled(); }
  [[nodiscard]] std::unique_ptr<Pass> open(Split split, ParseThreads& threads) override {
    bool& counted = split == Split::kTest ? test_counted_ : train_counted_;
    BadLines* bad_lines = counted ? nullptr : &bad_lines_;
    counted = true;
    return std::make_unique<CriteoPass>(files_, split, bad_lines, threads);
  }

 private:
  CriteoFiles files_;
  BadLines bad_lines_;
  bool train_counted_ = false;
  bool test_counted_ = false;
};

}  // namespace

std::unique_ptr<ClickLog> open_criteo(const ClickLogOptions& options) {
  return std::make_unique<CriteoLog>(options);
}

}  // namespace shardrec::cli
