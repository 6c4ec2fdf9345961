// Video instructions: vadd vsub vabsdiff vmin vmax vshl vshr vset vmad on a selected byte or half of each operand, and
// vadd2, vadd4 and their relatives on all halves or bytes at once.
//
// vadd.s32.u8.s8.sat.min d, a.b3, b.b0, c: byte 3 of a plus byte 0 of b (signed), saturated to 32 bits, and the lesser
// of that and c. Intermediate results are exact.
#include <algorithm>

#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

using s64 = std::int64_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

enum class Operation : std::uint8_t { kAdd, kSubtract, kDifference, kMinimum, kMaximum, kAverage, kLeft, kRight, kSet };
enum class Combine : std::uint8_t { kNone, kAdd, kMinimum, kMaximum };

// Everything about an instruction but its rows; one 64-bit immediate holds it.
struct Video {
  Operation operation = Operation::kAdd;
  Combine combine = Combine::kNone;
  std::uint8_t comparison = 0;  // of vset: eq ne lt le gt ge
  bool signed_d = false, signed_a = false, signed_b = false;
  bool saturates = false;
  bool wraps_count = false;      // shifts: the count modulo 32, else at most 32
  std::uint8_t width = 32;       // of an element: 8, 16, 32
  std::uint8_t merge_shift = 0;  // scalar forms: where the result is put into c
  bool merges = false;
  std::uint8_t mask = 0;                    // packed forms: the elements that are computed
  std::uint8_t a_select = 0, b_select = 0;  // scalar forms: bits 0-4 shift, 5-6 log2 of bytes
};

bool compare(int comparison, s64 a, s64 b) {
  switch (comparison) {
    case 0: return a == b;
    case 1: return a != b;
    case 2: return a < b;
    case 3: return a <= b;
    case 4: return a > b;
    default: return a >= b;
  }
}

s64 compute(const Video& video, s64 a, s64 b) {
  switch (video.operation) {
    case Operation::kAdd: return a + b;
    case Operation::kSubtract: return a - b;
    case Operation::kDifference: return a < b ? b - a : a - b;
    case Operation::kMinimum: return std::min(a, b);
    case Operation::kMaximum: return std::max(a, b);
    case Operation::kAverage: return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
    case Operation::kSet: return compare(video.comparison, a, b);
    case Operation::kLeft:
    case Operation::kRight: break;
  }
  const s64 count = video.wraps_count ? b & 31 : std::min<s64>(b, 32);
  return video.operation == Operation::kRight ? a >> count : static_cast<s64>(static_cast<u64>(a) << count);
}

s64 saturated(s64 value, unsigned width, bool is_signed) {
  const s64 most = (s64{1} << (is_signed ? width - 1 : width)) - 1;
  return std::clamp(value, is_signed ? -most - 1 : s64{0}, most);
}

s64 extended(u32 bits, unsigned width, bool is_signed) {
  const unsigned unused = 64 - width;
  const u64 raised = u64{bits} << unused;
  return is_signed ? static_cast<s64>(raised) >> unused : static_cast<s64>(raised >> unused);
}

u32 combined(const Video& video, u32 result, u32 c) {
  if (video.combine == Combine::kAdd) return result + c;
  const s64 a = extended(result, 32, video.signed_d), b = extended(c, 32, video.signed_d);
  return static_cast<u32>(video.combine == Combine::kMinimum ? std::min(a, b) : std::max(a, b));
}

s64 selected(u32 word, std::uint8_t select, bool is_signed) {
  return extended(word >> (select & 31), 8u << (select >> 5), is_signed);
}

u32 scalar(const Video& video, u32 a, u32 b, u32 c) {
  const s64 left = selected(a, video.a_select, video.signed_a), right = selected(b, video.b_select, video.signed_b);
  s64 result = compute(video, left, right);
  if (video.saturates) result = saturated(result, video.width, video.signed_d);
  if (video.merges) {
    const u32 field = (1u << video.width) - 1;
    return (c & ~(field << video.merge_shift)) | (static_cast<u32>(result) & field) << video.merge_shift;
  }
  return video.combine == Combine::kNone ? static_cast<u32>(result) : combined(video, static_cast<u32>(result), c);
}

// selectors: a nibble per element, which names an element of the pair of a and b.
u32 packed(const Video& video, u32 selectors_a, u32 selectors_b, u32 a, u32 b, u32 c) {
  const unsigned width = video.width, count = 32 / width;
  const u64 pair = u64{b} << 32 | a;
  const u32 field = (1u << width) - 1;
  const auto pick = [&](u32 selectors, unsigned i, bool is_signed) {
    return extended(static_cast<u32>(pair >> ((selectors >> (4 * i) & 7) * width)) & field, width, is_signed);
  };
  u32 lanes = c, sum = c;
  for (unsigned i = 0; i < count; ++i) {
    if ((video.mask >> i & 1) == 0) continue;
    s64 result = compute(video, pick(selectors_a, i, video.signed_a), pick(selectors_b, i, video.signed_b));
    if (video.saturates) result = saturated(result, width, video.signed_d);
    lanes = (lanes & ~(field << (i * width))) | (static_cast<u32>(result) & field) << (i * width);
    sum += static_cast<u32>(result);
  }
  return video.combine == Combine::kAdd ? sum : lanes;
}

// The description does not fit the instruction, so it is kept as rows that are none.
struct Description {
  Video video;
  u32 selectors_a = 0, selectors_b = 0;
};
constexpr std::size_t kDescriptionWords = (sizeof(Description) + 3) / 4;

const RowList* kept(Decoder& decoder, const Description& description) {
  RowList list;
  list.rows.resize(kDescriptionWords);
  std::memcpy(list.rows.data(), &description, sizeof description);
  return decoder.writer.keep(std::move(list));
}

template <bool kPacked>
const Instruction* video(Warp& warp, const Instruction* at) {
  Description description;
  std::memcpy(static_cast<void*>(&description), static_cast<const RowList*>(at->data)->rows.data(), sizeof description);
  const u32* a = source<u32>(warp, at->a);
  const u32* b = source<u32>(warp, at->b);
  const u32* c = at->c == kNoRow ? nullptr : source<u32>(warp, at->c);
  write_lanes<u32>(warp, at->dst, [&](int lane) {
    const u32 third = c == nullptr ? 0 : c[lane];
    if constexpr (kPacked) {
      return packed(description.video, description.selectors_a, description.selectors_b, a[lane], b[lane], third);
    } else {
      return scalar(description.video, a[lane], b[lane], third);
    }
  });
  return at + 1;
}

// vmad: a * b + c, scaled. mode: bit 0 signed sum, 1 saturates, 2 negates the product, 3 negates c, 4 plus one, 5-9 the
// shift; d and immediate hold the selectors.
const Instruction* multiply_add(Warp& warp, const Instruction* at) {
  const u32* a = source<u32>(warp, at->a);
  const u32* b = source<u32>(warp, at->b);
  const u32* c = source<u32>(warp, at->c);
  const auto bit = [&](int i) { return (at->mode >> i & 1) != 0; };
  const auto a_select = static_cast<std::uint8_t>(at->immediate),
             b_select = static_cast<std::uint8_t>(at->immediate >> 8);
  const bool signed_a = (at->immediate >> 16 & 1) != 0, signed_b = (at->immediate >> 17 & 1) != 0;
  const bool is_signed_sum = bit(0);
  write_lanes<u32>(warp, at->dst, [&](int lane) {
    __int128 sum = static_cast<__int128>(selected(a[lane], a_select, signed_a)) * selected(b[lane], b_select, signed_b);
    if (bit(2)) sum = -sum;
    const s64 third = extended(c[lane], 32, is_signed_sum);
    sum += bit(3) ? -third : third;
    if (bit(4)) sum += 1;
    sum >>= at->mode >> 5;
    if (!bit(1)) return static_cast<u32>(sum);
    const __int128 least = is_signed_sum ? INT32_MIN : 0, most = is_signed_sum ? INT32_MAX : UINT32_MAX;
    return static_cast<u32>(std::clamp(sum, least, most));
  });
  return at + 1;
}

// ---- decoding

// A register without its sign and selector.
ast::Operand plain(ast::Operand operand) {
  if (operand.kind == ast::Operand::Kind::kRegister) {
    operand.negated = false;
    operand.name = {};
  }
  return operand;
}

std::string_view selector_of(const ast::Operand& operand) {
  return operand.kind == ast::Operand::Kind::kRegister ? operand.name : std::string_view{};
}

// "b3" and "h1": shift and log2 of the bytes; empty selects the whole word.
bool parse_selector(std::string_view text, std::uint8_t& out) {
  out = 2 << 5;
  if (text.empty()) return true;
  if (text.size() != 2 || text[1] < '0') return false;
  const int index = text[1] - '0';
  if (text[0] == 'b' && index < 4) {
    out = static_cast<std::uint8_t>(8 * index);
    return true;
  }
  out = static_cast<std::uint8_t>(16 * index | 1 << 5);
  return text[0] == 'h' && index < 2;
}

// "h32" or "b7654": the first digit is the highest element.
bool parse_selectors(std::string_view text, unsigned width, u32 otherwise, u32& out) {
  out = otherwise;
  if (text.empty()) return true;
  const unsigned count = 32 / width;
  if (text.size() != count + 1 || text[0] != (width == 16 ? 'h' : 'b')) return false;
  out = 0;
  for (unsigned i = 0; i < count; ++i) {
    const int element = text[count - i] - '0';
    if (element < 0 || element >= static_cast<int>(2 * count)) return false;
    out |= static_cast<u32>(element) << (4 * i);
  }
  return true;
}

// "h1" or "b320": the elements that are computed; all without one.
bool parse_mask(std::string_view text, unsigned width, std::uint8_t& out) {
  const int count = static_cast<int>(32 / width);
  out = static_cast<std::uint8_t>((1 << count) - 1);
  if (text.empty()) return true;
  if (text[0] != (width == 16 ? 'h' : 'b') || text.size() < 2) return false;
  out = 0;
  for (const char digit : text.substr(1)) {
    if (digit < '0' || digit >= '0' + count) return false;
    out = static_cast<std::uint8_t>(out | 1 << (digit - '0'));
  }
  return true;
}

bool is_video_type(Type type) {
  return type == Type::kU32 || type == Type::kS32;
}

// vset has no type of the result: 1 and 0 are unsigned.
bool take_types(Decoder& decoder, Video& out) {
  const bool has_result = out.operation != Operation::kSet;
  const Type d = has_result ? decoder.text.take_type() : Type::kU32;
  const Type a = decoder.text.take_type(), b = decoder.text.take_type();
  out.signed_d = is_signed(d);
  out.signed_a = is_signed(a);
  out.signed_b = is_signed(b);
  return is_video_type(d) && is_video_type(a) && is_video_type(b);
}

bool take_variant(Decoder& decoder, Video& out) {
  constexpr std::string_view kComparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  if (out.operation == Operation::kLeft || out.operation == Operation::kRight) {
    out.wraps_count = decoder.text.take("wrap");
    if (!out.wraps_count && !decoder.text.take("clamp")) return false;
  }
  if (out.operation == Operation::kSet) {
    const int comparison = decoder.text.take_any(kComparisons);
    if (comparison < 0) return false;
    out.comparison = static_cast<std::uint8_t>(comparison);
  }
  out.saturates = decoder.text.take("sat");
  constexpr std::string_view kCombines[] = {"add", "min", "max"};
  out.combine = static_cast<Combine>(decoder.text.take_any(kCombines) + 1);
  return true;
}

void emit_video(Decoder& decoder, const Description& description, bool is_packed, bool has_third) {
  const auto operands = decoder.text.operands();
  const auto a = decoder.rows.read(plain(operands[1]), Type::kU32),
             b = decoder.rows.read(plain(operands[2]), Type::kU32);
  const auto c = has_third ? decoder.rows.read(operands[3], Type::kU32) : kNoRow;
  const auto dst = decoder.rows.write(plain(operands[0]), Type::kU32);
  const RowList* data = kept(decoder, description);
  Instruction& instruction = decoder.writer.emit(is_packed ? video<true> : video<false>);
  instruction.dst = dst;
  instruction.a = a;
  instruction.b = b;
  instruction.c = c;
  instruction.data = data;
}

void decode_scalar(Decoder& decoder, Video out) {
  if (!take_types(decoder, out) || !take_variant(decoder, out)) {
    return decoder.text.refuse("types or modifiers do not fit", LoadError::Kind::kSyntax);
  }
  if (!decoder.text.expect_operands(3, 4)) return;
  const auto operands = decoder.text.operands();
  std::uint8_t merge = 0;
  out.merges = !selector_of(operands[0]).empty();
  if (!parse_selector(selector_of(operands[0]), merge) || !parse_selector(selector_of(operands[1]), out.a_select) ||
      !parse_selector(selector_of(operands[2]), out.b_select)) {
    return decoder.text.refuse("a selector does not exist", LoadError::Kind::kSyntax);
  }
  out.merge_shift = merge & 31;
  out.width = static_cast<std::uint8_t>(8u << (merge >> 5));
  const bool wants_third = out.merges || out.combine != Combine::kNone;
  if (out.merges && out.combine != Combine::kNone)
    return decoder.text.refuse("a result is merged or combined, not both");
  if (!decoder.text.expect_operands(wants_third ? 4 : 3, wants_third ? 4 : 3)) return;
  emit_video(decoder, {out, 0, 0}, false, wants_third);
}

void decode_packed(Decoder& decoder, Video out, unsigned width) {
  out.width = static_cast<std::uint8_t>(width);
  if (!take_types(decoder, out) || !take_variant(decoder, out)) {
    return decoder.text.refuse("types or modifiers do not fit", LoadError::Kind::kSyntax);
  }
  if (out.combine != Combine::kNone && out.combine != Combine::kAdd) {
    return decoder.text.refuse("the results of elements can only be added");
  }
  // c: what the sum begins with, or the elements that are not computed.
  if (!decoder.text.expect_operands(4, 4)) return;
  const auto operands = decoder.text.operands();
  Description description;
  const u32 in_a = width == 16 ? 0x10 : 0x3210, in_b = width == 16 ? 0x32 : 0x7654;
  if (!parse_mask(selector_of(operands[0]), width, out.mask) ||
      !parse_selectors(selector_of(operands[1]), width, in_a, description.selectors_a) ||
      !parse_selectors(selector_of(operands[2]), width, in_b, description.selectors_b)) {
    return decoder.text.refuse("a selector does not exist", LoadError::Kind::kSyntax);
  }
  description.video = out;
  emit_video(decoder, description, true, true);
}

struct Named {
  std::string_view name;
  Operation operation;
};
constexpr Named kOperations[] = {
    {"vadd", Operation::kAdd},     {"vsub", Operation::kSubtract}, {"vabsdiff", Operation::kDifference},
    {"vmin", Operation::kMinimum}, {"vmax", Operation::kMaximum},  {"vavrg", Operation::kAverage},
    {"vshl", Operation::kLeft},    {"vshr", Operation::kRight},    {"vset", Operation::kSet},
};

void decode_video(Decoder& decoder) {
  std::string_view name = decoder.text.opcode();
  const char last = name.back();
  const bool is_packed = last == '2' || last == '4';
  if (is_packed) name.remove_suffix(1);
  Video out;
  for (const Named& named : kOperations) {
    if (named.name == name) out.operation = named.operation;
  }
  if (is_packed) return decode_packed(decoder, out, last == '2' ? 16 : 8);
  decode_scalar(decoder, out);
}

void decode_multiply_add(Decoder& decoder) {
  const Type d = decoder.text.take_type(), a = decoder.text.take_type(), b = decoder.text.take_type();
  if (!is_video_type(d) || !is_video_type(a) || !is_video_type(b)) return decoder.text.refuse("the types do not fit");
  const bool saturates = decoder.text.take("sat"), adds_one = decoder.text.take("po");
  const unsigned shift = decoder.text.take("shr7") ? 7 : decoder.text.take("shr15") ? 15 : 0;
  if (!decoder.text.expect_operands(4, 4)) return;
  const auto operands = decoder.text.operands();
  std::uint8_t a_select = 0, b_select = 0;
  if (!parse_selector(selector_of(operands[1]), a_select) || !parse_selector(selector_of(operands[2]), b_select)) {
    return decoder.text.refuse("a selector does not exist", LoadError::Kind::kSyntax);
  }
  const bool negates_product = operands[1].negated != operands[2].negated, negates_third = operands[3].negated;
  const bool is_signed_sum = is_signed(a) || is_signed(b) || negates_product || negates_third;
  const auto row_a = decoder.rows.read(plain(operands[1]), Type::kU32),
             row_b = decoder.rows.read(plain(operands[2]), Type::kU32);
  const auto row_c = decoder.rows.read(plain(operands[3]), Type::kU32);
  const auto dst = decoder.rows.write(operands[0], Type::kU32);
  Instruction& instruction = decoder.writer.emit(multiply_add);
  instruction.dst = dst;
  instruction.a = row_a;
  instruction.b = row_b;
  instruction.c = row_c;
  instruction.mode = static_cast<std::uint16_t>(is_signed_sum | saturates << 1 | negates_product << 2 |
                                                negates_third << 3 | adds_one << 4 | shift << 5);
  instruction.immediate = a_select | b_select << 8 | is_signed(a) << 16 | is_signed(b) << 17;
}

constexpr Opcode kOpcodes[] = {
    {"vadd", decode_video},  {"vsub", decode_video},   {"vabsdiff", decode_video},    {"vmin", decode_video},
    {"vmax", decode_video},  {"vshl", decode_video},   {"vshr", decode_video},        {"vset", decode_video},
    {"vadd2", decode_video}, {"vsub2", decode_video},  {"vabsdiff2", decode_video},   {"vmin2", decode_video},
    {"vmax2", decode_video}, {"vset2", decode_video},  {"vavrg2", decode_video},      {"vadd4", decode_video},
    {"vsub4", decode_video}, {"vmin4", decode_video},  {"vabsdiff4", decode_video},   {"vmax4", decode_video},
    {"vset4", decode_video}, {"vavrg4", decode_video}, {"vmad", decode_multiply_add},
};

}  // namespace

std::span<const Opcode> video_opcodes() {
  return kOpcodes;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
