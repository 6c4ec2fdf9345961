// Extended-precision integers: add.cc addc sub.cc subc mad.cc madc. The carry is a register of its own, a bit per lane.
#include <type_traits>

#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

enum class Kind { kAdd, kSubtract, kMultiplyLow, kMultiplyHigh };

// mode
constexpr std::uint16_t kReadsCarry = 1;
constexpr std::uint16_t kWritesCarry = 2;

// The product of two's complement values; its bits above 2 * width repeat the sign.
template <class T>
unsigned __int128 signed_product(T a, T b) {
  using Signed = std::make_signed_t<T>;
  return static_cast<unsigned __int128>(static_cast<__int128>(static_cast<Signed>(a)) * static_cast<Signed>(b));
}

template <class T, Kind kKind, bool kSignedProduct = false>
const Instruction* with_carry(Warp& warp, const Instruction* at) {
  using Wide = unsigned __int128;
  constexpr int kBits = sizeof(T) * 8;
  const T* a = source<T>(warp, at->a);
  const T* b = source<T>(warp, at->b);
  const T* c = at->c == kNoRow ? a : source<T>(warp, at->c);
  const std::uint32_t carry_in = (at->mode & kReadsCarry) != 0 ? warp.carry : 0;
  std::uint32_t carry_out = 0;
  T values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const Wide carry = carry_in >> lane & 1;
    const Wide product = kSignedProduct ? signed_product(a[lane], b[lane]) : static_cast<Wide>(a[lane]) * b[lane];
    Wide sum = 0;
    if constexpr (kKind == Kind::kAdd) sum = static_cast<Wide>(a[lane]) + b[lane] + carry;
    if constexpr (kKind == Kind::kSubtract) sum = static_cast<Wide>(a[lane]) - b[lane] - carry;
    if constexpr (kKind == Kind::kMultiplyLow) sum = static_cast<Wide>(static_cast<T>(product)) + c[lane] + carry;
    if constexpr (kKind == Kind::kMultiplyHigh)
      sum = static_cast<Wide>(static_cast<T>(product >> kBits)) + c[lane] + carry;
    values[lane] = static_cast<T>(sum);
    carry_out |= static_cast<std::uint32_t>(sum >> kBits & 1) << lane;
  }
  blend(row<T>(warp, at->dst), values, warp.mask);
  if ((at->mode & kWritesCarry) != 0) warp.carry = (warp.carry & ~warp.mask) | (carry_out & warp.mask);
  return at + 1;
}

// Only the high half of a product depends on the sign.
template <Kind kKind>
Handler carry_handler(Type type) {
  if (is_float(type)) return nullptr;
  if constexpr (kKind == Kind::kMultiplyHigh) {
    if (type == Type::kS32) return with_carry<std::uint32_t, kKind, true>;
    if (type == Type::kS64) return with_carry<std::uint64_t, kKind, true>;
  }
  if (size_of(type) == 4) return with_carry<std::uint32_t, kKind>;
  if (size_of(type) == 8) return with_carry<std::uint64_t, kKind>;
  return nullptr;
}

void emit_carry(Decoder& decoder, Type type, bool reads, bool writes) {
  const std::string_view name = decoder.text.opcode();
  const bool multiplies = name == "mad" || name == "madc";
  Handler handler = nullptr;
  if (name == "add" || name == "addc") handler = carry_handler<Kind::kAdd>(type);
  if (name == "sub" || name == "subc") handler = carry_handler<Kind::kSubtract>(type);
  if (multiplies) {
    handler = decoder.text.take("lo")   ? carry_handler<Kind::kMultiplyLow>(type)
              : decoder.text.take("hi") ? carry_handler<Kind::kMultiplyHigh>(type)
                                        : nullptr;
  }
  const std::size_t count = multiplies ? 4 : 3;
  if (!decoder.text.expect_operands(count, count)) return;
  const auto operands = decoder.text.operands();
  const auto a = decoder.rows.read(operands[1], type), b = decoder.rows.read(operands[2], type);
  const auto c = multiplies ? decoder.rows.read(operands[3], type) : kNoRow;
  const auto dst = decoder.rows.write(operands[0], type);
  Instruction& instruction = decoder.writer.emit(handler);
  instruction.dst = dst;
  instruction.a = a;
  instruction.b = b;
  instruction.c = c;
  instruction.mode = static_cast<std::uint16_t>((reads ? kReadsCarry : 0) | (writes ? kWritesCarry : 0));
}

void decode_with_carry_in(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  emit_carry(decoder, type, true, decoder.text.take("cc"));
}

constexpr Opcode kOpcodes[] = {
    {"addc", decode_with_carry_in}, {"subc", decode_with_carry_in}, {"madc", decode_with_carry_in}};

}  // namespace

bool decode_carry(Decoder& decoder, Type type) {
  if (!decoder.text.take("cc")) return false;
  emit_carry(decoder, type, false, true);
  return true;
}

std::span<const Opcode> carry_opcodes() {
  return kOpcodes;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
