#include "softgpu/ptx/decode/function_frame.h"

#include <algorithm>
#include <utility>

namespace softgpu::ptx {
namespace {

constexpr std::size_t kScratchBytes = sizeof(std::uint64_t) * kLanes;
constexpr std::size_t kLargestFrame = std::size_t{1} << 24;
constexpr std::size_t kLargestLocal = std::size_t{512} << 10;  // per thread, as on the hardware
constexpr std::size_t kLargestParameters = 32764;

}  // namespace

FunctionFrame::FunctionFrame(const ast::Function& function, Code& code, InstructionText& text,
                             std::vector<std::int32_t> register_rows)
    : function_(function), code_(code), text_(text), register_rows_(std::move(register_rows)) {
  if (code_.frame_bytes > kLargestFrame) text_.refuse("more than 2^24 bytes of registers");
  std::size_t parameter_bytes = 0;
  for (std::size_t i = 0; i < function_.variables.size(); ++i) place(i, parameter_bytes);
  code_.local_bytes = align_up(code_.local_bytes, 16);
  if (code_.local_bytes > kLargestLocal) text_.refuse("more than 512 KiB of local memory per thread");
  if (function_.is_entry && parameter_bytes > kLargestParameters) text_.refuse("more than 32,764 bytes of parameters");
  code_.is_entry = function_.is_entry;
  const auto begin = variables_.begin();
  code_.returns.assign(begin, begin + static_cast<std::ptrdiff_t>(first_parameter()));
  code_.parameters.assign(begin + static_cast<std::ptrdiff_t>(first_parameter()),
                          begin + static_cast<std::ptrdiff_t>(last_parameter()));
}

void FunctionFrame::place(std::size_t variable, std::size_t& parameter_bytes) {
  const ast::Variable& declared = function_.variables[variable];
  FunctionVariable placed{declared.space, declared.bytes, kNoRow, 0};
  if (is_launch_parameter(variable)) parameter_bytes = align_up(parameter_bytes, declared.alignment);
  parameter_offsets_.push_back(parameter_bytes);
  if (is_launch_parameter(variable)) {
    parameter_bytes += declared.bytes;
  } else if (declared.space == Space::kLocal) {
    placed.local_offset = allocate_local(declared, 1);
  } else {
    placed.frame_offset = allocate(declared.bytes * kLanes);
    if (variable < last_parameter() && takes_address(variable)) {
      placed.local_offset = allocate_local(declared, 8);
      placed.has_local_copy = true;
    }
  }
  variables_.push_back(placed);
}

std::size_t FunctionFrame::allocate_local(const ast::Variable& variable, std::size_t least_alignment) {
  const std::size_t begin = align_up(code_.local_bytes, std::max<std::size_t>(variable.alignment, least_alignment));
  code_.local_bytes = begin + variable.bytes;
  return begin;
}

std::int32_t FunctionFrame::allocate(std::size_t bytes) {
  const std::size_t begin = align_up(code_.frame_bytes, kRowAlignment);
  if (begin + bytes > kLargestFrame) {
    text_.refuse("function needs more than 2^24 bytes of registers and arguments");
    return 0;
  }
  code_.frame_bytes = begin + bytes;
  return static_cast<std::int32_t>(begin);
}

// Whether the code uses the variable's address for more than direct loads and stores.
bool FunctionFrame::takes_address(std::size_t variable) const {
  for (const ast::Operand& operand : function_.operands) {
    if (operand.kind != ast::Operand::Kind::kVariable || operand.memory) continue;
    if (operand.index == static_cast<int>(variable)) return true;
  }
  return false;
}

const FunctionVariable* FunctionFrame::variable(const ast::Operand& operand) const {
  if (operand.kind != ast::Operand::Kind::kVariable) return nullptr;
  return &variables_[static_cast<std::size_t>(operand.index)];
}

bool FunctionFrame::is_kernel_parameter(const ast::Operand& operand) const {
  return operand.kind == ast::Operand::Kind::kVariable && is_launch_parameter(static_cast<std::size_t>(operand.index));
}

std::int32_t FunctionFrame::scratch() {
  if (scratch_used_ == scratch_rows_.size()) scratch_rows_.push_back(allocate(kScratchBytes));
  return scratch_rows_[scratch_used_++];
}

}  // namespace softgpu::ptx
