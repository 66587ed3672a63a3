#include "core/environment.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "core/error.h"
#include "core/function_ref.h"
#include "core/hash.h"

namespace shardrec::core {

std::string join_path(const std::string& directory, const std::string& name) {
  return directory.ends_with('/') ? directory + name : directory + "/" + name;
}

std::string unique_suffix() {
  static std::atomic<uint64_t> calls{0};
  uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof bits)) {
    // Names need to differ, not to be secret.
    const std::chrono::nanoseconds times[] = {std::chrono::system_clock::now().time_since_epoch(),
                                              std::chrono::steady_clock::now().time_since_epoch()};
    bits = hash64(static_cast<uint64_t>(::getpid()), std::as_bytes(std::span(times))) +
           calls.fetch_add(1);
  }
  return to_hex(bits);
}

namespace {

// Writes a temporary file and hands its path to `publish`, which may leave it where it is.
void write_through_temporary(Environment& environment, const std::string& path,
                             std::span<const std::byte> bytes,
                             FunctionRef<void(const std::string&)> publish) {
  const std::string temporary = path + "." + unique_suffix() + ".tmp";
  // Only what this call has made is removed.
  const auto file = environment.create(temporary);
  try {
    file->append(bytes);
    file->sync();
    file->close();
    publish(temporary);
  } catch (...) {
    try {
      environment.remove(temporary);
    } catch (const Error&) {
      // The first failure is the one to report.
    }
    throw;
  }
}

}  // namespace

void write_file_atomically(Environment& environment, const std::string& directory,
                           const std::string& name, std::span<const std::byte> bytes) {
  const std::string path = join_path(directory, name);
  write_through_temporary(environment, path, bytes, [&](const std::string& temporary) {
    environment.rename(temporary, path);
    environment.sync_directory(directory);
  });
}

bool write_new_file_atomically(Environment& environment, const std::string& directory,
                               const std::string& name, std::span<const std::byte> bytes) {
  const std::string path = join_path(directory, name);
  bool published = false;
  write_through_temporary(environment, path, bytes, [&](const std::string& temporary) {
    published = environment.rename_if_free(temporary, path);
    if (published) {
      environment.sync_directory(directory);
    } else {
      environment.remove(temporary);
    }
  });
  return published;
}

std::string read_text_file(Environment& environment, const std::string& path, int64_t most) {
  const auto file = environment.open(path);
  const int64_t size = file->size();
  if (size > most) {
    fail(SHARDREC_CORRUPT_DATA,
         sentence("the file ", path, " has ", size, " bytes; at most ", most, " are expected"),
         {.value = size, .limit = most + 1, .path = path});
  }
  constexpr int64_t kBlock = 1 << 16;
  std::string text;
  for (int64_t at = 0; at < size;) {
    const int64_t bytes = std::min(size - at, std::max(kBlock, at));
    text.resize(static_cast<size_t>(at + bytes));
    const std::span<char> block = std::span(text).subspan(static_cast<size_t>(at));
    file->read_at(at, std::as_writable_bytes(block));
    const auto zero = std::find(block.begin(), block.end(), '\0');
    if (zero != block.end()) {
      const int64_t position = at + (zero - block.begin());
      fail(SHARDREC_CORRUPT_DATA,
           sentence("the file ", path, " holds a zero byte at ", position,
                    ", where text is expected"),
           {.position = position, .path = path});
    }
    at += bytes;
  }
  return text;
}

}  // namespace shardrec::core
