// Operations between the lanes of a warp: shfl vote match redux activemask, bar.warp.sync, elect. Each lane acts with the
// lanes its own member mask names (members.h).
#include "softgpu/ptx/ops/integers.h"
#include "softgpu/ptx/ops/members.h"
#include "softgpu/ptx/ops/ops.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

using u32 = std::uint32_t;

const Instruction* warp_barrier(Warp& warp, const Instruction* at) {
  Teams teams;
  return assemble(warp, at, teams) ? at + 1 : await_lanes(warp, at);
}

enum class Shuffle { kUp, kDown, kButterfly, kIndex };

// Which lane to read from, and whether it lies inside the segment (PTX ISA, shfl.sync).
template <Shuffle kKind>
inline bool shuffle_source(int lane, u32 b, u32 c, int& from) {
  const int offset = static_cast<int>(b & 31);
  const int clamp = static_cast<int>(c & 31), segment = static_cast<int>(c >> 8 & 31);
  const int last = (lane & segment) | (clamp & ~segment);
  if constexpr (kKind == Shuffle::kUp) {
    from = lane - offset;
    return from >= last;
  }
  if constexpr (kKind == Shuffle::kDown) from = lane + offset;
  if constexpr (kKind == Shuffle::kButterfly) from = lane ^ offset;
  if constexpr (kKind == Shuffle::kIndex) from = (lane & segment) | (offset & ~segment);
  return from <= last;
}

// A lane may read every lane that executes the instruction with it; another's register, which PTX leaves undefined,
// reads as zero: what an absent lane's row holds depends on how registers share rows.
template <Shuffle kKind>
const Instruction* shuffle(Warp& warp, const Instruction* at) {
  const u32 present = warp.mask;
  Teams teams;
  if (!assemble(warp, at, teams)) return await_lanes(warp, at);
  const u32* a = source<u32>(warp, at->a);
  const u32* b = source<u32>(warp, at->b);
  const u32* c = source<u32>(warp, at->c);
  alignas(kRowAlignment) u32 values[kLanes];
  u32 inside_mask = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    int from = lane;
    const bool inside = shuffle_source<kKind>(lane, b[lane], c[lane], from);
    from = inside ? from & 31 : lane;
    values[lane] = present >> from & 1 ? a[from] : 0;
    inside_mask |= static_cast<u32>(inside) << lane;
  }
  blend(row<u32>(warp, at->dst), values, warp.mask);
  if (at->immediate != kNoRow) set_predicate(warp, static_cast<std::int32_t>(at->immediate), inside_mask);
  return at + 1;
}

enum class Vote { kAll, kAny, kUniform, kBallot };

template <Vote kKind>
const Instruction* vote(Warp& warp, const Instruction* at) {
  Teams teams;
  if (!assemble(warp, at, teams)) return await_lanes(warp, at);
  const u32 yes = predicate(warp, at->a);
  if constexpr (kKind == Vote::kBallot) {
    write_teams<u32>(warp, at->dst, teams, [&](const Team& team) { return yes & team.members; });
    return at + 1;
  }
  set_predicate(warp, at->dst, lanes_of_teams(teams, [&](const Team& team) {
                  const bool all = (yes & team.members) == team.members, any = (yes & team.members) != 0;
                  return kKind == Vote::kAll ? all : kKind == Vote::kAny ? any : all || !any;
                }));
  return at + 1;
}

template <class T>
const Instruction* match_any(Warp& warp, const Instruction* at) {
  Teams teams;
  if (!assemble(warp, at, teams)) return await_lanes(warp, at);
  const T* a = source<T>(warp, at->a);
  alignas(kRowAlignment) u32 values[kLanes] = {};
  for (const Team& team : teams.list()) {
    for (u32 rest = team.lanes; rest != 0; rest &= rest - 1) {
      const int lane = __builtin_ctz(rest);
      values[lane] = lanes_equal_to(a, a[lane]) & team.members;
    }
  }
  blend(row<u32>(warp, at->dst), values, warp.mask);
  return at + 1;
}

template <class T>
const Instruction* match_all(Warp& warp, const Instruction* at) {
  Teams teams;
  if (!assemble(warp, at, teams)) return await_lanes(warp, at);
  const T* a = source<T>(warp, at->a);
  const u32 all = lanes_of_teams(teams, [&](const Team& team) {
    const T value = a[__builtin_ctz(team.members != 0 ? team.members : team.lanes)];
    return (lanes_equal_to(a, value) & team.members) == team.members;
  });
  write_teams<u32>(warp, at->dst, teams, [&](const Team& team) { return (all & team.lanes) != 0 ? team.members : 0; });
  if (at->immediate != kNoRow) set_predicate(warp, static_cast<std::int32_t>(at->immediate), all);
  return at + 1;
}

struct Sum {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<u32>(a) + static_cast<u32>(b));
  }
};

template <class Op, class T>
const Instruction* reduce(Warp& warp, const Instruction* at) {
  Teams teams;
  if (!assemble(warp, at, teams)) return await_lanes(warp, at);
  const T* a = source<T>(warp, at->a);
  write_teams<T>(warp, at->dst, teams, [&](const Team& team) {
    T result = a[__builtin_ctz(team.members != 0 ? team.members : team.lanes)];
    for (u32 rest = team.members & (team.members - 1); rest != 0; rest &= rest - 1)
      result = Op::apply(result, a[__builtin_ctz(rest)]);
    return result;
  });
  return at + 1;
}

const Instruction* active_mask(Warp& warp, const Instruction* at) {
  const u32 mask = warp.mask;
  write_lanes<u32>(warp, at->dst, [&](int) { return mask; });
  return at + 1;
}

// elect: the lowest member is the leader.
const Instruction* elect(Warp& warp, const Instruction* at) {
  Teams teams;
  if (!assemble(warp, at, teams)) return await_lanes(warp, at);
  const auto leader = [](const Team& team) {
    return static_cast<u32>(__builtin_ctz(team.members != 0 ? team.members : team.lanes));
  };
  if (at->dst != kNoRow) write_teams<u32>(warp, at->dst, teams, leader);
  u32 leaders = 0;
  for (const Team& team : teams.list()) leaders |= 1u << leader(team);
  if (at->immediate != kNoRow) set_predicate(warp, static_cast<std::int32_t>(at->immediate), leaders);
  return at + 1;
}

// ---- decoding

void decode_shuffle(Decoder& decoder) {
  decoder.text.take("sync");
  const Type type = decoder.text.take_type();
  const Handler handler = decoder.text.take("up")     ? shuffle<Shuffle::kUp>
                          : decoder.text.take("down") ? shuffle<Shuffle::kDown>
                          : decoder.text.take("bfly") ? shuffle<Shuffle::kButterfly>
                          : decoder.text.take("idx")  ? shuffle<Shuffle::kIndex>
                                                      : nullptr;
  const auto operands = decoder.text.operands();
  if (!decoder.text.expect_operands(5, 5)) return;  // without a member mask the instruction ended with sm_70
  const auto a = decoder.rows.read(operands[1], Type::kU32), b = decoder.rows.read(operands[2], Type::kU32);
  const auto c = decoder.rows.read(operands[3], Type::kU32), d = decoder.rows.read(operands[4], Type::kU32);
  const auto dst = decoder.rows.write(operands[0], Type::kU32);
  const auto inside = decoder.rows.second_predicate(operands[0]);
  Instruction& instruction = decoder.writer.emit(size_of(type) == 4 ? handler : nullptr);
  instruction.dst = dst;
  instruction.a = a;
  instruction.b = b;
  instruction.c = c;
  instruction.d = d;
  instruction.immediate = inside;
}

void decode_vote(Decoder& decoder) {
  decoder.text.take("sync");
  decoder.text.take_type();
  const bool is_ballot = decoder.text.take("ballot");
  const Handler handler = is_ballot                  ? vote<Vote::kBallot>
                          : decoder.text.take("all") ? vote<Vote::kAll>
                          : decoder.text.take("any") ? vote<Vote::kAny>
                          : decoder.text.take("uni") ? vote<Vote::kUniform>
                                                     : nullptr;
  const auto operands = decoder.text.operands();
  if (!decoder.text.expect_operands(3, 3)) return;
  const auto a = decoder.rows.read_predicate(operands[1]);
  const auto d = decoder.rows.read(operands[2], Type::kU32);
  const auto dst = is_ballot ? decoder.rows.write(operands[0], Type::kU32) : decoder.rows.write_predicate(operands[0]);
  Instruction& instruction = decoder.writer.emit(handler);
  instruction.dst = dst;
  instruction.a = a;
  instruction.d = d;
}

void decode_match(Decoder& decoder) {
  decoder.text.take("sync");
  const bool any = decoder.text.take("any");
  if (!any && !decoder.text.take("all"))
    return decoder.text.refuse(".any or .all is missing", LoadError::Kind::kSyntax);
  const Type type = decoder.text.take_type();
  const auto operands = decoder.text.operands();
  if (!decoder.text.expect_operands(3, 3)) return;
  const auto a = decoder.rows.read(operands[1], type), d = decoder.rows.read(operands[2], Type::kU32);
  const auto dst = decoder.rows.write(operands[0], Type::kU32);
  const auto all = decoder.rows.second_predicate(operands[0]);
  Handler handler = nullptr;
  if (size_of(type) == 4) handler = any ? match_any<u32> : match_all<u32>;
  if (size_of(type) == 8) handler = any ? match_any<std::uint64_t> : match_all<std::uint64_t>;
  Instruction& instruction = decoder.writer.emit(handler);
  instruction.dst = dst;
  instruction.a = a;
  instruction.d = d;
  instruction.immediate = all;
}

template <class Op>
Handler reduce_handler(Type type) {
  if (type == Type::kS32) return reduce<Op, std::int32_t>;
  return size_of(type) == 4 && !is_float(type) ? reduce<Op, u32> : nullptr;
}

void decode_redux(Decoder& decoder) {
  decoder.text.take("sync");
  const Type type = decoder.text.take_type();
  const Handler handler = decoder.text.take("add")   ? reduce_handler<Sum>(type)
                          : decoder.text.take("min") ? reduce_handler<Minimum>(type)
                          : decoder.text.take("max") ? reduce_handler<Maximum>(type)
                          : decoder.text.take("and") ? reduce_handler<And>(type)
                          : decoder.text.take("or")  ? reduce_handler<Or>(type)
                          : decoder.text.take("xor") ? reduce_handler<Xor>(type)
                                                     : nullptr;
  const auto operands = decoder.text.operands();
  if (!decoder.text.expect_operands(3, 3)) return;
  const auto a = decoder.rows.read(operands[1], type), d = decoder.rows.read(operands[2], Type::kU32);
  const auto dst = decoder.rows.write(operands[0], type);
  Instruction& instruction = decoder.writer.emit(handler);
  instruction.dst = dst;
  instruction.a = a;
  instruction.d = d;
}

void decode_active_mask(Decoder& decoder) {
  decoder.text.take("b32");
  if (!decoder.text.expect_operands(1, 1)) return;
  const auto dst = decoder.rows.write(decoder.text.operands()[0], Type::kU32);
  decoder.writer.emit(active_mask).dst = dst;
}

void decode_elect(Decoder& decoder) {
  decoder.text.take("sync");
  if (!decoder.text.expect_operands(2, 2)) return;
  const auto operands = decoder.text.operands();
  const auto d = decoder.rows.read(operands[1], Type::kU32);
  const bool keeps = operands[0].kind != ast::Operand::Kind::kSink;
  const auto dst = keeps ? decoder.rows.write(operands[0], Type::kU32) : kNoRow;
  const auto leads = decoder.rows.second_predicate(operands[0]);
  Instruction& instruction = decoder.writer.emit(elect);
  instruction.dst = dst;
  instruction.d = d;
  instruction.immediate = leads;
}

constexpr Opcode kOpcodes[] = {
    {"shfl", decode_shuffle, GuardMode::kBranch}, {"vote", decode_vote, GuardMode::kBranch},
    {"match", decode_match, GuardMode::kBranch},  {"redux", decode_redux, GuardMode::kBranch},
    {"activemask", decode_active_mask},           {"elect", decode_elect, GuardMode::kBranch},
};

}  // namespace

void decode_warp_barrier(Decoder& decoder) {
  decoder.text.take("sync");
  if (!decoder.text.expect_operands(1, 1)) return;
  const auto d = decoder.rows.read(decoder.text.operands()[0], Type::kU32);
  decoder.writer.emit(warp_barrier).d = d;
}

std::span<const Opcode> warp_opcodes() {
  return kOpcodes;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
