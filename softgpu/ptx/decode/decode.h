// Tree -> handlers. A function's instructions are walked; for each, the opcode's decode function (isa.h) asks for operand rows
// and emits handlers, through the Decoder that it is given.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "softgpu/ptx/decode/code_writer.h"
#include "softgpu/ptx/decode/function_frame.h"
#include "softgpu/ptx/decode/instruction_text.h"
#include "softgpu/ptx/decode/module_context.h"
#include "softgpu/ptx/decode/operand_rows.h"
#include "softgpu/ptx/machine.h"

namespace softgpu::ptx {

// What a decode function works with: `text` is what the instruction says, `rows` where its operands are, `writer` takes its
// handlers.
struct Decoder {
  // Of the function, whose handlers `code` takes. Both rows of registers and lists of the tree must outlive this.
  Decoder(const ModuleContext& its_module, const ast::Function& its_function, Code& code,
          std::vector<std::int32_t> register_rows);
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  const ModuleContext& module;
  const ast::Function& function;
  InstructionText text;
  FunctionFrame frame;
  CodeWriter writer;
  OperandRows rows;
};

// Decodes program.functions[index]. The error names the instruction and its line.
std::optional<LoadError> decode_function(const ModuleContext& module, std::size_t index);

}  // namespace softgpu::ptx
