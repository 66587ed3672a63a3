// A store in a folder, for ranks that are processes of one machine.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "comm/remote/transport.h"
#include "core/error.h"
#include "support/eventually.h"

namespace shardrec::comm::remote {

inline std::filesystem::path store_path(const std::filesystem::path& folder, std::string key) {
  for (char& letter : key) {
    if (letter == '/') letter = '_';
  }
  return folder / key;
}

inline TransportStore file_store(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  return {.set =
              [folder](const std::string& key, ConstBytes value) {
                const auto path = store_path(folder, key);
                const std::filesystem::path fresh = path.string() + ".new";
                std::ofstream(fresh, std::ios::binary)
                    .write(static_cast<const char*>(static_cast<const void*>(value.data())),
                           static_cast<std::streamsize>(value.size()));
                std::filesystem::rename(fresh, path);
              },
          .get =
              [folder](const std::string& key, double seconds) {
                const auto path = store_path(folder, key);
                if (!test::eventually([&] { return std::filesystem::exists(path); }, seconds)) {
                  core::fail(SHARDREC_TIMEOUT, "nobody has set " + key);
                }
                std::ifstream file(path, std::ios::binary);
                const std::vector<char> text((std::istreambuf_iterator<char>(file)), {});
                std::vector<std::byte> value(text.size());
                std::transform(text.begin(), text.end(), value.begin(),
                               [](char byte) { return static_cast<std::byte>(byte); });
                return value;
              }};
}

}  // namespace shardrec::comm::remote
