// For tests of decoding: a function of a text, and what is decoded of it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "softgpu/ptx/decode/decode.h"
#include "softgpu/ptx/decode/row_allocation.h"
#include "softgpu/ptx/text/parser.h"

namespace softgpu::ptx::testing {

// The only function of a text, with its registers in rows and its variables placed.
class OneFunction {
 public:
  explicit OneFunction(const std::string& source) : text_(source), parsed_(parse(text_)) {
    EXPECT_FALSE(parsed_.error) << parsed_.error->message;
    RowAllocation allocation = allocate_rows(tree());
    code.name = tree().name;
    code.frame_bytes = allocation.frame_bytes;
    decoder_ = std::make_unique<Decoder>(context_, tree(), code, allocation.rows);
  }

  const ast::Function& tree() const { return parsed_.module.functions.back(); }
  Decoder& decoder() { return *decoder_; }
  // Begins instruction `i` of the text, labels not counted.
  std::span<const ast::Operand> begin(std::size_t i) {
    for (const ast::Instruction& instruction : tree().instructions) {
      if (!instruction.opcode.empty() && i-- == 0) decoder_->text.begin(instruction);
    }
    decoder_->frame.begin_instruction();
    return decoder_->text.operands();
  }
  std::string error() const { return decoder_->text.refused() ? decoder_->text.error()->message : "none"; }
  // The handler emitted last.
  const Instruction& last() const { return code.instructions.back(); }

 private:
  std::string text_;
  ParseResult parsed_;

 public:
  SymbolTable symbols;
  Program program{nullptr};
  ConstantPool constants;
  Code code;

 private:
  ModuleContext context_{instruction_set(), symbols, parsed_.module.functions, program, constants};
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace softgpu::ptx::testing
