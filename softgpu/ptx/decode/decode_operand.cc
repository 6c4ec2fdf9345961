// The Decoder's part that turns operands into rows.
#include <bit>
#include <cstring>

#include "softgpu/ptx/decode/decode.h"

namespace softgpu::ptx {
namespace {

constexpr std::size_t kScratchBytes = sizeof(std::uint64_t) * kLanes;
constexpr std::size_t kPredicateBytes = sizeof(std::uint32_t);

}  // namespace

// ---- constants

std::int32_t ConstantPool::reserve(std::size_t bytes) {
  used_ = align_up(used_ + bytes, kRowAlignment);
  return -static_cast<std::int32_t>(used_);
}

std::int32_t ConstantPool::value(std::uint64_t bits, std::size_t bytes) {
  if (bytes < 8) bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
  const auto [entry, inserted] = rows_.try_emplace({bits, bytes}, 0);
  if (inserted) entry->second = reserve(bytes * kLanes);
  return entry->second;
}

std::int32_t ConstantPool::predicate(bool value) {
  const auto [entry, inserted] = rows_.try_emplace({value, 0}, 0);
  if (inserted) entry->second = reserve(kPredicateBytes);
  return entry->second;
}

void ConstantPool::store(Program& program) const {
  program.constants.resize(used_ + kRowAlignment);
  auto end = reinterpret_cast<std::uintptr_t>(program.constants.data()) + used_;
  std::byte* const aligned_end = reinterpret_cast<std::byte*>(align_up(end, kRowAlignment));
  for (const auto& [key, operand] : rows_) {
    const auto& [bits, bytes] = key;
    std::byte* row = aligned_end + operand;
    const std::uint32_t mask = bits != 0 ? ~0u : 0u;
    if (bytes == 0) std::memcpy(row, &mask, sizeof mask);
    for (std::size_t lane = 0; lane < kLanes && bytes != 0; ++lane) std::memcpy(row + lane * bytes, &bits, bytes);
  }
  program.constants_end = aligned_end;
}

// ---- registers

Type Decoder::register_type(const ast::Operand& operand) const {
  if (operand.kind != ast::Operand::Kind::kRegister) return Type::kNone;
  return function_->registers[static_cast<std::size_t>(operand.index)];
}

std::int32_t Decoder::scratch() {
  if (scratch_used_ == scratch_rows_.size()) scratch_rows_.push_back(allocate(kScratchBytes, kRowAlignment));
  return scratch_rows_[scratch_used_++];
}

// ---- reading

std::int32_t Decoder::read(const ast::Operand& operand, Type type) {
  if (type == Type::kPred) return read_predicate(operand);
  refuse_decoration(operand);
  switch (operand.kind) {
    case ast::Operand::Kind::kRegister: {
      const Type held = register_type(operand);
      if (held == Type::kPred || held == Type::kB128) break;
      if (size_of(held) == size_of(type)) return register_row(operand.index);
      const std::int32_t resized = scratch();
      emit_resize(resized, size_of(type), register_row(operand.index), size_of(held), is_signed(type));
      return resized;
    }
    case ast::Operand::Kind::kInteger:
    case ast::Operand::Kind::kFloat32:
    case ast::Operand::Kind::kFloat64: return constant(operand, type);
    case ast::Operand::Kind::kSymbol: return read_symbol(operand, type);
    case ast::Operand::Kind::kVariable: return read_variable(operand, type);
    case ast::Operand::Kind::kSpecial: return read_special(operand, type);
    default: break;
  }
  refuse("an operand does not fit", LoadError::Kind::kSyntax);
  return 0;
}

std::int32_t Decoder::constant(const ast::Operand& operand, Type type) {
  std::uint64_t bits = operand.bits;
  if (operand.kind == ast::Operand::Kind::kFloat64 && size_of(type) == 4) {
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  } else if (operand.kind == ast::Operand::Kind::kFloat32 && size_of(type) == 8) {
    bits = std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
  } else if (operand.kind != ast::Operand::Kind::kInteger && size_of(type) < 4) {
    refuse("a floating-point constant for a type narrower than 32 bits");
  }
  return constants_.value(bits, size_of(type));
}

std::int32_t Decoder::read_symbol(const ast::Operand& operand, Type type) {
  const Symbol* symbol = find_symbol(operand.name);
  if (symbol == nullptr) {
    refuse("'" + std::string(operand.name) + "' is not defined", LoadError::Kind::kUnresolvedSymbol);
    return 0;
  }
  const auto offset = static_cast<std::uint64_t>(operand.offset);
  switch (symbol->kind) {
    case Symbol::Kind::kFunction: return constants_.value(kCodeWindow + 16 * symbol->value, size_of(type));
    case Symbol::Kind::kDynamicShared: {
      const std::int32_t row = scratch();
      Instruction& instruction = emit(isa_.dynamic_shared_address);
      instruction.dst = row;
      instruction.immediate = operand.offset;
      if (size_of(type) == 8) return row;
      const std::int32_t narrow = scratch();
      emit_resize(narrow, size_of(type), row, 8, false);
      return narrow;
    }
    default: return constants_.value(symbol->value + offset, size_of(type));
  }
}

// The address of a local variable, or of a kernel parameter, in its own space.
std::int32_t Decoder::read_variable(const ast::Operand& operand, Type type) {
  if (is_kernel_parameter(operand)) {
    return constants_.value(parameter_offset(operand.index) + static_cast<std::uint64_t>(operand.offset),
                            size_of(type));
  }
  const FunctionVariable* local = variable(operand);
  if (local == nullptr || (local->space != Space::kLocal && !local->has_local_copy)) {
    refuse("an argument of a call has no address");
    return 0;
  }
  const std::int32_t row = scratch();
  Instruction& instruction = emit(isa_.local_address);
  instruction.dst = row;
  instruction.immediate = static_cast<std::int64_t>(local->local_offset) + operand.offset;
  if (size_of(type) == 8) return row;
  const std::int32_t narrow = scratch();
  emit_resize(narrow, size_of(type), row, 8, false);
  return narrow;
}

std::int32_t Decoder::read_special(const ast::Operand& operand, Type type) {
  const std::int32_t row = scratch();
  Instruction reader;
  if (!isa_.special_register(operand.name, size_of(type), reader)) {
    refuse("special register " + std::string(operand.name) + " is not supported");
    return row;
  }
  Instruction& instruction = emit(reader.run);
  instruction.mode = reader.mode;
  instruction.immediate = reader.immediate;
  instruction.dst = row;
  return row;
}

// ---- writing

std::int32_t Decoder::write(const ast::Operand& operand, Type type) {
  if (type == Type::kPred) return write_predicate(operand);
  if (operand.kind == ast::Operand::Kind::kSink) return scratch();
  const Type held = register_type(operand);
  refuse_decoration(operand);
  if (held == Type::kNone || held == Type::kPred || held == Type::kB128) {
    refuse("the destination is not a register of the type", LoadError::Kind::kSyntax);
    return 0;
  }
  if (size_of(held) == size_of(type)) return register_row(operand.index);
  const std::int32_t row = scratch();
  widenings_.push_back({register_row(operand.index), row, size_of(held), size_of(type), is_signed(type)});
  return row;
}

std::int32_t Decoder::wide_row(const ast::Operand& operand) {
  refuse_decoration(operand);
  if (register_type(operand) == Type::kB128) return register_row(operand.index);
  refuse("an operand is not a 128-bit register", LoadError::Kind::kSyntax);
  return 0;
}

// Only the instructions that know them may be given -r and r.b0.
void Decoder::refuse_decoration(const ast::Operand& operand) {
  if (operand.kind != ast::Operand::Kind::kRegister) return;
  if (!operand.name.empty()) refuse("a selector on an operand", LoadError::Kind::kSyntax);
  if (operand.negated && register_type(operand) != Type::kPred) {
    refuse("a sign on an operand", LoadError::Kind::kSyntax);
  }
}

// Whether the code uses the variable's address for more than direct loads and stores.
bool Decoder::takes_address(std::size_t variable) const {
  for (const ast::Operand& operand : function_->operands) {
    if (operand.kind != ast::Operand::Kind::kVariable || operand.memory) continue;
    if (operand.index == static_cast<int>(variable)) return true;
  }
  return false;
}

void Decoder::spill_parameters() {
  for (const FunctionVariable& variable : variables_) {
    if (!variable.has_local_copy) continue;
    Instruction& instruction = emit(isa_.spill_parameter);
    instruction.a = variable.frame_offset;
    instruction.slot = static_cast<std::uint32_t>(variable.bytes);
    instruction.immediate = static_cast<std::int64_t>(variable.local_offset);
    instruction.counted = 0;
  }
}

// ---- predicates

std::int32_t Decoder::read_predicate(const ast::Operand& operand) {
  if (operand.kind == ast::Operand::Kind::kInteger) return constants_.predicate(operand.bits != 0);
  if (register_type(operand) != Type::kPred) {
    refuse("a predicate operand is not a predicate register", LoadError::Kind::kSyntax);
    return 0;
  }
  if (!operand.negated) return register_row(operand.index);
  const std::int32_t row = scratch();
  Instruction& instruction = emit(isa_.not_predicate);
  instruction.dst = row;
  instruction.a = register_row(operand.index);
  return row;
}

std::int32_t Decoder::write_predicate(const ast::Operand& operand) {
  if (operand.kind == ast::Operand::Kind::kSink) return scratch();
  if (register_type(operand) == Type::kPred) return register_row(operand.index);
  refuse("the destination is not a predicate register", LoadError::Kind::kSyntax);
  return 0;
}

std::int32_t Decoder::second_predicate(const ast::Operand& operand) {
  if (operand.second < 0) return kNoRow;
  if (function_->registers[static_cast<std::size_t>(operand.second)] != Type::kPred) {
    refuse("the second destination is not a predicate register", LoadError::Kind::kSyntax);
    return kNoRow;
  }
  return register_row(operand.second);
}

// ---- addresses and variables

Address Decoder::address(const ast::Operand& operand, Space space) {
  if (!operand.memory) refuse("an address in brackets is missing", LoadError::Kind::kSyntax);
  switch (operand.kind) {
    case ast::Operand::Kind::kRegister: {
      refuse_decoration(operand);
      const Type held = register_type(operand);
      if (size_of(held) != 4 && size_of(held) != 8) refuse("an address register is not 32 or 64 bits wide");
      const bool is_narrow_generic = size_of(held) == 4 && (space == Space::kGeneric || space == Space::kGlobal);
      if (!is_narrow_generic) return {register_row(operand.index), operand.offset, size_of(held) == 8};
      return {read(operand, Type::kU64), operand.offset, true};
    }
    case ast::Operand::Kind::kInteger: return {constants_.value(operand.bits, 8), operand.offset, true};
    case ast::Operand::Kind::kSymbol: {
      const Symbol* symbol = find_symbol(operand.name);
      const bool in_shared =
          symbol && (symbol->kind == Symbol::Kind::kShared || symbol->kind == Symbol::Kind::kDynamicShared);
      const std::int32_t row = read_symbol(operand, Type::kU64);
      return {row, in_shared && space == Space::kGeneric ? static_cast<std::int64_t>(kSharedWindow) : 0, true};
    }
    case ast::Operand::Kind::kVariable: {
      const std::int32_t row = read_variable(operand, Type::kU64);
      return {row, space == Space::kGeneric ? static_cast<std::int64_t>(kLocalWindow) : 0, true};
    }
    default: break;
  }
  refuse("an address does not fit", LoadError::Kind::kSyntax);
  return {};
}

const FunctionVariable* Decoder::variable(const ast::Operand& operand) const {
  if (operand.kind != ast::Operand::Kind::kVariable) return nullptr;
  return &variables_[static_cast<std::size_t>(operand.index)];
}

bool Decoder::is_kernel_parameter(const ast::Operand& operand) const {
  if (operand.kind != ast::Operand::Kind::kVariable || !function_->is_entry) return false;
  const auto first = function_->returns.size();
  const auto index = static_cast<std::size_t>(operand.index);
  return index >= first && index < first + function_->parameters.size();
}

}  // namespace softgpu::ptx
