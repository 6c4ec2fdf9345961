// What the node and a model server say to each other: fixed packets over a SOCK_SEQPACKET socket pair. Both are of one
// program, started by each other, so a packet that is wrong is a bug, but for one case: the file was replaced by another
// release while the node ran. So each packet begins with kind and version; who gets another version says so and ends.
//
//   kCreate tensor, bytes  ->  kBlocks + descriptors (as many packets as it takes), kCreated      or kFull, kFailed
//   kHash tensor           ->  kHashed, digest                                                    or kFailed
//   kDrop tensor           ->  kDropped, once its memory is free as far as programs have let it go
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace fairlead::model_server {

inline constexpr std::uint32_t kProtocolVersion = 2;

enum class OrderKind : std::uint32_t { kCreate = 1, kHash = 2, kDrop = 3 };
struct Order {
  OrderKind kind = OrderKind::kCreate;
  std::uint32_t version = kProtocolVersion;
  std::uint64_t tensor = 0;
  std::uint64_t bytes = 0;
  std::uint32_t tenant = 0;  // a number of the node's, for whose turn it is
  std::uint32_t reserved = 0;
};

enum class ReportKind : std::uint32_t { kBlocks = 1, kCreated = 2, kFull = 3, kFailed = 4, kHashed = 5, kDropped = 6 };
struct Report {
  ReportKind kind = ReportKind::kBlocks;
  std::uint32_t version = kProtocolVersion;
  std::uint64_t tensor = 0;
  std::array<std::uint8_t, 32> digest{};
  char message[256] = {};  // kFull, kFailed; ends in NUL
};

// Of a packet of whichever version. Empty: it is too short to say.
inline std::optional<std::uint32_t> version_of(std::string_view packet) {
  std::uint32_t head[2];
  if (packet.size() < sizeof head) return std::nullopt;
  std::memcpy(head, packet.data(), sizeof head);
  return head[1];
}

// A tensor's blocks: whole ones, and what is left in whole granules.
inline constexpr std::uint64_t kBlockBytes = 64 << 20;
inline constexpr std::uint64_t kGranuleBytes = 2 << 20;
inline std::uint64_t rounded(std::uint64_t bytes) {
  return (bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
}
inline std::size_t block_count(std::uint64_t bytes) {
  return static_cast<std::size_t>((bytes + kBlockBytes - 1) / kBlockBytes);
}

}  // namespace fairlead::model_server
