// The bytes of a file, one after another; those of a file in gzip format are decompressed as they
// are read. What a file is in is told by its first bytes, not by its name. Memory: one block.
//
// Read without trust: a gzip file that ends too early, or does not hold what its checksums say, is
// an error that names the file and the byte. Members that follow each other are read as one text.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

struct z_stream_s;

namespace shardrec::cli {

class ByteSource {
 public:
  // UserError where the file cannot be opened, or is compressed in a way that is not read.
  explicit ByteSource(std::string path);

  // Up to `size` bytes; 0 at the end only. UserError where reading or decompressing fails.
  size_t read(char* to, size_t size);

  // How far it has come in the file, and the file's bytes (0: not known, as of a pipe).
  [[nodiscard]] uint64_t position() const;
  [[nodiscard]] uint64_t file_size() const { return file_size_; }

 private:
  static constexpr size_t kBlock = size_t{256} << 10;
  struct Close {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };
  struct EndInflate {
    void operator()(z_stream_s* stream) const;
  };

  void fill();  // where the block is used up; nothing more: at the end
  [[nodiscard]] size_t unread() const { return end_ - begin_; }
  void begin_gzip();
  bool begin_member();  // false: the file ends here
  size_t inflate_some(char* to, size_t size);
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  uint64_t file_size_ = 0;
  std::vector<char> block_;
  size_t begin_ = 0;  // unread bytes of the block: [begin_, end_)
  size_t end_ = 0;
  uint64_t read_ = 0;  // bytes of the file that the block has had
  bool at_end_ = false;
  std::unique_ptr<z_stream_s, EndInflate> gzip_;  // null: the file is not compressed
  bool in_member_ = false;
};

}  // namespace shardrec::cli
