#include "softgpu/ptx/decode/operand_rows.h"

#include <bit>
#include <string>
#include <utility>

namespace softgpu::ptx {

Type OperandRows::register_type(const ast::Operand& operand) const {
  if (operand.kind != ast::Operand::Kind::kRegister) return Type::kNone;
  return function_.registers[static_cast<std::size_t>(operand.index)];
}

// ---- reading

std::int32_t OperandRows::read(const ast::Operand& operand, Type type) {
  if (type == Type::kPred) return read_predicate(operand);
  refuse_decoration(operand);
  switch (operand.kind) {
    case ast::Operand::Kind::kRegister: {
      const Type held = register_type(operand);
      if (held == Type::kPred || held == Type::kB128) break;
      if (size_of(held) == size_of(type)) return frame_.register_row(operand.index);
      const std::int32_t resized = frame_.scratch();
      writer_.emit_resize(resized, size_of(type), frame_.register_row(operand.index), size_of(held), is_signed(type));
      return resized;
    }
    case ast::Operand::Kind::kInteger:
    case ast::Operand::Kind::kFloat32:
    case ast::Operand::Kind::kFloat64: return constant(operand, type);
    case ast::Operand::Kind::kSymbol: return symbol(operand, type);
    case ast::Operand::Kind::kVariable: return variable(operand, type);
    case ast::Operand::Kind::kSpecial: return special(operand, type);
    default: break;
  }
  text_.refuse("an operand does not fit", LoadError::Kind::kSyntax);
  return 0;
}

std::int32_t OperandRows::constant(const ast::Operand& operand, Type type) {
  std::uint64_t bits = operand.bits;
  if (operand.kind == ast::Operand::Kind::kFloat64 && size_of(type) == 4) {
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  } else if (operand.kind == ast::Operand::Kind::kFloat32 && size_of(type) == 8) {
    bits = std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
  } else if (operand.kind != ast::Operand::Kind::kInteger && size_of(type) < 4) {
    text_.refuse("a floating-point constant for a type narrower than 32 bits");
  }
  return module_.constants.value(bits, size_of(type));
}

std::int32_t OperandRows::symbol(const ast::Operand& operand, Type type) {
  const Symbol* found = module_.find_symbol(operand.name);
  if (found == nullptr) {
    text_.refuse("'" + std::string(operand.name) + "' is not defined", LoadError::Kind::kUnresolvedSymbol);
    return 0;
  }
  const auto offset = static_cast<std::uint64_t>(operand.offset);
  switch (found->kind) {
    case Symbol::Kind::kFunction: return module_.constants.value(kCodeWindow + 16 * found->value, size_of(type));
    case Symbol::Kind::kDynamicShared:
      return computed_address(module_.isa.dynamic_shared_address, operand.offset, type);
    default: return module_.constants.value(found->value + offset, size_of(type));
  }
}

// The address of a local variable, or of a kernel parameter, in its own space.
std::int32_t OperandRows::variable(const ast::Operand& operand, Type type) {
  if (frame_.is_kernel_parameter(operand)) {
    const auto offset = static_cast<std::uint64_t>(operand.offset);
    return module_.constants.value(frame_.parameter_offset(operand.index) + offset, size_of(type));
  }
  const FunctionVariable* local = frame_.variable(operand);
  if (local == nullptr || (local->space != Space::kLocal && !local->has_local_copy)) {
    text_.refuse("an argument of a call has no address");
    return 0;
  }
  const auto offset = static_cast<std::int64_t>(local->local_offset) + operand.offset;
  return computed_address(module_.isa.local_address, offset, type);
}

std::int32_t OperandRows::computed_address(Handler handler, std::int64_t offset, Type type) {
  const std::int32_t row = frame_.scratch();
  Instruction& instruction = writer_.emit(handler);
  instruction.dst = row;
  instruction.immediate = offset;
  if (size_of(type) == 8) return row;
  const std::int32_t narrow = frame_.scratch();
  writer_.emit_resize(narrow, size_of(type), row, 8, false);
  return narrow;
}

std::int32_t OperandRows::special(const ast::Operand& operand, Type type) {
  const std::int32_t row = frame_.scratch();
  Instruction reader;
  if (!module_.isa.special_register(operand.name, size_of(type), reader)) {
    text_.refuse("special register " + std::string(operand.name) + " is not supported");
    return row;
  }
  Instruction& instruction = writer_.emit(reader.run);
  instruction.mode = reader.mode;
  instruction.immediate = reader.immediate;
  instruction.dst = row;
  return row;
}

// ---- writing

std::int32_t OperandRows::write(const ast::Operand& operand, Type type) {
  if (type == Type::kPred) return write_predicate(operand);
  if (operand.kind == ast::Operand::Kind::kSink) return frame_.scratch();
  const Type held = register_type(operand);
  refuse_decoration(operand);
  if (held == Type::kNone || held == Type::kPred || held == Type::kB128) {
    text_.refuse("the destination is not a register of the type", LoadError::Kind::kSyntax);
    return 0;
  }
  if (size_of(held) == size_of(type)) return frame_.register_row(operand.index);
  const std::int32_t row = frame_.scratch();
  widenings_.push_back({frame_.register_row(operand.index), row, size_of(held), size_of(type), is_signed(type)});
  return row;
}

std::int32_t OperandRows::wide_row(const ast::Operand& operand) {
  refuse_decoration(operand);
  if (register_type(operand) == Type::kB128) return frame_.register_row(operand.index);
  text_.refuse("an operand is not a 128-bit register", LoadError::Kind::kSyntax);
  return 0;
}

void OperandRows::finish() {
  for (const Widening& widening : std::exchange(widenings_, {})) {
    writer_.emit_resize(widening.to, widening.to_bytes, widening.from, widening.from_bytes, widening.sign);
  }
}

void OperandRows::refuse_decoration(const ast::Operand& operand) {
  if (operand.kind != ast::Operand::Kind::kRegister) return;
  if (!operand.name.empty()) text_.refuse("a selector on an operand", LoadError::Kind::kSyntax);
  if (operand.negated && register_type(operand) != Type::kPred) {
    text_.refuse("a sign on an operand", LoadError::Kind::kSyntax);
  }
}

// ---- predicates

std::int32_t OperandRows::read_predicate(const ast::Operand& operand) {
  if (operand.kind == ast::Operand::Kind::kInteger) return module_.constants.predicate(operand.bits != 0);
  if (register_type(operand) != Type::kPred) {
    text_.refuse("a predicate operand is not a predicate register", LoadError::Kind::kSyntax);
    return 0;
  }
  if (!operand.negated) return frame_.register_row(operand.index);
  const std::int32_t row = frame_.scratch();
  Instruction& instruction = writer_.emit(module_.isa.not_predicate);
  instruction.dst = row;
  instruction.a = frame_.register_row(operand.index);
  return row;
}

std::int32_t OperandRows::write_predicate(const ast::Operand& operand) {
  if (operand.kind == ast::Operand::Kind::kSink) return frame_.scratch();
  if (register_type(operand) == Type::kPred) return frame_.register_row(operand.index);
  text_.refuse("the destination is not a predicate register", LoadError::Kind::kSyntax);
  return 0;
}

std::int32_t OperandRows::second_predicate(const ast::Operand& operand) {
  if (operand.second < 0) return kNoRow;
  if (function_.registers[static_cast<std::size_t>(operand.second)] != Type::kPred) {
    text_.refuse("the second destination is not a predicate register", LoadError::Kind::kSyntax);
    return kNoRow;
  }
  return frame_.register_row(operand.second);
}

// ---- addresses

Address OperandRows::address(const ast::Operand& operand, Space space) {
  if (!operand.memory) text_.refuse("an address in brackets is missing", LoadError::Kind::kSyntax);
  switch (operand.kind) {
    case ast::Operand::Kind::kRegister: return register_address(operand, space);
    case ast::Operand::Kind::kInteger: return {module_.constants.value(operand.bits, 8), operand.offset, true};
    case ast::Operand::Kind::kSymbol: {
      const Symbol* found = module_.find_symbol(operand.name);
      const bool in_shared =
          found && (found->kind == Symbol::Kind::kShared || found->kind == Symbol::Kind::kDynamicShared);
      const std::int32_t row = symbol(operand, Type::kU64);
      return {row, in_shared && space == Space::kGeneric ? static_cast<std::int64_t>(kSharedWindow) : 0, true};
    }
    case ast::Operand::Kind::kVariable: {
      const std::int32_t row = variable(operand, Type::kU64);
      return {row, space == Space::kGeneric ? static_cast<std::int64_t>(kLocalWindow) : 0, true};
    }
    default: break;
  }
  text_.refuse("an address does not fit", LoadError::Kind::kSyntax);
  return {};
}

Address OperandRows::register_address(const ast::Operand& operand, Space space) {
  refuse_decoration(operand);
  const Type held = register_type(operand);
  if (size_of(held) != 4 && size_of(held) != 8) text_.refuse("an address register is not 32 or 64 bits wide");
  const bool is_narrow_generic = size_of(held) == 4 && (space == Space::kGeneric || space == Space::kGlobal);
  if (!is_narrow_generic) return {frame_.register_row(operand.index), operand.offset, size_of(held) == 8};
  return {read(operand, Type::kU64), operand.offset, true};
}

}  // namespace softgpu::ptx
