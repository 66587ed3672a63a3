// The file of `train --output`: what the model says of each test sample, in the order of the data.
//
//   ROW <tab> LABEL <tab> PROBABILITY
//
// ROW: of the data, from 0 over all files, without headers, unreadable rows counted. LABEL: 0 or 1, or empty
// where the data have none. PROBABILITY:
// as many digits as reading them back to the same float32 takes. No header. A file that is complete
// or is not there: it is written beside, and renamed at the end.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "command/whole_file.h"
#include "data/line_sink.h"
#include "data/samples.h"

namespace shardrec::cli {

class PredictionFile {
 public:
  // path empty: writes nothing. UserError where the file cannot be written.
  explicit PredictionFile(std::string path, bool labelled = true);
  PredictionFile(const PredictionFile&) = delete;
  PredictionFile& operator=(const PredictionFile&) = delete;

  // probabilities: one per sample.
  void add(const Samples& samples, std::span<const float> probabilities);
  void finish();

 private:
  bool labelled_;
  std::unique_ptr<WholeFile> file_;
  std::unique_ptr<LineSink> sink_;
  std::string text_;
};

}  // namespace shardrec::cli
