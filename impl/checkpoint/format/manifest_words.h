// Words of manifest.json that its reader and its writer share.
#pragma once

#include <array>
#include <string_view>

namespace shardrec::checkpoint {

// By number of the format, from 1.
inline constexpr std::array<std::string_view, 3> kManifestFormats = {
    "shardrec-checkpoint-1", "shardrec-checkpoint-2", "shardrec-checkpoint-3"};
// By ItemKind.
inline constexpr std::array<const char*, 3> kItemKinds = {"layers", "parameters", "host_tensor"};
// The last member: a checksum of everything in front of it.
inline constexpr std::string_view kChecksumStart = ",\n\"checksum\": \"";

}  // namespace shardrec::checkpoint
