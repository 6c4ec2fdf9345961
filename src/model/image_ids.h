// User and group ids of images on the host. An image has ids 0 to 65535. The one its program runs as is the id that all
// functions have on the host, so that it may use what the platform shares with functions; each other id is moved to a
// range of its own, far from the host's users.
//
//   program's id 1000, functions' id 65530:   1000 -> 65530,  0 -> kImageIdBase,  33 -> kImageIdBase + 33
#pragma once

#include <cstdint>
#include <vector>

namespace fairlead {

inline constexpr std::uint32_t kImageIds = 65536;
// The last block of the range that Linux systems leave to containers (524288 to 1879048191).
inline constexpr std::uint32_t kImageIdBase = 1878982656;

// A range of a user namespace's id map.
struct IdRange {
  std::uint32_t inside = 0;
  std::uint32_t outside = 0;
  std::uint32_t count = 0;
  bool operator==(const IdRange&) const = default;
};

// REQUIRES: program_id < kImageIds.
inline std::vector<IdRange> image_id_map(std::uint32_t program_id, std::uint32_t functions_id) {
  std::vector<IdRange> map;
  if (program_id > 0) map.push_back({0, kImageIdBase, program_id});
  map.push_back({program_id, functions_id, 1});
  const std::uint32_t next = program_id + 1;
  if (next < kImageIds) map.push_back({next, kImageIdBase + next, kImageIds - next});
  return map;
}

// The same for one id. Ids above the range, which images hardly have, become nobody's.
inline std::uint32_t host_id(std::uint32_t id, std::uint32_t program_id, std::uint32_t functions_id) {
  constexpr std::uint32_t kNobody = 65534;
  if (id == program_id) return functions_id;
  return kImageIdBase + (id < kImageIds ? id : kNobody);
}

}  // namespace fairlead
