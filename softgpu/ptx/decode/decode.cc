#include "softgpu/ptx/decode/decode.h"

#include <algorithm>
#include <utility>

#include "softgpu/ptx/decode/row_allocation.h"

namespace softgpu::ptx {

Decoder::Decoder(const ModuleContext& its_module, const ast::Function& its_function, Code& code,
                 std::vector<std::int32_t> register_rows)
    : module(its_module),
      function(its_function),
      text(function),
      frame(function, code, text, std::move(register_rows)),
      writer(module.isa, function, module.program, code, text),
      rows(module, function, frame, writer, text) {}

namespace {

// The walk over a function.
class FunctionDecoder {
 public:
  FunctionDecoder(const ModuleContext& module, const ast::Function& function, Code& code, RowAllocation allocation)
      : isa_(module.isa),
        function_(function),
        code_(code),
        lives_(std::move(allocation.lives)),
        decoder_(module, function, code, std::move(allocation.rows)) {}

  std::optional<LoadError> decode();

 private:
  void spill_parameters();
  void decode_instruction(const ast::Instruction& instruction);
  void decode_body(const Opcode& opcode);
  void decode_guarded(const Opcode& opcode);
  void finish_instruction(std::size_t first);
  void place_lives();

  const InstructionSet& isa_;
  const ast::Function& function_;
  Code& code_;
  std::vector<RegisterLife> lives_;
  std::vector<int> positions_;  // of the tree's instructions: index of the first handler
  Decoder decoder_;
};

std::optional<LoadError> FunctionDecoder::decode() {
  InstructionText& text = decoder_.text;
  if (text.refused()) return text.error();
  spill_parameters();
  for (const ast::Instruction& instruction : function_.instructions) {
    positions_.push_back(static_cast<int>(decoder_.writer.position()));
    if (instruction.opcode.empty()) {
      decoder_.writer.place_label(instruction.label);
    } else {
      decode_instruction(instruction);
    }
    if (text.refused()) return text.error();
  }
  positions_.push_back(static_cast<int>(decoder_.writer.position()));
  decoder_.writer.emit(isa_.function_end).counted = 0;
  if (!decoder_.writer.resolve()) return text.error();
  code_.frame_bytes = align_up(code_.frame_bytes, kRowAlignment);
  place_lives();
  return std::nullopt;
}

void FunctionDecoder::spill_parameters() {
  for (const FunctionVariable& variable : decoder_.frame.variables()) {
    if (!variable.has_local_copy) continue;
    Instruction& instruction = decoder_.writer.emit(isa_.spill_parameter);
    instruction.a = variable.frame_offset;
    instruction.slot = static_cast<std::uint32_t>(variable.bytes);
    instruction.immediate = static_cast<std::int64_t>(variable.local_offset);
    instruction.counted = 0;
  }
}

void FunctionDecoder::decode_instruction(const ast::Instruction& instruction) {
  constexpr std::size_t kMostModifiers = 31;  // of which InstructionText has a bit each
  InstructionText& text = decoder_.text;
  text.begin(instruction);
  decoder_.frame.begin_instruction();
  const auto entry = isa_.opcodes.find(instruction.opcode);
  if (entry == isa_.opcodes.end()) return text.refuse("the instruction is not supported");
  if (instruction.modifier_count > kMostModifiers) return text.refuse("more than 31 modifiers");
  const std::size_t first = decoder_.writer.position();
  if (instruction.guard >= 0 && entry->second.guard != GuardMode::kOwn) {
    decode_guarded(entry->second);
  } else {
    decode_body(entry->second);
  }
  finish_instruction(first);
}

void FunctionDecoder::decode_body(const Opcode& opcode) {
  decoder_.rows.begin();
  opcode.decode(decoder_);
  decoder_.rows.finish();
}

void FunctionDecoder::decode_guarded(const Opcode& opcode) {
  const bool masks = opcode.guard == GuardMode::kMask;
  const ast::Instruction& current = decoder_.text.current();
  const std::size_t guard_position = decoder_.writer.position();
  Instruction& guard = decoder_.writer.emit(masks ? isa_.guard : isa_.branch_unless);
  guard.a = decoder_.frame.register_row(current.guard);
  guard.mode = current.guard_negated;
  decode_body(opcode);
  decoder_.writer.emit(masks ? isa_.unguard : isa_.label);
  decoder_.writer.branch_here(guard_position);
}

// Of the handlers of an instruction the first counts.
void FunctionDecoder::finish_instruction(std::size_t first) {
  if (decoder_.text.refused()) return;
  decoder_.text.finish();
  for (std::size_t i = first; i < code_.instructions.size(); ++i) code_.instructions[i].counted = i == first;
}

void FunctionDecoder::place_lives() {
  for (const RegisterLife& life : lives_) {
    const auto first = static_cast<std::size_t>(life.first), last = static_cast<std::size_t>(life.last);
    code_.lives.push_back({life.row, positions_[first], positions_[last + 1] - 1});
  }
  std::sort(code_.lives.begin(), code_.lives.end(),
            [](const RowLife& a, const RowLife& b) { return std::pair(a.row, a.first) < std::pair(b.row, b.first); });
}

}  // namespace

std::optional<LoadError> decode_function(const ModuleContext& module, std::size_t index) {
  const ast::Function& function = module.functions[index];
  Code& code = *module.program.functions[index];
  RowAllocation allocation = allocate_rows(function);
  code.frame_bytes = allocation.frame_bytes;
  code.registers = allocation.peak_words;
  return FunctionDecoder(module, function, code, std::move(allocation)).decode();
}

}  // namespace softgpu::ptx
