// How predictions are written: shortest digits that read back the same, a file renamed when
// complete.
#include "train/predictions.h"

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "command/numbers.h"
#include "command/user_error.h"

namespace shardrec::cli {
namespace {

std::string part_of(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    return path;  // such as /dev/stdout, which nothing can be renamed to
  }
  return without_gzip_name(path) + ".part" + (is_gzip_name(path) ? ".gz" : "");
}

}  // namespace

PredictionFile::PredictionFile(std::string path, bool labelled)
    : path_(std::move(path)), labelled_(labelled) {
  if (path_.empty()) return;
  part_ = part_of(path_);
  sink_ = std::make_unique<LineSink>(part_);
}

PredictionFile::~PredictionFile() {
  if (sink_ != nullptr && part_ != path_) std::remove(part_.c_str());  // it is not complete
}

void PredictionFile::add(const Samples& samples, std::span<const float> probabilities) {
  if (sink_ == nullptr) return;
  text_.clear();
  for (int64_t i = 0; i < samples.size(); ++i) {
    text_ += std::to_string(samples.row(i));
    text_ += !labelled_ ? "\t\t" : samples.label(i) > 0 ? "\t1\t" : "\t0\t";
    text_ += number_text(probabilities[static_cast<size_t>(i)]);
    text_ += '\n';
  }
  sink_->write(text_);
}

void PredictionFile::finish() {
  if (sink_ == nullptr) return;
  sink_->finish();
  if (part_ != path_) {
    std::error_code error;
    std::filesystem::rename(part_, path_, error);
    if (error) throw UserError("Cannot write " + path_ + ": " + error.message() + ".");
  }
  sink_.reset();
}

}  // namespace shardrec::cli
