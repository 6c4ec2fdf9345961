#include "softgpu/ptx/native/compile.h"

#include <cstring>
#include <utility>

#include "softgpu/ptx/native/code_memory.h"
#include "softgpu/ptx/native/segment_compiler.h"

namespace softgpu::ptx::native {
namespace {

struct NativeCode {
  CodeMemory memory;
  std::deque<SlowCall> calls;
};

}  // namespace

std::shared_ptr<const void> compile(const Program& program, std::span<Code* const> functions,
                                    const InstructionSet& isa) {
  if (isa.meanings.empty()) return nullptr;
  const auto native = std::make_shared<NativeCode>();
  Assembler assembler;
  const CompileTarget target{assembler, isa.runtime, program, native->calls};
  std::vector<std::pair<Instruction*, std::size_t>> entries;
  for (Code* code : functions) {
    for (const Segment& segment : find_segments(*code, isa.meanings, isa.label)) {
      const RowFlow flow(segment, code->lives);
      const RowFlow::Tracked tracked = flow.tracked();
      if (!tracked.ok) continue;
      entries.emplace_back(&code->instructions[segment.first], assembler.size());
      compile_segment(target, segment, flow, tracked.rows);
    }
  }
  if (entries.empty()) return nullptr;
  const std::uint8_t* memory = native->memory.store(assembler.finish());
  if (memory == nullptr) return nullptr;
  for (const auto& [instruction, offset] : entries) {
    const std::uint8_t* entry = memory + offset;
    std::memcpy(&instruction->run, &entry, sizeof entry);
  }
  return native;
}

}  // namespace softgpu::ptx::native
