// What stands before a function's body: declarations that the body turned out to need, and the clearing of what the function
// could read before it has written it. Labels of the body stand behind it, so nothing jumps back to here. Where registers
// have short names they are those of a scope in which nothing of the module is named.
//
// In this order, because each needs what stands before it, and because the verifier takes for proved at every label only what is
// done before the first:
//
//   .reg ...;                                              the function's own, companions, scratch registers
//   mov.b64 arena, __fence_arena;                          or from the parameters, in a function that is called
//   mov.b64 a0, base;                                      companions that may be used before they are set
//   clear shared memory, barrier; clear the arena          labels of ours from here on
//   mov.b32 %r7, 0;                                        registers, the carry and results that may be read first
#include "gpu/fence/prologue.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace fairlead::fence {
namespace {

// The widest store to local memory. The arena is as much longer, so that an access at its last byte stays inside.
constexpr std::uint64_t kStoreBytes = 16;
constexpr std::uint64_t kMostStoresInARow = 8;  // beyond that a loop

std::string type_of(unsigned bits) {
  return bits == 1 ? ".pred" : fmt::format(".b{}", bits);
}

const Register& register_at(const FunctionFacts& facts, int id) {
  return facts.function.registers[static_cast<std::size_t>(id)];
}

void declare_registers(const FunctionWriter& body, FencedText& out) {
  const auto declare = [&out](std::string_view type, std::string_view names) {
    out.raw(fmt::format(".reg {} {};\n", type, names));
  };
  const ScratchRegisters& scratch = body.scratch;
  if (scratch.companion_count() > 0) declare(".b64", fmt::format("%__fence_a<{}>", scratch.companion_count()));
  if (scratch.uses_temporaries()) {
    declare(".b64", fmt::format("%__fence_t<{}>", ScratchRegisters::kAddresses.size()));
    declare(".b32", fmt::format("%__fence_w<{}>", ScratchRegisters::kWords.size()));
    declare(".pred", fmt::format("%__fence_p<{}>", ScratchRegisters::kPredicates.size()));
  }
  if (scratch.uses_lanes()) {
    declare(".b32", "%__fence_lane, %__fence_lanes");
    declare(".pred", "%__fence_yes");
  }
  for (const auto& [id, name] : body.facts.new_names) declare(type_of(register_at(body.facts, id).bits), name);
}

// A function is handed where the arena and its frame begin; an entry has the arena and its frame is at its beginning.
void begin_arena(const FunctionWriter& body, FencedText& out) {
  const std::uint64_t bytes = body.facts.layout.arena_bytes;
  const bool is_entry = body.facts.function.is_entry;
  if (bytes > 0 && is_entry) {
    out.raw(fmt::format(".local .align 16 .b8 __fence_arena[{}];\n", bytes + kStoreBytes));
  }
  if (bytes > 0 && body.scratch.uses_arena()) {
    out.raw(".reg .b64 %__fence_arena, %__fence_frame, %__fence_generic_arena;\n");
    out.line("{}",
             is_entry ? "mov.b64 %__fence_arena, __fence_arena;" : "ld.param.b64 %__fence_arena, [__fence_arena];");
    out.line("{}",
             is_entry ? "mov.b64 %__fence_frame, %__fence_arena;" : "ld.param.b64 %__fence_frame, [__fence_frame];");
  }
  if (body.scratch.uses_generic_arena()) out.line("cvta.local.u64 %__fence_generic_arena, %__fence_arena;");
}

// Companions without a definition on every way to their uses begin as the range's base.
void set_companions(const FunctionWriter& body, FencedText& out) {
  body.scratch.for_each_companion([&](std::size_t id, int number) {
    if (!body.facts.addresses.needs_start[id]) return;
    out.line("mov.b64 %__fence_a{}, 0x{:x};", number, body.facts.options.base);
  });
}

void set_lanes(FencedText& out) {
  out.line("mov.u32 %__fence_lane, %laneid;");
  out.line("mov.pred %__fence_yes, -1;");
}

// Text of lines, of which those that end in ';' and declare nothing are instructions.
void write_lines(std::string_view text, FencedText& out) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    if (line.starts_with('.') || !line.ends_with(';')) {
      out.raw(line);
      out.raw("\n");
    } else {
      out.line("{}", line);
    }
  }
}

// All of the block's shared memory, variables or not, by all of its threads. It ends where the hardware's unit of allocation
// does that holds the last byte of dynamic memory, and has %total_smem_size bytes. That is a multiple of the unit, so its
// lowest set bit is one, too. It begins at 0 or, on sm_90, at 1024, behind what the system has for itself, in either case
// with the block's number in its cluster from bit 24; should that not come out, only dynamic memory is cleared.
//
//   c0: this thread, c1: threads, c2: the end, c3: the beginning, then 0, c4: where to store, c5: step, c6: whole 16 bytes
void clear_shared(bool of_cluster, FencedText& out) {
  constexpr std::string_view kText = R"({
.reg .b32 %c<7>;
.reg .pred %q;
mov.u32 %c0, %tid.z;
mov.u32 %c1, %ntid.y;
mov.u32 %c2, %tid.y;
mad.lo.u32 %c0, %c0, %c1, %c2;
mov.u32 %c2, %ntid.x;
mov.u32 %c3, %tid.x;
mad.lo.u32 %c0, %c0, %c2, %c3;
mul.lo.u32 %c1, %c1, %c2;
mov.u32 %c2, %ntid.z;
mul.lo.u32 %c1, %c1, %c2;
mov.u32 %c3, __fence_dynamic;
mov.u32 %c2, %dynamic_smem_size;
add.u32 %c2, %c2, %c3;
mov.u32 %c6, %total_smem_size;
or.b32 %c4, %c6, 1024;
neg.s32 %c5, %c4;
and.b32 %c4, %c4, %c5;
neg.s32 %c5, %c4;
add.u32 %c2, %c2, %c4;
sub.u32 %c2, %c2, 1;
and.b32 %c2, %c2, %c5;
sub.u32 %c4, %c2, %c6;
add.u32 %c4, %c4, 1023;
and.b32 %c4, %c4, -1024;
and.b32 %c5, %c4, 0xffffff;
setp.le.u32 %q, %c5, 1024;
selp.b32 %c3, %c4, %c3, %q;
mad.lo.u32 %c4, %c0, 16, %c3;
shl.b32 %c5, %c1, 4;
and.b32 %c6, %c2, -16;
mov.u32 %c3, 0;
setp.ge.u32 %q, %c4, %c6;
@%q bra __fence_whole;
__fence_next:
st.shared.v4.b32 [%c4], {%c3, %c3, %c3, %c3};
add.u32 %c4, %c4, %c5;
setp.lt.u32 %q, %c4, %c6;
@%q bra __fence_next;
__fence_whole:
add.u32 %c4, %c6, %c0;
setp.ge.u32 %q, %c4, %c2;
@%q bra __fence_cleared;
__fence_byte:
st.shared.b8 [%c4], %c3;
add.u32 %c4, %c4, %c1;
setp.lt.u32 %q, %c4, %c2;
@%q bra __fence_byte;
__fence_cleared:
)";
  write_lines(kText, out);
  // Nobody reads before everybody has stored: of the block or, where blocks read each other's memory, of the cluster.
  if (of_cluster) out.line("barrier.cluster.arrive;");
  out.line("{}", of_cluster ? "barrier.cluster.wait;" : "bar.sync 0;");
  out.raw("}\n");
}

// Masked like any access through a register, though this one cannot leave: the verifier believes no loop's bounds.
void clear_in_loop(std::uint64_t arena_bytes, FencedText& out) {
  out.raw(".reg .b64 %__fence_l<3>;\n.reg .pred %q;\n");
  out.line("mov.b64 %__fence_l0, 0;");
  out.raw("__fence_local:\n");
  out.line("mov.b64 %__fence_l1, __fence_arena;");
  out.line("and.b64 %__fence_l2, %__fence_l0, 0x{:x};", arena_bytes - 1);
  out.line("add.s64 %__fence_l2, %__fence_l2, %__fence_l1;");
  out.line("st.local.v4.b32 [%__fence_l2], {{%c, %c, %c, %c}};");
  out.line("add.s64 %__fence_l0, %__fence_l0, {};", kStoreBytes);
  out.line("setp.lt.u64 %q, %__fence_l0, {};", arena_bytes);
  out.line("@%q bra __fence_local;");
  out.line("st.local.v4.b32 [__fence_arena+{}], {{%c, %c, %c, %c}};", arena_bytes);
}

// Once for each thread, in 16 bytes at a time: up to 8 stores in a row, else a loop.
void clear_arena(std::uint64_t arena_bytes, FencedText& out) {
  const std::uint64_t bytes = arena_bytes + kStoreBytes;
  out.raw("{\n.reg .b32 %c;\n");
  out.line("mov.u32 %c, 0;");
  if (bytes <= kMostStoresInARow * kStoreBytes) {
    for (std::uint64_t at = 0; at < bytes; at += kStoreBytes) {
      out.line("st.local.v4.b32 [__fence_arena+{}], {{%c, %c, %c, %c}};", at);
    }
  } else {
    clear_in_loop(arena_bytes, out);
  }
  out.raw("}\n");
}

void set_registers(const FunctionFacts& facts, FencedText& out) {
  const auto is_wide = [&](int id) { return register_at(facts, id).bits == 128; };
  if (std::ranges::any_of(facts.read_first.registers, is_wide)) {
    out.raw(".reg .b64 %__fence_zero;\n");
    out.line("mov.b64 %__fence_zero, 0;");
  }
  for (const int id : facts.read_first.registers) {
    out.line("mov{} {}, {};", type_of(register_at(facts, id).bits), name_of_register(facts, id),
             is_wide(id) ? "{%__fence_zero, %__fence_zero}" : "0");
  }
  if (!facts.read_first.carry) return;
  out.raw(".reg .b32 %__fence_carry;\n");
  out.line("mov.b32 %__fence_carry, 0;");
  out.line("add.cc.u32 %__fence_carry, %__fence_carry, %__fence_carry;");
}

}  // namespace

const Variable* write_prologue(const FunctionWriter& body, const Clears& clears, FencedText& out) {
  const FunctionFacts& facts = body.facts;
  declare_registers(body, out);
  begin_arena(body, out);
  set_companions(body, out);
  if (body.scratch.uses_lanes()) set_lanes(out);
  if (clears.shared) clear_shared(clears.cluster, out);
  if (clears.arena) clear_arena(facts.layout.arena_bytes, out);
  set_registers(facts, out);
  for (const int index : facts.read_first.results) {
    const Variable& result = facts.function.variables[static_cast<std::size_t>(index)];
    if (!store_zeros(result, out)) return &result;
  }
  return nullptr;
}

bool store_zeros(const Variable& parameter, FencedText& out) {
  std::uint64_t step = std::min<std::uint64_t>(8, parameter.alignment);
  for (std::uint64_t at = 0; at < parameter.bytes; at += step) {
    while (step > parameter.bytes - at) step /= 2;
    out.line("st.param.b{} [{}+{}], 0;", 8 * step, parameter.name, at);
    if (!out.has_room()) return false;
  }
  return true;
}

}  // namespace fairlead::fence
