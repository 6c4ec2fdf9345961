// mov, with packing and unpacking of vectors, and the special registers.
#include <algorithm>
#include <chrono>

#include "softgpu/ptx/memory.h"
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct Copy {
  template <class T>
  static T apply(T a) {
    return a;
  }
};

const Instruction* move_predicate(Warp& warp, const Instruction* at) {
  set_predicate(warp, at->dst, predicate(warp, at->a));
  return at + 1;
}
const Instruction* not_predicate(Warp& warp, const Instruction* at) {
  set_predicate(warp, at->dst, ~predicate(warp, at->a));
  return at + 1;
}

// {a, b, ...} -> one wide register; the first element is the lowest.
template <class Wide, class Part>
const Instruction* pack(Warp& warp, const Instruction* at) {
  const auto& rows = static_cast<const RowList*>(at->data)->rows;
  write_lanes<Wide>(warp, at->dst, [&](int lane) {
    Wide value = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      value |= static_cast<Wide>(static_cast<Wide>(source<Part>(warp, rows[i])[lane]) << (8 * sizeof(Part) * i));
    }
    return value;
  });
  return at + 1;
}

template <class Wide, class Part>
const Instruction* unpack(Warp& warp, const Instruction* at) {
  const auto& rows = static_cast<const RowList*>(at->data)->rows;
  alignas(kRowAlignment) Wide values[kLanes];  // a destination may be the source row
  std::memcpy(values, source<Wide>(warp, at->a), sizeof values);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == kNoRow) continue;
    write_lanes<Part>(warp, rows[i],
                      [&](int lane) { return static_cast<Part>(values[lane] >> (8 * sizeof(Part) * i)); });
  }
  return at + 1;
}

// ---- special registers

template <class T>
const Instruction* thread_index(Warp& warp, const Instruction* at) {
  const u32* ids = warp.thread_ids[at->mode];
  T* dst = row<T>(warp, at->dst);
  if (warp.whole) [[likely]] {
    SOFTGPU_LANES dst[lane] = ids[lane];
  } else {
    SOFTGPU_LANES dst[lane] = (warp.mask >> lane) & 1 ? static_cast<T>(ids[lane]) : dst[lane];
  }
  return at + 1;
}

u64 linear(const Dim3& dim, int axis) {
  return axis == 0 ? dim.x : axis == 1 ? dim.y : dim.z;
}

enum class Special : std::uint16_t {
  kBlockSize,
  kBlockIndex,
  kGridSize,
  kWarp,
  kWarps,
  kConstant,
  kStaticShared,
  kDynamicShared,
  kTotalShared,
  kWorkspaceHigh,
  kWorkspaceLow,
  kClock,
  kClockHigh,
  kNanoseconds,
  kNanosecondsHigh,
  kMultiprocessor,
  kMultiprocessors,
  kGridId,
};

u64 nanoseconds() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}
u64 ticks() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

// Blocks go round the multiprocessors in order.
u64 multiprocessor(const Warp& warp) {
  const Dim3& id = warp.block->id;
  const Dim3& grid = warp.run->launch->grid;
  const u64 index = (u64{id.z} * grid.y + id.y) * grid.x + id.x;
  return index % std::max(warp.run->launch->multiprocessors, 1u);
}

u64 special_value(const Warp& warp, const Instruction* at) {
  const LaunchState& run = *warp.run;
  const auto axis = static_cast<int>(at->immediate);
  switch (static_cast<Special>(at->mode)) {
    case Special::kBlockSize: return linear(run.launch->block, axis);
    case Special::kBlockIndex: return linear(warp.block->id, axis);
    case Special::kGridSize: return linear(run.launch->grid, axis);
    case Special::kWarp: return warp.index;
    case Special::kWarps: return warp.block->warps.size();
    case Special::kConstant: return static_cast<u64>(at->immediate);
    case Special::kStaticShared: return run.static_shared_bytes;
    case Special::kDynamicShared: return run.launch->dynamic_shared_bytes;
    case Special::kTotalShared: return run.shared_bytes;
    case Special::kWorkspaceHigh: return run.workspace.begin >> 32;
    case Special::kWorkspaceLow: return run.workspace.begin & 0xffffffff;
    case Special::kClock: return ticks();
    case Special::kClockHigh: return ticks() >> 32;
    case Special::kNanoseconds: return nanoseconds();
    case Special::kNanosecondsHigh: return nanoseconds() >> 32;
    case Special::kMultiprocessor: return multiprocessor(warp);
    case Special::kMultiprocessors: return run.launch->multiprocessors;
    case Special::kGridId: return run.launch->grid_id;
  }
  return 0;
}

template <class T>
const Instruction* special(Warp& warp, const Instruction* at) {
  write_uniform<T>(warp, at->dst, static_cast<T>(special_value(warp, at)));
  return at + 1;
}

enum class LaneValue : std::uint16_t { kIndex, kEqual, kLessEqual, kLess, kGreaterEqual, kGreater };

template <class T>
const Instruction* lane_value(Warp& warp, const Instruction* at) {
  write_lanes<T>(warp, at->dst, [&](int lane) -> T {
    const u32 bit = 1u << lane;
    switch (static_cast<LaneValue>(at->mode)) {
      case LaneValue::kIndex: return static_cast<T>(lane);
      case LaneValue::kEqual: return static_cast<T>(bit);
      case LaneValue::kLessEqual: return static_cast<T>((bit - 1) | bit);
      case LaneValue::kLess: return static_cast<T>(bit - 1);
      case LaneValue::kGreaterEqual: return static_cast<T>(~(bit - 1));
      default: return static_cast<T>(~((bit - 1) | bit));
    }
  });
  return at + 1;
}

struct NamedSpecial {
  std::string_view name;
  Special which;
  std::int64_t immediate;
};
constexpr NamedSpecial kSpecials[] = {
    {"%warpid", Special::kWarp, 0},
    {"%nwarpid", Special::kWarps, 0},
    {"%smid", Special::kMultiprocessor, 0},
    {"%nsmid", Special::kMultiprocessors, 0},
    {"%gridid", Special::kGridId, 0},
    {"%clock", Special::kClock, 0},
    {"%clock64", Special::kClock, 0},
    {"%clock_hi", Special::kClockHigh, 0},
    {"%globaltimer", Special::kNanoseconds, 0},
    {"%globaltimer_lo", Special::kNanoseconds, 0},
    {"%globaltimer_hi", Special::kNanosecondsHigh, 0},
    {"%envreg1", Special::kWorkspaceHigh, 0},
    {"%envreg2", Special::kWorkspaceLow, 0},
    {"%dynamic_smem_size", Special::kDynamicShared, 0},
    {"%total_smem_size", Special::kTotalShared, 0},
    {"%aggr_smem_size", Special::kTotalShared, 0},
    {"%current_graph_exec", Special::kConstant, 0},
    {"%reserved_smem_offset_begin", Special::kConstant, 0},
    {"%reserved_smem_offset_end", Special::kConstant, 0},
    {"%reserved_smem_offset_cap", Special::kConstant, 0},
    // Every block is a cluster of its own.
    {"%cluster_ctarank", Special::kConstant, 0},
    {"%cluster_nctarank", Special::kConstant, 1},
};
constexpr std::string_view kLaneNames[] = {"%laneid",      "%lanemask_eq", "%lanemask_le",
                                           "%lanemask_lt", "%lanemask_ge", "%lanemask_gt"};

// "%tid.x" and its relatives; %ntid.w and the like do not exist.
bool axis_register(std::string_view name, std::size_t bytes, Instruction& out) {
  if (name.size() < 3 || name[name.size() - 2] != '.') return false;
  const int axis = name.back() - 'x';
  if (axis < 0 || axis > 2) return false;
  name.remove_suffix(2);
  out.immediate = axis;
  out.run = bytes == 8 ? special<u64> : bytes == 4 ? special<u32> : special<std::uint16_t>;
  if (name == "%tid") {
    out.run = bytes == 8 ? thread_index<u64> : bytes == 4 ? thread_index<u32> : thread_index<std::uint16_t>;
    out.mode = static_cast<std::uint16_t>(axis);
    return true;
  }
  const auto use = [&](Special which) {
    out.mode = static_cast<std::uint16_t>(which);
    return true;
  };
  // A cluster is a block.
  if (name == "%ntid") return use(Special::kBlockSize);
  if (name == "%ctaid" || name == "%clusterid") return use(Special::kBlockIndex);
  if (name == "%nctaid" || name == "%nclusterid") return use(Special::kGridSize);
  out.immediate = name == "%cluster_nctaid" ? 1 : 0;
  return (name == "%cluster_ctaid" || name == "%cluster_nctaid") && use(Special::kConstant);
}

// %pm0 to %pm7, the same with _64, and %envreg0 to %envreg31 but two: performance counters and the driver's own values.
bool is_zero_register(std::string_view name) {
  const auto number_below = [](std::string_view digits, int bound) {
    if (digits.empty() || digits.size() > 2) return false;
    int number = 0;
    for (const char digit : digits) {
      if (digit < '0' || digit > '9') return false;
      number = number * 10 + digit - '0';
    }
    return number < bound;
  };
  if (name == "%tid.w" || name == "%ntid.w" || name == "%ctaid.w" || name == "%nctaid.w") return true;
  if (name.starts_with("%envreg")) return number_below(name.substr(7), 32);
  if (name.ends_with("_64")) name.remove_suffix(3);
  return name.starts_with("%pm") && number_below(name.substr(3), 8);
}

bool special_register(std::string_view name, std::size_t bytes, Instruction& out) {
  if (bytes != 2 && bytes != 4 && bytes != 8) return false;
  if (axis_register(name, bytes, out)) return true;
  for (std::size_t i = 0; i < std::size(kLaneNames); ++i) {
    if (kLaneNames[i] != name) continue;
    out.run = bytes == 8 ? lane_value<u64> : bytes == 4 ? lane_value<u32> : lane_value<std::uint16_t>;
    out.mode = static_cast<std::uint16_t>(i);
    return true;
  }
  for (const NamedSpecial& named : kSpecials) {
    if (named.name != name) continue;
    out.run = bytes == 8 ? special<u64> : bytes == 4 ? special<u32> : special<std::uint16_t>;
    out.mode = static_cast<std::uint16_t>(named.which);
    out.immediate = named.immediate;
    return true;
  }
  out.run = bytes == 8 ? special<u64> : bytes == 4 ? special<u32> : special<std::uint16_t>;
  out.mode = static_cast<std::uint16_t>(Special::kConstant);
  out.immediate = 0;
  return is_zero_register(name);
}

const Instruction* local_address(Warp& warp, const Instruction* at) {
  write_uniform<u64>(warp, at->dst, warp.local_base + static_cast<u64>(at->immediate));
  return at + 1;
}
const Instruction* spill_parameter(Warp& warp, const Instruction* at) {
  const auto offset = warp.local_base + static_cast<std::size_t>(at->immediate);
  for (u32 rest = warp.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(__builtin_ctz(rest));
    std::memcpy(warp.local + lane * warp.local_bytes + offset, warp.frame + at->a + lane * at->slot, at->slot);
  }
  return at + 1;
}
const Instruction* dynamic_shared_address(Warp& warp, const Instruction* at) {
  write_uniform<u64>(warp, at->dst, warp.run->static_shared_bytes + static_cast<u64>(at->immediate));
  return at + 1;
}

// ---- decoding

template <bool kPacks>
Handler vector_handler(std::size_t bytes, std::size_t parts) {
  const std::size_t part = parts == 0 ? 0 : bytes / parts;
  if (bytes == 8 && part == 4) return kPacks ? pack<u64, u32> : unpack<u64, u32>;
  if (bytes == 8 && part == 2) return kPacks ? pack<u64, std::uint16_t> : unpack<u64, std::uint16_t>;
  if (bytes == 8 && part == 1) return kPacks ? pack<u64, std::uint8_t> : unpack<u64, std::uint8_t>;
  if (bytes == 4 && part == 2) return kPacks ? pack<u32, std::uint16_t> : unpack<u32, std::uint16_t>;
  if (bytes == 4 && part == 1) return kPacks ? pack<u32, std::uint8_t> : unpack<u32, std::uint8_t>;
  if (bytes == 2 && part == 1) return kPacks ? pack<std::uint16_t, std::uint8_t> : unpack<std::uint16_t, std::uint8_t>;
  return nullptr;
}

void emit_copy64(Decoder& decoder, std::int32_t dst, std::int32_t a) {
  Instruction& instruction = decoder.writer.emit(unary<Copy, u64, u64>);
  instruction.dst = dst;
  instruction.a = a;
}

// A 128-bit register is a pair of 64-bit rows.
void decode_move128(Decoder& decoder) {
  constexpr std::int32_t kToHigh = sizeof(u64) * kLanes;
  const auto operands = decoder.text.operands();
  const auto is_list = [](const ast::Operand& operand) { return operand.kind == ast::Operand::Kind::kList; };
  for (const ast::Operand& operand : operands) {
    if (is_list(operand) && operand.count != 2) return decoder.text.refuse("two 64-bit registers make up 128 bits");
  }
  std::int32_t from[2], to[2];
  for (std::size_t half = 0; half < 2; ++half) {
    const std::int32_t offset = half == 0 ? 0 : kToHigh;
    const auto element = [&](const ast::Operand& list) { return decoder.function.elements_of(list)[half]; };
    from[half] = is_list(operands[1]) ? decoder.rows.read(element(operands[1]), Type::kU64)
                                      : decoder.rows.wide_row(operands[1]) + offset;
    to[half] = is_list(operands[0]) ? decoder.rows.write(element(operands[0]), Type::kU64)
                                    : decoder.rows.wide_row(operands[0]) + offset;
  }
  // The low half first, unless that would overwrite the source of the high half.
  const bool swapped = to[0] == from[1];
  const auto spare = swapped ? decoder.frame.scratch() : kNoRow;
  if (swapped) emit_copy64(decoder, spare, from[1]);
  emit_copy64(decoder, to[0], from[0]);
  emit_copy64(decoder, to[1], swapped ? spare : from[1]);
}

void decode_vector_move(Decoder& decoder, Type type, bool packs) {
  const ast::Operand& list = decoder.text.operands()[packs ? 1 : 0];
  const ast::Operand& whole = decoder.text.operands()[packs ? 0 : 1];
  const auto parts = decoder.function.elements_of(list);
  if (parts.empty() || size_of(type) % parts.size() != 0)
    return decoder.text.refuse("the vector does not fill the register");
  const std::size_t part_bytes = size_of(type) / parts.size();
  const Type part = part_bytes == 4 ? Type::kU32 : part_bytes == 2 ? Type::kU16 : Type::kU8;
  RowList rows;
  for (const ast::Operand& element : parts) {
    const bool is_sink = element.kind == ast::Operand::Kind::kSink;
    if (is_sink && packs) return decoder.text.refuse("'_' has no value", LoadError::Kind::kSyntax);
    rows.rows.push_back(is_sink ? kNoRow
                        : packs ? decoder.rows.read(element, part)
                                : decoder.rows.write(element, part));
  }
  const auto row = packs ? decoder.rows.write(whole, type) : decoder.rows.read(whole, type);
  const RowList* kept = decoder.writer.keep(std::move(rows));
  Instruction& instruction = decoder.writer.emit(packs ? vector_handler<true>(size_of(type), parts.size())
                                                       : vector_handler<false>(size_of(type), parts.size()));
  (packs ? instruction.dst : instruction.a) = row;
  instruction.data = kept;
}

constexpr std::string_view kAxes[][4] = {{"%tid.x", "%tid.y", "%tid.z", "%tid.w"},
                                         {"%ntid.x", "%ntid.y", "%ntid.z", "%ntid.w"},
                                         {"%ctaid.x", "%ctaid.y", "%ctaid.z", "%ctaid.w"},
                                         {"%nctaid.x", "%nctaid.y", "%nctaid.z", "%nctaid.w"}};

// mov.v4.u32 {x, y, z, _}, %tid. The fourth is zero.
void decode_special_vector_move(Decoder& decoder, Type type) {
  const std::string_view name = decoder.text.operands()[1].name;
  const auto parts = decoder.function.elements_of(decoder.text.operands()[0]);
  const auto* axes = std::find_if(std::begin(kAxes), std::end(kAxes),
                                  [&](const auto& axis) { return axis[0].substr(0, axis[0].size() - 2) == name; });
  if (axes == std::end(kAxes) || parts.size() != 4) {
    return decoder.text.refuse("special register " + std::string(name) + " is no vector of four");
  }
  for (std::size_t i = 0; i < 4; ++i) {
    if (parts[i].kind == ast::Operand::Kind::kSink) continue;
    Instruction reader;
    if (!special_register((*axes)[i], size_of(type), reader))
      return decoder.text.refuse("a special register is not supported");
    const auto dst = decoder.rows.write(parts[i], type);
    Instruction& instruction = decoder.writer.emit(reader.run);
    instruction.mode = reader.mode;
    instruction.immediate = reader.immediate;
    instruction.dst = dst;
  }
}

// Without the detour through a scratch row that special registers take as operands of other instructions.
void decode_special_move(Decoder& decoder, Type type) {
  Instruction reader;
  const std::string_view name = decoder.text.operands()[1].name;
  if (!special_register(name, size_of(type), reader)) {
    return decoder.text.refuse("special register " + std::string(name) + " is not supported");
  }
  const auto dst = decoder.rows.write(decoder.text.operands()[0], type);
  Instruction& instruction = decoder.writer.emit(reader.run);
  instruction.mode = reader.mode;
  instruction.immediate = reader.immediate;
  instruction.dst = dst;
}

// %is_explicit_cluster is the one predicate among the special registers: nobody asks for clusters here.
void decode_predicate_move(Decoder& decoder) {
  ast::Operand from = decoder.text.operands()[1];
  if (from.kind == ast::Operand::Kind::kSpecial && from.name == "%is_explicit_cluster") {
    from = {};
    from.kind = ast::Operand::Kind::kInteger;
  }
  const auto a = decoder.rows.read_predicate(from);
  const auto dst = decoder.rows.write_predicate(decoder.text.operands()[0]);
  Instruction& instruction = decoder.writer.emit(move_predicate);
  instruction.dst = dst;
  instruction.a = a;
}

void decode_mov(Decoder& decoder) {
  const bool is_vector = decoder.text.take("v4");
  const Type type = decoder.text.take_type();
  if (!decoder.text.expect_operands(2, 2)) return;
  const auto operands = decoder.text.operands();
  if (is_vector) {
    const bool reads_special =
        operands[1].kind == ast::Operand::Kind::kSpecial && operands[0].kind == ast::Operand::Kind::kList;
    return reads_special ? decode_special_vector_move(decoder, type)
                         : decoder.text.refuse("a vector is moved from a special register only");
  }
  if (type == Type::kPred) return decode_predicate_move(decoder);
  if (type == Type::kB128) return decode_move128(decoder);
  if (operands[1].kind == ast::Operand::Kind::kList) return decode_vector_move(decoder, type, true);
  if (operands[0].kind == ast::Operand::Kind::kList) return decode_vector_move(decoder, type, false);
  if (operands[1].kind == ast::Operand::Kind::kSpecial) return decode_special_move(decoder, type);
  emit_unary(decoder,
             with_bits(size_of(type),
                       [](auto tag) -> Handler {
                         using T = typename decltype(tag)::type;
                         return unary<Copy, T, T>;
                       }),
             type, type);
}

constexpr Opcode kOpcodes[] = {{"mov", decode_mov}};

}  // namespace

std::span<const Opcode> move_opcodes() {
  return kOpcodes;
}

void add_move_helpers(InstructionSet& set) {
  set.not_predicate = not_predicate;
  set.local_address = local_address;
  set.spill_parameter = spill_parameter;
  set.dynamic_shared_address = dynamic_shared_address;
  set.special_register = special_register;
}

void add_move_meanings(native::Meanings& meanings) {
  using native::Action;
  meanings[unary<Copy, u32, u32>] = {Action::kMove, 4};
  meanings[unary<Copy, u64, u64>] = {Action::kMove, 8};
  meanings[thread_index<u32>] = {Action::kThreadIndex, 4};
  static_assert(static_cast<int>(Special::kBlockSize) == 0 && static_cast<int>(Special::kBlockIndex) == 1 &&
                    static_cast<int>(Special::kGridSize) == 2,
                "native code knows these");
  meanings[special<u32>] = {Action::kSpecial, 4};
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
