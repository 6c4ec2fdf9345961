// Appends a function's handlers, and gives branches their targets when all labels are known.
//
// Handlers move while they are added, so a reference to one is valid until the next is emitted, and targets are indices until
// resolve() has made addresses of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "softgpu/ptx/decode/instruction_text.h"
#include "softgpu/ptx/isa.h"
#include "softgpu/ptx/program.h"

namespace softgpu::ptx {

class CodeWriter {
 public:
  // Adds to `code` and to the program's lists; refuses through `text`. All must outlive this.
  CodeWriter(const InstructionSet& isa, const ast::Function& function, Program& program, Code& code,
             InstructionText& text)
      : isa_(isa), function_(function), program_(program), code_(code), text_(text) {}

  Code& code() { return code_; }
  // Of the next handler.
  std::size_t position() const { return code_.instructions.size(); }

  // A null handler refuses the instruction: its family has none for these types.
  Instruction& emit(Handler handler);
  Instruction& emit_memory(Handler handler);  // with an extent cache slot
  // to = from, of another width.
  void emit_resize(std::int32_t to, std::size_t to_bytes, std::int32_t from, std::size_t from_bytes, bool sign);

  // Sets the target of the handler emitted last.
  void branch_to(std::string_view label);
  // Sets that of the handler at `position` to the next one.
  void branch_here(std::size_t position);
  // The targets of an indexed branch, which resolve() fills in.
  BranchTargets* branch_table(std::string_view name);
  void place_label(std::string_view name);
  // False, and the function is refused: a label or table is not defined.
  bool resolve();

  // Lists that handlers point to. They live as long as the program.
  const RowList* keep(RowList list);
  const CallSite* keep(CallSite site);

 private:
  struct Fixup {
    std::size_t instruction;
    std::string_view label;
  };
  struct TableFixup {
    BranchTargets* table;
    std::string_view name;
    int line;
  };
  bool resolve_branches();
  bool resolve_table(const TableFixup& fixup);

  const InstructionSet& isa_;
  const ast::Function& function_;
  Program& program_;
  Code& code_;
  InstructionText& text_;
  std::unordered_map<std::string_view, std::size_t> labels_;
  std::vector<Fixup> fixups_;
  std::vector<TableFixup> table_fixups_;
};

}  // namespace softgpu::ptx
