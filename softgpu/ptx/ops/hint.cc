// Instructions that only advise the hardware, or that concern clusters, of which every block is one of its own:
// prefetch, discard, applypriority, createpolicy, griddepcontrol, getctarank, mapa and the cluster barrier.
#include "softgpu/ptx/ops/ops.h"
#include "softgpu/ptx/schedule.h"

#include "softgpu/ptx/isa_begin.h"
namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <class T>
const Instruction* write_zero(Warp& warp, const Instruction* at) {
  write_uniform<T>(warp, at->dst, 0);
  return at + 1;
}

template <class T>
struct Same {
  static T apply(T a) { return a; }
};

const Instruction* cluster_barrier(Warp& warp, const Instruction* at) {
  return arrive(warp, at, kClusterBarrier, 0, 0);
}

// prefetch.global.L2::evict_last [a], discard.global.L2 [a], 128, and the like.
void decode_hint(Decoder& decoder) {
  decoder.text.maybe_space();
  for (const char* word : {"L1", "L2", "L2::evict_last", "L2::evict_normal", "L2::128B", "tensormap"}) {
    decoder.text.take(word);
  }
  if (!decoder.text.expect_operands(1, 2)) return;
  if (!decoder.text.operands()[0].memory) return decoder.text.refuse("an address is missing", LoadError::Kind::kSyntax);
  decoder.writer.emit(nothing);
}

// A policy's value is the driver's own business: zero.
void decode_policy(Decoder& decoder) {
  for (const char* word : {"fractional", "range", "global", "cvt", "L2", "b64", "L2::evict_last", "L2::evict_normal",
                           "L2::evict_first", "L2::evict_unchanged", "L2::evict_unchanged"}) {
    decoder.text.take(word);
  }
  if (!decoder.text.expect_operands(1, 4)) return;
  const auto dst = decoder.rows.write(decoder.text.operands()[0], Type::kU64);
  decoder.writer.emit(write_zero<u64>).dst = dst;
}

// A launch begins when those before it have ended, so there is nothing to wait for.
void decode_grid_dependency(Decoder& decoder) {
  if (!decoder.text.take("wait") && !decoder.text.take("launch_dependents"))
    return decoder.text.refuse("the action is missing");
  decoder.writer.emit(nothing);
}

void decode_block_rank(Decoder& decoder) {
  decoder.text.maybe_space();
  decoder.text.take_type();
  if (!decoder.text.expect_operands(2, 2)) return;
  const auto dst = decoder.rows.write(decoder.text.operands()[0], Type::kU32);
  decoder.writer.emit(write_zero<u32>).dst = dst;
}

// The address of a shared variable in block 0 of the cluster, which is the block itself.
void decode_map_address(Decoder& decoder) {
  decoder.text.maybe_space();
  const Type type = decoder.text.take_type();
  if (!decoder.text.expect_operands(3, 3)) return;
  const auto a = decoder.rows.read(decoder.text.operands()[1], type);
  const auto dst = decoder.rows.write(decoder.text.operands()[0], type);
  Instruction& instruction = decoder.writer.emit(size_of(type) == 8   ? unary<Same<u64>, u64, u64>
                                                 : size_of(type) == 4 ? unary<Same<u32>, u32, u32>
                                                                      : nullptr);
  instruction.dst = dst;
  instruction.a = a;
}

constexpr Opcode kOpcodes[] = {
    {"prefetch", decode_hint},         {"prefetchu", decode_hint},      {"discard", decode_hint},
    {"applypriority", decode_hint},    {"createpolicy", decode_policy}, {"griddepcontrol", decode_grid_dependency},
    {"getctarank", decode_block_rank}, {"mapa", decode_map_address},
};

}  // namespace

// The wait is the barrier: whoever waits has arrived.
void decode_cluster_barrier(Decoder& decoder) {
  for (const char* word : {"aligned", "acquire", "release", "relaxed"}) decoder.text.take(word);
  if (decoder.text.take("arrive")) {
    decoder.writer.emit(nothing);
    return;
  }
  if (!decoder.text.take("wait")) return decoder.text.refuse(".arrive or .wait is missing", LoadError::Kind::kSyntax);
  decoder.writer.emit(cluster_barrier);
}

std::span<const Opcode> hint_opcodes() {
  return kOpcodes;
}

}  // namespace softgpu::ptx::SOFTGPU_ISA
#include "softgpu/ptx/isa_end.h"
