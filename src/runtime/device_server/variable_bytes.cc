#include "runtime/device_server/variable_bytes.h"

#include <algorithm>

namespace fairlead {
namespace {

constexpr std::size_t kGrain = 64;

}  // namespace

VariablePieces pieces_of(std::span<const std::byte> image) {
  VariablePieces pieces;
  std::size_t end = 0;  // of the last piece
  for (std::size_t at = 0; at < image.size(); at += kGrain) {
    const auto grain = image.subspan(at, std::min(kGrain, image.size() - at));
    if (std::ranges::all_of(grain, [](std::byte byte) { return byte == std::byte{0}; })) continue;
    if (pieces.empty() || end != at) pieces.push_back({.offset = at, .bytes = {}});
    pieces.back().bytes.append(reinterpret_cast<const char*>(grain.data()), grain.size());
    end = at + grain.size();
  }
  return pieces;
}

Result<VariablePieces> joined(const VariablePieces& pieces, std::uint64_t bytes, std::uint64_t most) {
  VariablePieces all;
  std::uint64_t end = 0;  // of the last piece
  for (const auto& piece : pieces) {
    const std::uint64_t size = piece.bytes.size();
    if (piece.offset < end || piece.offset > bytes || size > bytes - piece.offset) {
      return fail(Errc::kCorrupt, "a piece of {} bytes at {} is not behind {} and within the {} bytes of variables",
                  size, piece.offset, end, bytes);
    }
    end = piece.offset + size;
    if (all.empty() || end - all.back().offset > most) {
      all.push_back(piece);
    } else {
      all.back().bytes.resize(piece.offset - all.back().offset);
      all.back().bytes += piece.bytes;
    }
  }
  return all;
}

}  // namespace fairlead
