// How predictions are written: shortest digits that read back the same, a file renamed when
// complete.
#include "train/predictions.h"

#include "command/numbers.h"

namespace shardrec::cli {

PredictionFile::PredictionFile(std::string path, bool labelled) : labelled_(labelled) {
  if (path.empty()) return;
  const char* const ending = is_gzip_name(path) ? ".gz" : "";
  file_ = std::make_unique<WholeFile>(std::move(path), ending);
  sink_ = std::make_unique<LineSink>(file_->part());
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
  file_->finish();
  sink_.reset();
}

}  // namespace shardrec::cli
