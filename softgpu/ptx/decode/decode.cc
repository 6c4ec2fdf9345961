#include "softgpu/ptx/decode/decode.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "softgpu/ptx/decode/row_allocation.h"

namespace softgpu::ptx {
namespace {

constexpr std::size_t kLargestFrame = std::size_t{1} << 24;
constexpr std::size_t kLargestLocal = std::size_t{512} << 10;  // per thread, as on the hardware
constexpr std::size_t kLargestParameters = 32764;

// Targets are indices until the instructions have their final addresses.
const Instruction* as_target(std::size_t index) {
  return reinterpret_cast<const Instruction*>(index);
}
std::size_t as_index(const Instruction* target) {
  return reinterpret_cast<std::size_t>(target);
}

}  // namespace

std::optional<LoadError> Decoder::decode(std::size_t index) {
  function_ = &functions_[index];
  code_ = program_.functions[index].get();
  RowAllocation allocation = allocate_rows(*function_);
  register_rows_ = std::move(allocation.rows);
  lives_ = std::move(allocation.lives);
  code_->frame_bytes = allocation.frame_bytes;
  code_->registers = allocation.peak_words;
  if (code_->frame_bytes > kLargestFrame) refuse("more than 2^24 bytes of registers");
  layout_variables();
  if (error_) return error_;
  spill_parameters();
  for (const ast::Instruction& instruction : function_->instructions) {
    positions_.push_back(static_cast<int>(code_->instructions.size()));
    if (instruction.opcode.empty()) {
      place_label(instruction.label);
    } else {
      decode_instruction(instruction);
    }
    if (error_) return error_;
  }
  positions_.push_back(static_cast<int>(code_->instructions.size()));
  emit(isa_.function_end).counted = 0;
  if (!resolve_branches() || !resolve_tables()) return error_;
  code_->frame_bytes = align_up(code_->frame_bytes, kRowAlignment);
  place_lives();
  return std::nullopt;
}

// An entry's parameters lie in the launch's parameter block; those of other functions, and the arguments of calls, in
// the frame; local variables in each lane's local memory. A parameter whose address is taken is copied there, too.
void Decoder::layout_variables() {
  std::size_t offset = 0;
  const std::size_t first_parameter = function_->returns.size();
  const std::size_t last_parameter = first_parameter + function_->parameters.size();
  for (std::size_t i = 0; i < function_->variables.size(); ++i) {
    const ast::Variable& declared = function_->variables[i];
    FunctionVariable placed{declared.space, declared.bytes, kNoRow, 0};
    const bool is_launch_parameter = function_->is_entry && i >= first_parameter && i < last_parameter;
    offset = is_launch_parameter ? align_up(offset, declared.alignment) : offset;
    parameter_offsets_.push_back(offset);
    if (is_launch_parameter) {
      offset += declared.bytes;
    } else if (declared.space == Space::kLocal) {
      code_->local_bytes = align_up(code_->local_bytes, std::max<std::size_t>(declared.alignment, 1));
      placed.local_offset = code_->local_bytes;
      code_->local_bytes += declared.bytes;
    } else {
      placed.frame_offset = allocate(declared.bytes * kLanes, kRowAlignment);
      if (i < last_parameter && takes_address(i)) {
        code_->local_bytes = align_up(code_->local_bytes, std::max<std::size_t>(declared.alignment, 8));
        placed.local_offset = code_->local_bytes;
        placed.has_local_copy = true;
        code_->local_bytes += declared.bytes;
      }
    }
    variables_.push_back(placed);
  }
  code_->local_bytes = align_up(code_->local_bytes, 16);
  if (code_->local_bytes > kLargestLocal) refuse("more than 512 KiB of local memory per thread");
  if (function_->is_entry && offset > kLargestParameters) refuse("more than 32,764 bytes of parameters");
  code_->is_entry = function_->is_entry;
  const auto begin = variables_.begin();
  code_->returns.assign(begin, begin + static_cast<std::ptrdiff_t>(first_parameter));
  code_->parameters.assign(begin + static_cast<std::ptrdiff_t>(first_parameter),
                           begin + static_cast<std::ptrdiff_t>(last_parameter));
}

std::int32_t Decoder::allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t begin = align_up(code_->frame_bytes, alignment);
  if (begin + bytes > kLargestFrame) {
    refuse("function needs more than 2^24 bytes of registers and arguments");
    return 0;
  }
  code_->frame_bytes = begin + bytes;
  return static_cast<std::int32_t>(begin);
}

// A branch jumps behind the label's handler and checks for waiting lanes itself.
void Decoder::place_label(std::string_view name) {
  emit(isa_.label).counted = 0;
  if (labels_.emplace(name, code_->instructions.size()).second) return;
  error_ = LoadError{LoadError::Kind::kSyntax, 0, "label '" + std::string(name) + "' is defined twice"};
}

void Decoder::decode_instruction(const ast::Instruction& instruction) {
  current_ = &instruction;
  operands_ = function_->operands_of(instruction);
  modifiers_ = function_->modifiers_of(instruction);
  taken_ = 0;
  scratch_used_ = 0;
  const auto entry = isa_.opcodes.find(instruction.opcode);
  if (entry == isa_.opcodes.end()) return refuse("the instruction is not supported");
  if (modifiers_.size() > 31) return refuse("more than 31 modifiers");
  const std::size_t first = code_->instructions.size();
  if (instruction.guard >= 0 && entry->second.guard != GuardMode::kOwn) {
    decode_guarded(entry->second);
  } else {
    decode_body(entry->second);
  }
  finish_instruction(first);
}

void Decoder::decode_body(const Opcode& opcode) {
  widenings_.clear();
  opcode.decode(*this);
  for (const Widening& widening : std::exchange(widenings_, {})) {
    emit_resize(widening.to, widening.to_bytes, widening.from, widening.from_bytes, widening.sign);
  }
}

void Decoder::decode_guarded(const Opcode& opcode) {
  const bool masks = opcode.guard == GuardMode::kMask;
  Instruction& guard = emit(masks ? isa_.guard : isa_.branch_unless);
  guard.a = register_row(current_->guard);
  guard.mode = current_->guard_negated;
  const std::size_t guard_index = code_->instructions.size() - 1;
  decode_body(opcode);
  emit(masks ? isa_.unguard : isa_.label);
  code_->instructions[guard_index].target = as_target(code_->instructions.size());
}

void Decoder::finish_instruction(std::size_t first) {
  if (error_) return;
  for (std::size_t i = 0; i < modifiers_.size(); ++i) {
    if ((taken_ >> i & 1) == 0) return refuse("modifier ." + std::string(modifiers_[i]) + " is not supported");
  }
  for (std::size_t i = first; i < code_->instructions.size(); ++i) code_->instructions[i].counted = i == first;
}

bool Decoder::resolve_branches() {
  for (const Fixup& fixup : fixups_) {
    const auto label = labels_.find(fixup.label);
    Instruction& branch = code_->instructions[fixup.instruction];
    if (label == labels_.end()) {
      error_ = LoadError{
          LoadError::Kind::kUnresolvedSymbol, branch.line,
          "branch to label '" + std::string(fixup.label) + "', which function '" + code_->name + "' does not define"};
      return false;
    }
    branch.target = as_target(label->second);
  }
  for (Instruction& instruction : code_->instructions) {
    if (instruction.target != nullptr) instruction.target = code_->instructions.data() + as_index(instruction.target);
  }
  return true;
}

void Decoder::place_lives() {
  for (const RegisterLife& life : lives_) {
    const auto first = static_cast<std::size_t>(life.first), last = static_cast<std::size_t>(life.last);
    code_->lives.push_back({life.row, positions_[first], positions_[last + 1] - 1});
  }
  std::sort(code_->lives.begin(), code_->lives.end(),
            [](const RowLife& a, const RowLife& b) { return std::pair(a.row, a.first) < std::pair(b.row, b.first); });
}

bool Decoder::resolve_tables() {
  for (const TableFixup& fixup : table_fixups_) {
    const auto& tables = function_->branch_tables;
    const auto table = std::find_if(tables.begin(), tables.end(), [&](const auto& t) { return t.name == fixup.name; });
    bool found = table != tables.end();
    for (std::size_t i = 0; found && i < table->labels.size(); ++i) {
      const auto label = labels_.find(table->labels[i]);
      found = label != labels_.end();
      if (found) fixup.table->targets.push_back(code_->instructions.data() + label->second);
    }
    if (found) continue;
    error_ = LoadError{LoadError::Kind::kUnresolvedSymbol, fixup.line,
                       "branch table '" + std::string(fixup.name) + "' or one of its labels is not defined"};
    return false;
  }
  return true;
}

// ---- modifiers

bool Decoder::take(std::string_view modifier) {
  for (std::size_t i = 0; i < modifiers_.size(); ++i) {
    if (modifiers_[i] == modifier && (taken_ >> i & 1) == 0) {
      taken_ |= 1u << i;
      return true;
    }
  }
  return false;
}

int Decoder::take_any(std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < modifiers_.size(); ++i) {
    const auto name = std::find(names.begin(), names.end(), modifiers_[i]);
    if (name == names.end() || (taken_ >> i & 1) != 0) continue;
    taken_ |= 1u << i;
    return static_cast<int>(name - names.begin());
  }
  return -1;
}

bool Decoder::modifiers_contain(std::string_view modifier) const {
  return std::find(modifiers_.begin(), modifiers_.end(), modifier) != modifiers_.end();
}

std::optional<Type> Decoder::maybe_type() {
  for (std::size_t i = 0; i < modifiers_.size(); ++i) {
    const auto type = (taken_ >> i & 1) == 0 ? type_from_name(modifiers_[i]) : std::nullopt;
    if (!type) continue;
    taken_ |= 1u << i;
    return type;
  }
  return std::nullopt;
}

Type Decoder::take_type() {
  const auto type = maybe_type();
  if (!type) refuse("a type is missing", LoadError::Kind::kSyntax);
  return type.value_or(Type::kB32);
}

std::optional<Space> Decoder::maybe_space() {
  for (std::size_t i = 0; i < modifiers_.size(); ++i) {
    const auto space = (taken_ >> i & 1) == 0 ? space_from_name(modifiers_[i]) : std::nullopt;
    if (!space) continue;
    taken_ |= 1u << i;
    return space;
  }
  return std::nullopt;
}

bool Decoder::expect_operands(std::size_t least, std::size_t most) {
  if (operands_.size() >= least && operands_.size() <= most) return true;
  refuse("it has " + std::to_string(operands_.size()) + " operands instead of " + std::to_string(least),
         LoadError::Kind::kSyntax);
  return false;
}

std::string Decoder::spelled() const {
  std::string text(current_->opcode);
  for (const std::string_view modifier : modifiers_) text.append(".").append(modifier);
  return text;
}

void Decoder::refuse(std::string_view why, LoadError::Kind kind) {
  if (error_) return;
  const int line = current_ ? current_->line : function_->line;
  const std::string what = current_ ? "instruction " + spelled() : "function " + code_->name;
  error_ = LoadError{kind, line, what + ": " + std::string(why)};
}

// ---- emission

Instruction& Decoder::emit(Handler handler) {
  if (handler == nullptr) refuse("this combination of types is not supported");
  Instruction& instruction = code_->instructions.emplace_back();
  instruction.run = handler;
  instruction.line = current_ ? current_->line : function_->line;
  return instruction;
}

Instruction& Decoder::emit_memory(Handler handler) {
  Instruction& instruction = emit(handler);
  instruction.slot = program_.cache_slots++;
  return instruction;
}

void Decoder::branch_to(std::string_view label) {
  fixups_.push_back({code_->instructions.size() - 1, label});
}

const RowList* Decoder::keep(RowList list) {
  return program_.row_lists.emplace_back(std::make_unique<RowList>(std::move(list))).get();
}

const CallSite* Decoder::keep(CallSite site) {
  return program_.call_sites.emplace_back(std::make_unique<CallSite>(std::move(site))).get();
}

BranchTargets* Decoder::branch_table(std::string_view name) {
  BranchTargets* table = program_.branch_targets.emplace_back(std::make_unique<BranchTargets>()).get();
  table_fixups_.push_back({table, name, current_->line});
  return table;
}

void Decoder::emit_resize(std::int32_t to, std::size_t to_bytes, std::int32_t from, std::size_t from_bytes, bool sign) {
  Instruction& instruction = emit(isa_.resize(to_bytes, from_bytes, sign));
  instruction.dst = to;
  instruction.a = from;
}

std::string_view Decoder::symbol_label(const ast::Operand& operand) {
  if (operand.kind != ast::Operand::Kind::kSymbol) refuse("a label is missing", LoadError::Kind::kSyntax);
  return operand.name;
}

const Symbol* Decoder::find_symbol(std::string_view name) const {
  const auto entry = symbols_.find(name);
  return entry == symbols_.end() ? nullptr : &entry->second;
}

}  // namespace softgpu::ptx
