// ld st ldu membar fence cvta isspacep, in all state spaces.
#include "softgpu/ptx/ops/access.h"
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

// ---- vectors: consecutive elements of one lane, one row each

template <class T, class A, Space kSpace>
const Instruction* load_vector(Warp& warp, const Instruction* at) {
  const auto& rows = static_cast<const RowList*>(at->data)->rows;
  alignas(kRowAlignment) A address[kLanes];  // a destination may be the address row
  std::memcpy(address, source<A>(warp, at->a), sizeof address);
  const A offset = static_cast<A>(at->immediate);
  const std::uint64_t bytes = sizeof(T) * rows.size();
  for (std::uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    const std::byte* host = locate(warp, at, kSpace, static_cast<A>(address[lane] + offset), bytes, lane);
    if (host == nullptr) return nullptr;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] != kNoRow) row<T>(warp, rows[i])[lane] = reinterpret_cast<const volatile T*>(host)[i];
    }
  }
  return at + 1;
}

template <class T, class A, Space kSpace>
const Instruction* store_vector(Warp& warp, const Instruction* at) {
  const auto& rows = static_cast<const RowList*>(at->data)->rows;
  const A* address = source<A>(warp, at->a);
  const A offset = static_cast<A>(at->immediate);
  const std::uint64_t bytes = sizeof(T) * rows.size();
  for (std::uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    std::byte* host = locate(warp, at, kSpace, static_cast<A>(address[lane] + offset), bytes, lane);
    if (host == nullptr) return nullptr;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      reinterpret_cast<volatile T*>(host)[i] = source<T>(warp, rows[i])[lane];
    }
  }
  return at + 1;
}

// ---- parameters

// A kernel parameter at a known offset is the same for all lanes; the decoder has checked the bounds.
template <class T>
const Instruction* load_parameter(Warp& warp, const Instruction* at) {
  T value;
  std::memcpy(&value, warp.parameters + at->immediate, sizeof value);
  write_uniform(warp, at->dst, value);
  return at + 1;
}

// Parameters of functions and arguments of calls lie in the frame, `slot` bytes apart from lane to lane.
template <class T>
const Instruction* load_argument(Warp& warp, const Instruction* at) {
  T* dst = row<T>(warp, at->dst);
  for (std::uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    std::memcpy(&dst[lane], warp.frame + at->immediate + static_cast<std::size_t>(lane) * at->slot, sizeof(T));
  }
  return at + 1;
}

template <class T>
const Instruction* store_argument(Warp& warp, const Instruction* at) {
  const T* values = source<T>(warp, at->a);
  for (std::uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    std::memcpy(warp.frame + at->immediate + static_cast<std::size_t>(lane) * at->slot, &values[lane], sizeof(T));
  }
  return at + 1;
}

// ---- order

const Instruction* fence(Warp&, const Instruction* at) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return at + 1;
}

// ---- address conversion

struct Keep {
  static std::uint64_t apply(std::uint64_t a) { return a; }
};
struct AddOffset {
  static std::uint64_t apply(std::uint64_t a, std::uint64_t b) { return a + b; }
};

const Instruction* is_in_window(Warp& warp, const Instruction* at) {
  const auto* address = source<std::uint64_t>(warp, at->a);
  const auto space = static_cast<Space>(at->mode);
  std::uint32_t result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::uint64_t window = address[lane] & ~(kWindowBytes - 1);
    bool inside = window < kSharedWindow;
    if (space == Space::kShared) inside = window == kSharedWindow;
    if (space == Space::kLocal) inside = window == kLocalWindow;
    if (space == Space::kParam) inside = window == kParamWindow;
    if (space == Space::kConst) inside = constant_region(warp).contains(address[lane], 1);
    result |= static_cast<std::uint32_t>(inside) << lane;
  }
  set_predicate(warp, at->dst, result);
  return at + 1;
}

// ---- decoding

enum class Direction { kLoad, kStore };

enum class Form { kVector, kScalar };

template <class T, class A, Space kSpace>
Handler pick_handler(Direction direction, Form form) {
  const bool is_load = direction == Direction::kLoad;
  if (form == Form::kVector) return is_load ? load_vector<T, A, kSpace> : store_vector<T, A, kSpace>;
  return is_load ? load<T, A, kSpace> : store<T, A, kSpace>;
}

template <class T>
Handler memory_handler(Direction direction, Form form, Space space, bool is_wide) {
  switch (space) {
    case Space::kGlobal: return pick_handler<T, std::uint64_t, Space::kGlobal>(direction, form);
    case Space::kGeneric: return pick_handler<T, std::uint64_t, Space::kGeneric>(direction, form);
    case Space::kConst: return pick_handler<T, std::uint64_t, Space::kConst>(direction, form);
    case Space::kParam: return pick_handler<T, std::uint64_t, Space::kParam>(direction, form);
    case Space::kShared:
      return is_wide ? pick_handler<T, std::uint64_t, Space::kShared>(direction, form)
                     : pick_handler<T, std::uint32_t, Space::kShared>(direction, form);
    case Space::kLocal:
      return is_wide ? pick_handler<T, std::uint64_t, Space::kLocal>(direction, form)
                     : pick_handler<T, std::uint32_t, Space::kLocal>(direction, form);
  }
  return nullptr;
}

Handler memory_handler(Type type, Direction direction, Form form, Space space, bool is_wide) {
  return with_bits(size_of(type), [&](auto tag) {
    return memory_handler<typename decltype(tag)::type>(direction, form, space, is_wide);
  });
}

void decode_parameter_access(Decoder& decoder, Direction direction, Type type, const ast::Operand& where,
                             const ast::Operand& what) {
  const FunctionVariable& variable = *decoder.frame.variable(where);
  const bool is_launch_parameter = decoder.frame.is_kernel_parameter(where);
  if (variable.space != Space::kParam) return decoder.text.refuse("the variable is not in .param space");
  if (is_launch_parameter && direction == Direction::kStore)
    return decoder.text.refuse("a kernel parameter is read-only");
  std::int64_t offset = where.offset;
  for (const ast::Operand& element : elements_of(decoder, what)) {
    const auto end = static_cast<std::uint64_t>(offset) + size_of(type);
    if (offset < 0 || end > variable.bytes) return decoder.text.refuse("it accesses memory outside the parameter");
    const bool is_load = direction == Direction::kLoad;
    const auto value = is_load ? decoder.rows.write(element, type) : decoder.rows.read(element, type);
    Instruction& instruction = decoder.writer.emit(with_bits(size_of(type), [&](auto tag) -> Handler {
      using T = typename decltype(tag)::type;
      if (is_launch_parameter) return load_parameter<T>;
      return is_load ? load_argument<T> : store_argument<T>;
    }));
    instruction.dst = is_load ? value : kNoRow;
    instruction.a = value;
    instruction.slot = static_cast<std::uint32_t>(variable.bytes);
    instruction.immediate =
        offset + (is_launch_parameter ? static_cast<std::int64_t>(decoder.frame.parameter_offset(where.index))
                                      : variable.frame_offset);
    offset += static_cast<std::int64_t>(size_of(type));
  }
}

// A 128-bit value is a vector of two 64-bit halves, whose rows follow one another.
RowList wide_rows(Decoder& decoder, const ast::Operand& list) {
  RowList rows;
  for (const ast::Operand& element : elements_of(decoder, list)) {
    const std::int32_t low = decoder.rows.wide_row(element);
    rows.rows.insert(rows.rows.end(), {low, low + static_cast<std::int32_t>(sizeof(std::uint64_t) * kLanes)});
  }
  return rows;
}

RowList vector_rows(Decoder& decoder, Direction direction, Type type, const ast::Operand& list) {
  RowList rows;
  for (const ast::Operand& element : elements_of(decoder, list)) {
    const bool is_sink = element.kind == ast::Operand::Kind::kSink;
    rows.rows.push_back(is_sink                         ? kNoRow
                        : direction == Direction::kLoad ? decoder.rows.write(element, type)
                                                        : decoder.rows.read(element, type));
    if (is_sink && direction == Direction::kStore)
      decoder.text.refuse("'_' cannot be stored", LoadError::Kind::kSyntax);
  }
  return rows;
}

void emit_vector(Decoder& decoder, Direction direction, Type type, Space space, const Address& address,
                 const ast::Operand& list) {
  RowList rows = type == Type::kB128 ? wide_rows(decoder, list) : vector_rows(decoder, direction, type, list);
  if (type == Type::kB128) type = Type::kU64;
  Instruction& instruction =
      decoder.writer.emit_memory(memory_handler(type, direction, Form::kVector, space, address.is_wide));
  instruction.a = address.row;
  instruction.immediate = address.offset;
  instruction.data = decoder.writer.keep(std::move(rows));
}

// Cache hints have no meaning here; orders are met by a full fence.
void take_cache_hints(Decoder& decoder) {
  for (const char* hint : {"ca",
                           "cg",
                           "cs",
                           "lu",
                           "cv",
                           "wb",
                           "wt",
                           "nc",
                           "weak",
                           "cta",
                           "gpu",
                           "sys",
                           "L1::evict_last",
                           "L1::evict_first",
                           "L1::no_allocate",
                           "L1::evict_normal",
                           "L2::64B",
                           "L2::128B",
                           "L2::256B",
                           "L2::evict_first",
                           "L2::evict_last",
                           "L2::evict_normal",
                           "L2::cache_hint",
                           "cluster",
                           "mmio",
                           "L1::evict_unchanged"}) {
    decoder.text.take(hint);
  }
}

struct Ordering {
  bool before = false, after = false;
};
Ordering take_ordering(Decoder& decoder, Direction direction) {
  const bool is_volatile = decoder.text.take("volatile");
  decoder.text.take("relaxed");
  const bool acquires = decoder.text.take("acquire"), releases = decoder.text.take("release");
  return {releases || (is_volatile && direction == Direction::kStore), acquires};
}

void decode_access(Decoder& decoder, Direction direction) {
  const Type type = decoder.text.take_type();
  Space space = decoder.text.maybe_space().value_or(Space::kGeneric);
  const bool is_vector = decoder.text.take("v2") || decoder.text.take("v4");
  const Ordering ordering = take_ordering(decoder, direction);
  take_cache_hints(decoder);
  // The third is a cache policy.
  if (!decoder.text.expect_operands(2, decoder.text.contains("L2::cache_hint") ? 3 : 2)) return;
  const ast::Operand& where = decoder.text.operands()[direction == Direction::kLoad ? 0 + 1 : 0];
  const ast::Operand& what = decoder.text.operands()[direction == Direction::kLoad ? 0 : 1];
  if (is_vector != (what.kind == ast::Operand::Kind::kList))
    return decoder.text.refuse("vector and operand do not agree");
  if (is_vector && what.count != 2 && what.count != 4) return decoder.text.refuse("a vector has two or four elements");
  if (space == Space::kParam && where.kind == ast::Operand::Kind::kVariable) {
    return decode_parameter_access(decoder, direction, type, where, what);
  }
  // The address of a function's parameter is that of its copy in local memory.
  if (space == Space::kParam && !decoder.function.is_entry) space = Space::kLocal;
  if ((space == Space::kParam || space == Space::kConst) && direction == Direction::kStore) {
    return decoder.text.refuse("the state space is read-only");
  }
  if (ordering.before) decoder.writer.emit(fence);
  const Address address = decoder.rows.address(where, space);
  if (is_vector || type == Type::kB128) {
    emit_vector(decoder, direction, type, space, address, what);
  } else {
    const bool is_load = direction == Direction::kLoad;
    const auto value = is_load ? decoder.rows.write(what, type) : decoder.rows.read(what, type);
    Instruction& instruction =
        decoder.writer.emit_memory(memory_handler(type, direction, Form::kScalar, space, address.is_wide));
    instruction.dst = is_load ? value : kNoRow;
    instruction.a = address.row;
    instruction.b = value;
    instruction.immediate = address.offset;
  }
  if (ordering.after) decoder.writer.emit(fence);
}

void decode_load(Decoder& decoder) {
  decode_access(decoder, Direction::kLoad);
}
void decode_store(Decoder& decoder) {
  decode_access(decoder, Direction::kStore);
}

void decode_fence(Decoder& decoder) {
  for (const char* word :
       {"cta", "gl", "gpu", "sys", "cluster", "sc", "acq_rel", "acquire", "release", "proxy", "alias", "async",
        "async.global", "mbarrier_init", "global", "shared::cta", "shared::cluster"}) {
    decoder.text.take(word);
  }
  decoder.writer.emit(fence);
}

std::uint64_t window_of(Space space) {
  switch (space) {
    case Space::kShared: return kSharedWindow;
    case Space::kLocal: return kLocalWindow;
    case Space::kParam: return kParamWindow;
    default: return 0;
  }
}

void decode_cvta(Decoder& decoder) {
  const Type type = decoder.text.take_type();
  const bool to_space = decoder.text.take("to");
  const auto space = decoder.text.maybe_space();
  if (!space || size_of(type) != 8 || !decoder.text.expect_operands(2, 2)) {
    return decoder.text.refuse("only 64-bit addresses of a named space are supported");
  }
  const std::uint64_t window = window_of(*space);
  if (window == 0) return emit_unary(decoder, unary<Keep, std::uint64_t, std::uint64_t>, type, type);
  const auto a = decoder.rows.read(decoder.text.operands()[1], type);
  ast::Operand offset;
  offset.kind = ast::Operand::Kind::kInteger;
  offset.bits = to_space ? std::uint64_t{0} - window : window;
  const auto b = decoder.rows.read(offset, type);
  const auto dst = decoder.rows.write(decoder.text.operands()[0], type);
  Instruction& instruction = decoder.writer.emit(binary<AddOffset, std::uint64_t, std::uint64_t>);
  instruction.dst = dst;
  instruction.a = a;
  instruction.b = b;
}

void decode_isspacep(Decoder& decoder) {
  const auto space = decoder.text.maybe_space();
  if (!space || !decoder.text.expect_operands(2, 2))
    return decoder.text.refuse("a state space is missing", LoadError::Kind::kSyntax);
  const auto a = decoder.rows.read(decoder.text.operands()[1], Type::kU64);
  const auto dst = decoder.rows.write_predicate(decoder.text.operands()[0]);
  Instruction& instruction = decoder.writer.emit(is_in_window);
  instruction.dst = dst;
  instruction.a = a;
  instruction.mode = static_cast<std::uint16_t>(*space);
}

constexpr Opcode kOpcodes[] = {
    {"ld", decode_load},     {"ldu", decode_load},  {"st", decode_store},          {"membar", decode_fence},
    {"fence", decode_fence}, {"cvta", decode_cvta}, {"isspacep", decode_isspacep},
};

}  // namespace

std::span<const Opcode> memory_opcodes() {
  return kOpcodes;
}

void add_memory_meanings(native::Meanings& meanings) {
  using native::Action;
  meanings[unary<Keep, std::uint64_t, std::uint64_t>] = {Action::kMove, 8};
  meanings[load_parameter<std::uint32_t>] = {Action::kParameter, 4};
  meanings[load_parameter<std::uint64_t>] = {Action::kParameter, 8};
  for (const Type type : {Type::kU32, Type::kU64}) {
    for (const Space space : {Space::kGlobal, Space::kGeneric, Space::kShared}) {
      for (const bool is_wide : {false, true}) {
        const auto bytes = static_cast<std::uint8_t>(size_of(type));
        const std::uint8_t address_bytes = space == Space::kShared && !is_wide ? 4 : 8;
        meanings[memory_handler(type, Direction::kLoad, Form::kScalar, space, is_wide)] = {
            Action::kLoad, bytes, false, {}, 0, space, address_bytes};
        meanings[memory_handler(type, Direction::kStore, Form::kScalar, space, is_wide)] = {
            Action::kStore, bytes, false, {}, 0, space, address_bytes};
      }
    }
  }
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
