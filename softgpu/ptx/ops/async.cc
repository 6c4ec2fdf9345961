// Copies from global to shared memory (cp.async) and the barriers in shared memory that wait for them (mbarrier).
//
// A copy is finished when the instruction ends, which PTX allows; its groups and waits therefore do nothing. An mbarrier
// is a 64-bit word: bits 0-19 arrivals still pending in this phase, bits 20-39 arrivals expected in every phase, bits
// 40-62 the number of the phase. The state that arrive returns is the word before; a wait with it is over when the
// word's phase is another one. Expecting 3: arrive, arrive, arrive leads from pending 3 over 2 and 1 to pending 3 of the
// next phase.
#include <algorithm>

#include "softgpu/ptx/memory.h"
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// ---- cp.async

// mode: log2 of the bytes; whether row c has the bytes to read, or predicate d says that the source is ignored; space of
// the destination.
constexpr std::uint16_t kSourceSize = 8;
constexpr std::uint16_t kIgnoreSource = 16;
constexpr int kSpaceShift = 5;

// Where `read` bytes begin, of which there may be fewer than the copy's size: what lies behind them is not touched, but
// the address is a multiple of the size. Null after a fault.
const std::byte* locate_source(Warp& warp, const Instruction* at, u64 address, u32 size, u32 read, int lane) {
  if ((address & (size - 1)) != 0) {
    raise(warp, at, FaultKind::kMisalignedAddress, address, lane);
    return nullptr;
  }
  const u64 traffic = warp.global_bytes;
  const std::byte* first = locate(warp, at, Space::kGlobal, address, 1, lane);
  if (first == nullptr || locate(warp, at, Space::kGlobal, address + read - 1, 1, lane) == nullptr) return nullptr;
  warp.global_bytes = traffic + read;
  return first;
}

// dst: offset of the destination's address, which lies in row b.
const Instruction* copy(Warp& warp, const Instruction* at) {
  const auto* from = source<u64>(warp, at->a);
  const auto* to = source<u64>(warp, at->b);
  const u32 bytes = 1u << (at->mode & 7);
  const auto to_space = static_cast<Space>(at->mode >> kSpaceShift);
  const u32 ignored = (at->mode & kIgnoreSource) != 0 ? predicate(warp, at->d) : 0;
  for (u32 rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    u32 read = (at->mode & kSourceSize) != 0 ? std::min(source<u32>(warp, at->c)[lane], bytes) : bytes;
    if ((ignored >> lane & 1) != 0) read = 0;
    std::byte* target = locate(warp, at, to_space, to[lane] + static_cast<u64>(std::int64_t{at->dst}), bytes, lane);
    if (target == nullptr) return nullptr;
    std::byte values[16] = {};
    if (read != 0) {
      const std::byte* origin =
          locate_source(warp, at, from[lane] + static_cast<u64>(at->immediate), bytes, read, lane);
      if (origin == nullptr) return nullptr;
      std::memcpy(values, origin, read);
    }
    std::memcpy(target, values, bytes);
  }
  return at + 1;
}

// ---- mbarrier

constexpr u64 kCountMask = (u64{1} << 20) - 1;
constexpr int kExpectedShift = 20;
constexpr int kPhaseShift = 40;

u64 phase_of(u64 word) {
  return word >> kPhaseShift;
}

// The word after `count` arrivals; the last one of a phase begins the next.
u64 after_arrivals(u64 word, u32 count, bool drops) {
  u64 pending = word & kCountMask;
  u64 expected = word >> kExpectedShift & kCountMask;
  u64 phase = phase_of(word);
  if (drops) expected -= std::min<u64>(expected, count);
  pending -= std::min<u64>(pending, count);
  if (pending == 0) {
    pending = expected;
    phase = (phase + 1) & ((u64{1} << 23) - 1);
  }
  return pending | expected << kExpectedShift | phase << kPhaseShift;
}

enum class BarrierOperation : std::uint16_t { kInit, kInvalidate, kArrive, kArriveDrop, kTestState, kTestParity };

struct BarrierAccess {
  BarrierOperation operation;
  Space space;
  bool may_suspend;
};
std::uint16_t packed(BarrierOperation operation, Space space, bool may_suspend) {
  return static_cast<std::uint16_t>(static_cast<unsigned>(operation) | static_cast<unsigned>(space) << 4 |
                                    static_cast<unsigned>(may_suspend) << 8);
}
BarrierAccess unpacked(std::uint16_t mode) {
  return {static_cast<BarrierOperation>(mode & 15), static_cast<Space>(mode >> 4 & 15), (mode >> 8 & 1) != 0};
}

// Row b has the count, the state or the parity. The threads of a block run on one host thread, so plain accesses do.
const Instruction* barrier_word(Warp& warp, const Instruction* at) {
  const BarrierAccess access = unpacked(at->mode);
  const auto* address = source<u64>(warp, at->a);
  u32 complete = 0;
  for (u32 rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    std::byte* host =
        locate(warp, at, access.space, address[lane] + static_cast<u64>(at->immediate), sizeof(u64), lane);
    if (host == nullptr) return nullptr;
    u64& word = *reinterpret_cast<u64*>(host);
    const u64 before = word;
    const auto count = [&] { return at->b == kNoRow ? 1 : source<u32>(warp, at->b)[lane]; };
    switch (access.operation) {
      case BarrierOperation::kInit: word = (count() & kCountMask) | (count() & kCountMask) << kExpectedShift; break;
      case BarrierOperation::kInvalidate: word = 0; break;
      case BarrierOperation::kArrive: word = after_arrivals(before, count(), false); break;
      case BarrierOperation::kArriveDrop: word = after_arrivals(before, count(), true); break;
      case BarrierOperation::kTestState:
        complete |= static_cast<u32>(phase_of(source<u64>(warp, at->b)[lane]) != phase_of(before)) << lane;
        break;
      case BarrierOperation::kTestParity:
        complete |= static_cast<u32>((source<u32>(warp, at->b)[lane] & 1) != (phase_of(before) & 1)) << lane;
        break;
    }
    const bool arrives =
        access.operation == BarrierOperation::kArrive || access.operation == BarrierOperation::kArriveDrop;
    if (arrives && at->dst != kNoRow) row<u64>(warp, at->dst)[lane] = before;
  }
  const bool tests =
      access.operation == BarrierOperation::kTestState || access.operation == BarrierOperation::kTestParity;
  if (tests) set_predicate(warp, at->dst, complete);
  // A try_wait that fails gives the other warps of the block their turn.
  const bool fails = tests && access.may_suspend && complete != warp.mask && warp.others.empty();
  return fails ? pause(warp, at + 1) : at + 1;
}

struct PendingCount {
  static u32 apply(u64 state) { return static_cast<u32>(state & kCountMask); }
};

// ---- decoding

bool log2_of_copy(const ast::Operand& operand, std::uint16_t& out) {
  if (operand.kind != ast::Operand::Kind::kInteger) return false;
  for (std::uint16_t log2 = 2; log2 <= 4; ++log2) {
    if (operand.bits != std::uint64_t{1} << log2) continue;
    out = log2;
    return true;
  }
  return false;
}

void decode_copy(Decoder& decoder) {
  const bool all_levels = decoder.text.take("ca");
  if (!all_levels && !decoder.text.take("cg"))
    return decoder.text.refuse(".ca or .cg is missing", LoadError::Kind::kSyntax);
  const auto to_space = decoder.text.maybe_space(), from_space = decoder.text.maybe_space();
  if (to_space != Space::kShared || from_space != Space::kGlobal) {
    return decoder.text.refuse("it copies from .global to .shared only");
  }
  for (const char* hint : {"L2::64B", "L2::128B", "L2::256B"}) decoder.text.take(hint);
  const bool has_policy = decoder.text.take("L2::cache_hint");
  if (!decoder.text.expect_operands(3, has_policy ? 5 : 4)) return;
  const auto operands = decoder.text.operands();
  std::uint16_t log2 = 0;
  if (!log2_of_copy(operands[2], log2) || (!all_levels && log2 != 4)) {
    return decoder.text.refuse("the size must be 4, 8 or 16, and 16 for .cg");
  }
  const Address to = wide_address(decoder, operands[0], Space::kShared);
  const Address from = wide_address(decoder, operands[1], Space::kGlobal);
  std::uint16_t mode = log2;
  std::int32_t size = kNoRow, ignored = kNoRow;
  const bool has_option = operands.size() - (has_policy ? 1 : 0) > 3;
  if (has_option && decoder.rows.register_type(operands[3]) == Type::kPred) {
    ignored = decoder.rows.read_predicate(operands[3]);
    mode |= kIgnoreSource;
  } else if (has_option) {
    size = decoder.rows.read(operands[3], Type::kU32);
    mode |= kSourceSize;
  }
  if (to.offset != static_cast<std::int32_t>(to.offset)) return decoder.text.refuse("the offset is too large");
  Instruction& instruction = decoder.writer.emit_memory(copy);
  instruction.dst = static_cast<std::int32_t>(to.offset);
  instruction.a = from.row;
  instruction.b = to.row;
  instruction.c = size;
  instruction.d = ignored;
  instruction.immediate = from.offset;
  instruction.mode = static_cast<std::uint16_t>(mode | static_cast<unsigned>(Space::kShared) << kSpaceShift);
}

void emit_barrier(Decoder& decoder, BarrierOperation operation, std::size_t address_index, std::int32_t b,
                  std::int32_t dst, Space space, bool may_suspend = false) {
  const Address address = wide_address(decoder, decoder.text.operands()[address_index], space);
  Instruction& instruction = decoder.writer.emit_memory(barrier_word);
  instruction.dst = dst;
  instruction.a = address.row;
  instruction.b = b;
  instruction.immediate = address.offset;
  instruction.mode = packed(operation, space, may_suspend);
}

Space take_barrier_space(Decoder& decoder) {
  const Space space = decoder.text.maybe_space().value_or(Space::kGeneric);
  if (space != Space::kShared && space != Space::kGeneric) decoder.text.refuse("an mbarrier lies in shared memory");
  return space;
}

// Copies are complete already: with .noinc this is an arrival, without it the pending count rises and falls again.
void decode_copy_arrive(Decoder& decoder) {
  const bool arrives = decoder.text.take("noinc");
  decoder.text.take("b64");
  const Space space = take_barrier_space(decoder);
  if (!decoder.text.take("arrive") || !decoder.text.expect_operands(1, 1))
    return decoder.text.refuse(".arrive is missing");
  if (arrives) return emit_barrier(decoder, BarrierOperation::kArrive, 0, kNoRow, kNoRow, space);
  decoder.writer.emit(nothing);
}

void decode_cp(Decoder& decoder) {
  if (!decoder.text.take("async")) return decoder.text.refuse(".async is missing", LoadError::Kind::kSyntax);
  if (decoder.text.contains("bulk")) return decoder.text.refuse("bulk copies of sm_90 are not supported");
  if (decoder.text.take("mbarrier")) return decode_copy_arrive(decoder);
  const bool commits = decoder.text.take("commit_group") || decoder.text.take("wait_all");
  if (!commits && !decoder.text.take("wait_group")) return decode_copy(decoder);
  if (!decoder.text.expect_operands(commits ? 0 : 1, commits ? 0 : 1)) return;
  decoder.writer.emit(nothing);
}

void decode_wait(Decoder& decoder, bool may_suspend) {
  const bool by_parity = decoder.text.take("parity");
  const Space space = take_barrier_space(decoder);
  // The last operand of try_wait limits how long it suspends.
  if (!decoder.text.expect_operands(3, may_suspend ? 4 : 3)) return;
  const auto operands = decoder.text.operands();
  const auto b = decoder.rows.read(operands[2], by_parity ? Type::kU32 : Type::kU64);
  const auto dst = decoder.rows.write_predicate(operands[0]);
  emit_barrier(decoder, by_parity ? BarrierOperation::kTestParity : BarrierOperation::kTestState, 1, b, dst, space,
               may_suspend);
}

void decode_arrive(Decoder& decoder, BarrierOperation operation) {
  decoder.text.take("noComplete");
  const Space space = take_barrier_space(decoder);
  const auto operands = decoder.text.operands();
  // `arrive state, [address], count`; without a state the address comes first.
  const std::size_t first = !operands.empty() && !operands[0].memory ? 1 : 0;
  if (!decoder.text.expect_operands(first + 1, first + 2)) return;
  const auto b = operands.size() == first + 2 ? decoder.rows.read(operands[first + 1], Type::kU32) : kNoRow;
  const bool keeps = first == 1 && operands[0].kind != ast::Operand::Kind::kSink;
  const auto dst = keeps ? decoder.rows.write(operands[0], Type::kU64) : kNoRow;
  emit_barrier(decoder, operation, first, b, dst, space);
}

void decode_mbarrier(Decoder& decoder) {
  for (const char* word : {"b64", "cta", "cluster", "acquire", "release", "relaxed"}) decoder.text.take(word);
  if (decoder.text.take("test_wait")) return decode_wait(decoder, false);
  if (decoder.text.take("try_wait")) return decode_wait(decoder, true);
  if (decoder.text.take("arrive")) return decode_arrive(decoder, BarrierOperation::kArrive);
  if (decoder.text.take("arrive_drop")) return decode_arrive(decoder, BarrierOperation::kArriveDrop);
  if (decoder.text.take("pending_count")) {
    return emit_unary(decoder, unary<PendingCount, u32, u64>, Type::kU32, Type::kU64);
  }
  const bool initialises = decoder.text.take("init");
  if (!initialises && !decoder.text.take("inval")) return decoder.text.refuse("the operation is not supported");
  const Space space = take_barrier_space(decoder);
  if (!decoder.text.expect_operands(initialises ? 2 : 1, initialises ? 2 : 1)) return;
  const auto b = initialises ? decoder.rows.read(decoder.text.operands()[1], Type::kU32) : kNoRow;
  emit_barrier(decoder, initialises ? BarrierOperation::kInit : BarrierOperation::kInvalidate, 0, b, kNoRow, space);
}

constexpr Opcode kOpcodes[] = {{"cp", decode_cp}, {"mbarrier", decode_mbarrier, GuardMode::kBranch}};

}  // namespace

std::span<const Opcode> async_opcodes() {
  return kOpcodes;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
