// Bytes of a file as they are or inflated, told by its first bytes.
#include "data/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

#include "command/numbers.h"
#include "command/user_error.h"

namespace shardrec::cli {
namespace {

constexpr std::string_view kGzip("\x1f\x8b", 2);

// First bytes of what is compressed in another way.
struct Compression {
  std::string_view magic;
  const char* name;
  const char* program;
};
constexpr std::array kOthers{Compression{"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"},
                             Compression{std::string_view("\xfd"
                                                          "7zXZ\0",
                                                          6),
                                         "xz", "xz -dc"},
                             Compression{"BZh", "bzip2", "bzip2 -dc"},
                             Compression{"PK\x03\x04", "zip", "unzip -p"}};

}  // namespace

void ByteSource::EndInflate::operator()(z_stream_s* stream) const {
  inflateEnd(stream);
  delete stream;
}

ByteSource::ByteSource(std::string path)
    : path_(std::move(path)), file_(std::fopen(path_.c_str(), "rb")), block_(kBlock) {
  std::error_code error;
  if (file_ == nullptr || std::filesystem::is_directory(path_, error)) {
    const int reason = file_ == nullptr ? errno : EISDIR;
    throw UserError("Cannot read " + path_ + ": " + std::generic_category().message(reason) + ".");
  }
  const auto size = std::filesystem::file_size(path_, error);
  file_size_ = error ? 0 : static_cast<uint64_t>(size);
  fill();
  const std::string_view start(block_.data(), unread());
  if (start.starts_with(kGzip)) begin_gzip();
  for (const Compression& other : kOthers) {
    if (!start.starts_with(other.magic)) continue;
    throw UserError(path_ + " is compressed with " + other.name +
                    "; what is read is text, or text compressed with gzip. `" + other.program +
                    " FILE | gzip > FILE.gz` makes it so.");
  }
}

void ByteSource::begin_gzip() {
  gzip_.reset(new z_stream_s{});
  constexpr int kGzipFormat = 16;
  if (inflateInit2(gzip_.get(), MAX_WBITS + kGzipFormat) != Z_OK) throw std::bad_alloc();
  in_member_ = true;
}

uint64_t ByteSource::position() const { return read_ - unread(); }

void ByteSource::fail(const std::string& what) const {
  throw UserError(path_ + ", byte " + with_separators(static_cast<int64_t>(position())) + ": " +
                  what);
}

void ByteSource::fill() {
  if (unread() > 0 || at_end_) return;
  begin_ = 0;
  end_ = std::fread(block_.data(), 1, block_.size(), file_.get());
  if (end_ == 0 && std::ferror(file_.get()) != 0) {
    throw UserError("Reading " + path_ + " failed: " + std::generic_category().message(errno) +
                    ".");
  }
  read_ += end_;
  at_end_ = end_ == 0;
}

size_t ByteSource::read(char* to, size_t size) {
  if (gzip_ != nullptr) return inflate_some(to, size);
  fill();
  const size_t count = std::min(size, unread());
  std::memcpy(to, block_.data() + begin_, count);
  begin_ += count;
  return count;
}

bool ByteSource::begin_member() {
  fill();
  if (unread() == 0) return false;
  if (static_cast<unsigned char>(block_[begin_]) != 0x1f) {
    fail("behind the end of its gzip data there are bytes that are not gzip data.");
  }
  if (inflateReset(gzip_.get()) != Z_OK) fail("zlib cannot begin the next member.");
  in_member_ = true;
  return true;
}

size_t ByteSource::inflate_some(char* to, size_t size) {
  constexpr size_t kMost = size_t{1} << 30;  // zlib counts in 32 bits
  const size_t wanted = std::min(size, kMost);
  z_stream_s& stream = *gzip_;
  stream.next_out = reinterpret_cast<Bytef*>(to);
  stream.avail_out = static_cast<uInt>(wanted);
  while (stream.avail_out == wanted) {
    if (!in_member_ && !begin_member()) return 0;
    fill();
    if (unread() == 0) {
      fail("the file ends in the middle of its gzip data; it was cut short.");
    }
    stream.next_in = reinterpret_cast<Bytef*>(block_.data() + begin_);
    stream.avail_in = static_cast<uInt>(unread());
    const int status = inflate(&stream, Z_NO_FLUSH);
    begin_ = end_ - stream.avail_in;
    if (status == Z_STREAM_END) {
      in_member_ = false;
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status != Z_OK) {
      fail(std::string("the gzip data are damaged") +
           (stream.msg == nullptr ? "." : std::string(" (") + stream.msg + ")."));
    }
  }
  return wanted - stream.avail_out;
}

}  // namespace shardrec::cli
