// Where a function's registers, variables and scratch rows lie.
//
// An entry's parameters lie in the launch's parameter block; those of other functions, and the arguments of calls, in the
// frame; local variables in each lane's local memory. A parameter whose address is taken is copied there, too. Behind them, the
// frame has as many scratch rows as the instruction that needs most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "softgpu/ptx/decode/instruction_text.h"
#include "softgpu/ptx/program.h"
#include "softgpu/ptx/text/ast.h"

namespace softgpu::ptx {

class FunctionFrame {
 public:
  // Adds to `code`, whose frame has the registers already; `register_rows` says where. Refuses, through `text`, what is larger
  // than a frame, local memory or the launch's parameters may be. All must outlive this.
  FunctionFrame(const ast::Function& function, Code& code, InstructionText& text,
                std::vector<std::int32_t> register_rows);

  std::int32_t register_row(int index) const { return register_rows_[static_cast<std::size_t>(index)]; }

  // The variable that the operand is, or null.
  const FunctionVariable* variable(const ast::Operand& operand) const;
  std::span<const FunctionVariable> variables() const { return variables_; }
  bool is_kernel_parameter(const ast::Operand& operand) const;
  // Of an entry's parameter in the launch's parameter block.
  std::size_t parameter_offset(int variable) const { return parameter_offsets_[static_cast<std::size_t>(variable)]; }

  // A row of 64-bit elements that is the instruction's until the next begins.
  std::int32_t scratch();
  void begin_instruction() { scratch_used_ = 0; }

 private:
  void place(std::size_t variable, std::size_t& parameter_bytes);
  std::size_t allocate_local(const ast::Variable& variable, std::size_t least_alignment);
  std::int32_t allocate(std::size_t bytes);
  bool takes_address(std::size_t variable) const;
  // A function's variables begin with its results, then its parameters.
  std::size_t first_parameter() const { return function_.returns.size(); }
  std::size_t last_parameter() const { return first_parameter() + function_.parameters.size(); }
  bool is_launch_parameter(std::size_t variable) const {
    return function_.is_entry && variable >= first_parameter() && variable < last_parameter();
  }

  const ast::Function& function_;
  Code& code_;
  InstructionText& text_;
  std::vector<std::int32_t> register_rows_;
  std::vector<FunctionVariable> variables_;
  std::vector<std::size_t> parameter_offsets_;  // by variable
  std::vector<std::int32_t> scratch_rows_;
  std::size_t scratch_used_ = 0;
};

}  // namespace softgpu::ptx
