// Names of devices that no two machines share: 16 bytes, written xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace softgpu {

using Uuid = std::array<unsigned char, 16>;

// A new one, of version 4.
Uuid random_uuid();

std::string uuid_string(const Uuid& uuid);

// Nothing unless `text` is exactly what uuid_string writes, in either case of letters.
std::optional<Uuid> parse_uuid(std::string_view text);

}  // namespace softgpu
