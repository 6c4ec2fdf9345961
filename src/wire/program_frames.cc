#include "wire/program_frames.h"

#include <algorithm>

namespace fairlead::wire {
namespace {

template <typename Number>
void put(std::string& packet, Number number) {
  for (std::size_t byte = 0; byte < sizeof number; ++byte) packet.push_back(static_cast<char>(number >> 8 * byte));
}

std::uint64_t take_u64(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t byte = 8; byte-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[byte]);
  return number;
}

std::string printable(std::string_view text) {
  std::string made(text.substr(0, kMaxProgramText));
  std::replace_if(
      made.begin(), made.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return made;
}

}  // namespace

std::string encode_open_ring(std::uint64_t ring, const StageRingShape& shape) {
  std::string packet = "o";
  put(packet, ring);
  put(packet, shape.slots);
  put(packet, shape.slot_bytes);
  put(packet, shape.data_offset(0));
  put(packet, StageRingShape::round_up(shape.slot_bytes));
  return packet;
}

std::string encode_close_ring(std::uint64_t ring) {
  std::string packet = "c";
  put(packet, ring);
  return packet;
}

std::string encode_program_call(std::uint64_t call, const std::vector<ProgramTensor>& inputs,
                                const std::vector<ProgramTensor>& outputs) {
  std::string packet = "r";
  put(packet, call);
  put(packet, static_cast<std::uint16_t>(inputs.size()));
  put(packet, static_cast<std::uint16_t>(outputs.size()));
  for (const auto* all : {&inputs, &outputs}) {
    for (const ProgramTensor& one : *all) {
      put(packet, one.ring);
      put(packet, one.slot);
    }
  }
  return packet;
}

Result<ProgramSaid> decode_program_said(std::string_view packet) {
  using Kind = ProgramSaid::Kind;
  const char kind = packet.empty() ? '\0' : packet.front();
  const std::string_view rest = packet.empty() ? packet : packet.substr(1);
  if (kind == 'R' && rest.empty()) return ProgramSaid{.kind = Kind::kReady, .call = 0, .text = {}};
  if (kind == 'F') return ProgramSaid{.kind = Kind::kCannot, .call = 0, .text = printable(rest)};
  if (kind == 'D' && rest.size() == 8) return ProgramSaid{.kind = Kind::kDone, .call = take_u64(rest), .text = {}};
  if (kind == 'E' && rest.size() >= 8) {
    return ProgramSaid{.kind = Kind::kFailed, .call = take_u64(rest), .text = printable(rest.substr(8))};
  }
  return fail(Errc::kCorrupt, "a program said {} bytes that begin with {}, which is no answer", packet.size(),
              static_cast<unsigned char>(kind));
}

}  // namespace fairlead::wire
