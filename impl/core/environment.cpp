#include "core/environment.h"

#include "core/error.h"

namespace shardrec::core {

std::string join_path(const std::string& directory, const std::string& name) {
  return directory.ends_with('/') ? directory + name : directory + "/" + name;
}

void write_file_atomically(Environment& environment, const std::string& directory,
                           const std::string& name, std::span<const std::byte> bytes) {
  const std::string path = join_path(directory, name);
  const std::string temporary = path + ".tmp";
  try {
    const auto file = environment.create(temporary);
    file->append(bytes);
    file->sync();
    file->close();
    environment.rename(temporary, path);
    environment.sync_directory(directory);
  } catch (...) {
    try {
      environment.remove(temporary);
    } catch (const Error&) {
      // The first failure is the one to report.
    }
    throw;
  }
}

std::string read_file(Environment& environment, const std::string& path, int64_t most) {
  const auto file = environment.open(path);
  const int64_t size = file->size();
  if (size > most) {
    fail(SHARDREC_CORRUPT_DATA,
         sentence("the file ", path, " has ", size, " bytes; at most ", most, " are expected"),
         {.value = size, .limit = most + 1, .path = path});
  }
  std::string text(static_cast<size_t>(size), '\0');
  file->read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace shardrec::core
