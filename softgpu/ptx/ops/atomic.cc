// atom and red. Host atomics on the memory itself, so that blocks on other threads, and processes that share a mapping,
// see them; what the host cannot do in one instruction is a compare-and-swap loop.
#include <atomic>
#include <cfloat>
#include <type_traits>
#include <vector>

#include "softgpu/ptx/memory.h"
#include "softgpu/ptx/ops/half.h"
#include "softgpu/ptx/ops/integers.h"
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

struct HalfPair {
  std::uint32_t bits;
};
struct BFloat16Pair {
  std::uint32_t bits;
};

template <std::size_t kBytes>
using Word =
    std::conditional_t<kBytes == 2, std::uint16_t, std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>;

template <class Half>
Half half_from(std::uint32_t bits) {
  return std::bit_cast<Half>(static_cast<std::uint16_t>(bits));
}
template <class Half>
std::uint32_t half_bits(Half value) {
  return std::bit_cast<std::uint16_t>(value);
}

struct Add {
  template <class T>
  static T apply(T old, T value, T) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(value));
    } else {
      return static_cast<T>(old + value);
    }
  }
  static BFloat16 apply(BFloat16 old, BFloat16 value, BFloat16) { return to_bfloat16(to_float(old) + to_float(value)); }
  static HalfPair apply(HalfPair old, HalfPair value, HalfPair) {
    const _Float16 low = half_from<_Float16>(old.bits) + half_from<_Float16>(value.bits);
    const _Float16 high = half_from<_Float16>(old.bits >> 16) + half_from<_Float16>(value.bits >> 16);
    return {half_bits(high) << 16 | half_bits(low)};
  }
  static BFloat16Pair apply(BFloat16Pair old, BFloat16Pair value, BFloat16Pair) {
    const auto sum = [&](int shift) {
      return half_bits(apply(half_from<BFloat16>(old.bits >> shift), half_from<BFloat16>(value.bits >> shift), {}));
    };
    return {sum(16) << 16 | sum(0)};
  }
};
// Of f32 in global memory: subnormal numbers are zeros of their sign, before and behind it. Shared memory keeps them.
struct AddFlushed {
  static float flush(float value) {
    return __builtin_fabsf(value) < FLT_MIN ? __builtin_copysignf(0.0f, value) : value;
  }
  static float apply(float old, float value, float) { return flush(flush(old) + flush(value)); }
};
template <class Op>
struct Update {
  template <class T>
  static T apply(T old, T value, T) {
    return Op::apply(old, value);
  }
};
struct Exchange {
  template <class T>
  static T apply(T, T value, T) {
    return value;
  }
};
struct CompareSwap {
  template <class T>
  static T apply(T old, T expected, T value) {
    return old == expected ? value : old;
  }
};
struct Increment {
  template <class T>
  static T apply(T old, T bound, T) {
    return old >= bound ? T{0} : static_cast<T>(old + 1);
  }
};
struct Decrement {
  template <class T>
  static T apply(T old, T bound, T) {
    return old == 0 || old > bound ? bound : static_cast<T>(old - 1);
  }
};

// Returns the old value.
template <class Op, class T>
T update(std::byte* host, T value, T second) {
  using W = Word<sizeof(T)>;
  std::atomic_ref<W> word(*reinterpret_cast<W*>(host));
  if constexpr (std::is_same_v<Op, Add> && std::is_integral_v<T>)
    return static_cast<T>(word.fetch_add(static_cast<W>(value)));
  W old = word.load(std::memory_order_relaxed);
  for (;;) {
    const W changed = std::bit_cast<W>(Op::apply(std::bit_cast<T>(old), value, second));
    if (word.compare_exchange_weak(old, changed)) return std::bit_cast<T>(old);
  }
}

bool is_shared(Space space, std::uint64_t address) {
  return space == Space::kShared || (space == Space::kGeneric && address - kSharedWindow < kWindowBytes);
}

template <class Op, class T>
T update_in(Space space, std::uint64_t address, std::byte* host, T value, T second) {
  if constexpr (std::is_same_v<Op, Add> && std::is_same_v<T, float>) {
    if (!is_shared(space, address)) return update<AddFlushed, T>(host, value, second);
  }
  return update<Op, T>(host, value, second);
}

template <class Op, class T, class A>
const Instruction* atomic(Warp& warp, const Instruction* at) {
  // A destination may be one of the source rows.
  alignas(kRowAlignment) A address[kLanes];
  alignas(kRowAlignment) T value[kLanes], second[kLanes];
  std::memcpy(address, source<A>(warp, at->a), sizeof address);
  std::memcpy(value, source<T>(warp, at->b), sizeof value);
  std::memcpy(second, source<T>(warp, at->c == kNoRow ? at->b : at->c), sizeof second);
  const auto space = static_cast<Space>(at->mode);
  for (std::uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    const A where = static_cast<A>(address[lane] + static_cast<A>(at->immediate));
    std::byte* host = locate(warp, at, space, where, sizeof(T), lane);
    if (host == nullptr) return nullptr;
    const T old = update_in<Op, T>(space, where, host, value[lane], second[lane]);
    if (at->dst != kNoRow) row<T>(warp, at->dst)[lane] = old;
  }
  return at + 1;
}

template <class Op, class T>
Handler pick(bool is_wide) {
  return is_wide ? atomic<Op, T, std::uint64_t> : atomic<Op, T, std::uint32_t>;
}

template <class Op>
Handler integer_handler(Type type, bool is_wide) {
  return with_word(type, [&](auto tag) { return pick<Op, typename decltype(tag)::type>(is_wide); });
}

Handler add_handler(Type type, bool is_wide) {
  switch (type) {
    case Type::kF32: return pick<Add, float>(is_wide);
    case Type::kF64: return pick<Add, double>(is_wide);
    case Type::kF16: return pick<Add, _Float16>(is_wide);
    case Type::kBf16: return pick<Add, BFloat16>(is_wide);
    case Type::kF16x2: return pick<Add, HalfPair>(is_wide);
    case Type::kBf16x2: return pick<Add, BFloat16Pair>(is_wide);
    default: return integer_handler<Add>(type, is_wide);
  }
}

Handler take_handler(Decoder& decoder, Type type, bool is_wide, bool& compares) {
  if (decoder.text.take("add")) return add_handler(type, is_wide);
  if (decoder.text.take("min")) return integer_handler<Update<Minimum>>(type, is_wide);
  if (decoder.text.take("max")) return integer_handler<Update<Maximum>>(type, is_wide);
  if (decoder.text.take("and")) return integer_handler<Update<And>>(bits_of(type), is_wide);
  if (decoder.text.take("or")) return integer_handler<Update<Or>>(bits_of(type), is_wide);
  if (decoder.text.take("xor")) return integer_handler<Update<Xor>>(bits_of(type), is_wide);
  if (decoder.text.take("exch")) return integer_handler<Exchange>(bits_of(type), is_wide);
  if (decoder.text.take("inc")) return type == Type::kU32 ? pick<Increment, std::uint32_t>(is_wide) : nullptr;
  if (decoder.text.take("dec")) return type == Type::kU32 ? pick<Decrement, std::uint32_t>(is_wide) : nullptr;
  compares = decoder.text.take("cas");
  if (compares && size_of(type) == 2) return pick<CompareSwap, std::uint16_t>(is_wide);
  return compares ? integer_handler<CompareSwap>(bits_of(type), is_wide) : nullptr;
}

struct AtomicForm {
  Type type = Type::kB32;
  Space space = Space::kGeneric;
  bool returns = false;
  bool compares = false;
  Handler handler = nullptr;
};

// One element: `b` and, of compare-and-swap, `c` are rows; the old value goes to `result` if there is one.
void emit_atomic(Decoder& decoder, const AtomicForm& form, const Address& address, std::int32_t b, std::int32_t c,
                 const ast::Operand* result) {
  const bool keeps = result != nullptr && result->kind != ast::Operand::Kind::kSink;
  const auto dst = keeps ? decoder.rows.write(*result, form.type) : kNoRow;
  Instruction& instruction = decoder.writer.emit_memory(form.handler);
  instruction.dst = dst;
  instruction.a = address.row;
  instruction.b = b;
  instruction.c = c;
  instruction.immediate = address.offset;
  instruction.mode = static_cast<std::uint16_t>(form.space);
}

struct Copy {
  template <class T>
  static T apply(T value) {
    return value;
  }
};

std::int32_t copied(Decoder& decoder, std::int32_t row, std::size_t bytes) {
  const Handler handler = with_bits(bytes, [](auto tag) -> Handler {
    using T = typename decltype(tag)::type;
    return unary<Copy, T, T>;
  });
  return emit_prepared(decoder, handler, row);
}

// red.global.add.v2.f32 [a], {b, c}: every element is an atomic of its own.
void emit_vector_atomic(Decoder& decoder, const AtomicForm& form, Address address, int count) {
  const auto operands = decoder.text.operands();
  const ast::Operand& values = operands[form.returns ? 2 : 1];
  const bool fits = values.kind == ast::Operand::Kind::kList && values.count == count && !form.compares &&
                    (!form.returns || (operands[0].kind == ast::Operand::Kind::kList && operands[0].count == count));
  if (!fits) return decoder.text.refuse("vector and operand do not agree");
  const auto elements = decoder.function.elements_of(values);
  std::vector<std::int32_t> rows;
  for (const ast::Operand& element : elements) rows.push_back(decoder.rows.read(element, form.type));
  // A result may lie where the address or a later element comes from.
  if (form.returns) {
    address.row = copied(decoder, address.row, address.is_wide ? 8 : 4);
    for (std::int32_t& row : rows) row = copied(decoder, row, size_of(form.type));
  }
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const ast::Operand* result = form.returns ? &decoder.function.elements_of(operands[0])[i] : nullptr;
    emit_atomic(decoder, form, address, rows[i], kNoRow, result);
    address.offset += static_cast<std::int64_t>(size_of(form.type));
  }
}

void decode_atomic(Decoder& decoder) {
  constexpr std::string_view kVectors[] = {"v2", "v4", "v8"};
  AtomicForm form;
  form.returns = decoder.text.opcode() == "atom";
  form.type = decoder.text.take_type();
  form.space = decoder.text.maybe_space().value_or(Space::kGeneric);
  for (const char* word : {"relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "noftz"})
    decoder.text.take(word);
  const bool has_policy = decoder.text.take("L2::cache_hint");
  const int vector = decoder.text.take_any(kVectors);
  if (form.space != Space::kGlobal && form.space != Space::kShared && form.space != Space::kGeneric) {
    return decoder.text.refuse("the state space has no atomics");
  }
  const std::size_t first = form.returns ? 1 : 0;
  if (!decoder.text.expect_operands(first + 2, first + 4)) return;
  const auto operands = decoder.text.operands();
  const Address address = decoder.rows.address(operands[first], form.space);
  form.handler = take_handler(decoder, form.type, address.is_wide, form.compares);
  if (operands.size() != first + 2 + (form.compares ? 1 : 0) + (has_policy ? 1 : 0))
    return decoder.text.refuse("wrong number of operands", LoadError::Kind::kSyntax);
  if (vector >= 0) return emit_vector_atomic(decoder, form, address, 2 << vector);
  const auto b = decoder.rows.read(operands[first + 1], form.type);
  const auto c = form.compares ? decoder.rows.read(operands[first + 2], form.type) : kNoRow;
  emit_atomic(decoder, form, address, b, c, form.returns ? &operands[0] : nullptr);
}

constexpr Opcode kOpcodes[] = {{"atom", decode_atomic}, {"red", decode_atomic}};

}  // namespace

std::span<const Opcode> atomic_opcodes() {
  return kOpcodes;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
