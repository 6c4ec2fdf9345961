// Operands of instructions, with registers and variables of the function resolved. Which of them an instruction may have is the
// decoder's to know.
//
//   %r1   -8   !%p1   %tid.x   %r1|%p1   table+4   table[%r2]   [%rd1+16]   [1024]   {%r1, %r2}   (a, b)
//
// An element of an array that a register names has an address that is not known yet: the operand is a register that the parser
// adds, and an instruction before the operand's own is to compute it (ElementAddress).
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "softgpu/ptx/text/ast.h"
#include "softgpu/ptx/text/expression_reader.h"
#include "softgpu/ptx/text/module_names.h"
#include "softgpu/ptx/text/scopes.h"
#include "softgpu/ptx/text/token_reader.h"

namespace softgpu::ptx {

// address = index * size + array
struct ElementAddress {
  ast::Operand address, index, size, array;
};

class OperandReader {
 public:
  // Adds to the function's operands, elements of lists and registers. All must outlive this.
  OperandReader(TokenReader& reader, const Scopes& scopes, const ModuleNames& names, ast::Function& function)
      : reader_(reader), scopes_(scopes), names_(names), function_(function) {}

  // Reads the operands of an instruction, up to its ';', which stays. False when the reader has failed.
  bool read(std::string_view opcode);
  // Addresses that the instruction's operands need, in their order. They are forgotten.
  std::vector<ElementAddress> take_element_addresses();

 private:
  Type register_type(int index) const { return function_.registers[static_cast<std::size_t>(index)]; }
  bool operand(ast::Operand& out);
  bool predicate(ast::Operand& out);
  bool negative(ast::Operand& out);
  bool list(char closing, ast::Operand& out);
  bool address(ast::Operand& out);
  bool named(ast::Operand& out);
  bool second_destination(int line, ast::Operand& out);
  bool symbol_offset(ast::Operand& out, const ast::Variable* variable);
  bool array_element(ast::Operand& out, const ast::Variable& variable);
  void add_element_address(ast::Operand& out, int index, std::size_t element_bytes);
  bool number(ast::Operand& out);

  TokenReader& reader_;
  const Scopes& scopes_;
  const ModuleNames& names_;
  ast::Function& function_;
  std::string_view opcode_;  // of the instruction being read
  std::vector<ElementAddress> element_addresses_;
  // Operands behind the first of [texture, {x, y}]; they follow the bracket's own in the instruction.
  std::vector<ast::Operand> bracketed_;
};

}  // namespace softgpu::ptx
