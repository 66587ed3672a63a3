#include "trace_file.h"

#include "api.h"

namespace shardrec::cli {
namespace {

// The last of so many: some 10 MB of memory and 40 MB of JSON.
constexpr int64_t kEvents = int64_t{1} << 18;

}  // namespace

TraceFile::TraceFile(const std::string& path) : path_(path) {
  if (path.empty()) return;
  file_.open(path, std::ios::binary | std::ios::trunc);
  if (!file_) throw UserError(path + " cannot be written; --trace needs the path of a new file.");
  check(shardrec_trace_start(kEvents));
}

TraceFile::~TraceFile() {
  if (!path_.empty()) shardrec_trace_stop();
}

void TraceFile::write() {
  if (path_.empty()) return;
  shardrec_trace_stop();
  char* text = nullptr;
  check(shardrec_trace_json(&text));
  file_ << text << '\n';
  shardrec_text_free(text);
  file_.close();
  if (!file_) throw UserError("The trace could not be written to " + path_ + ".");
}

}  // namespace shardrec::cli
