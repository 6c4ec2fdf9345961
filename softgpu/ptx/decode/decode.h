// Tree -> handlers. The Decoder walks a function's instructions; for each it calls the opcode's decode function, which
// asks it for operand rows and emits handlers. It allocates rows, inserts width conversions and guards, and resolves
// branches.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "softgpu/ptx/decode/row_allocation.h"
#include "softgpu/ptx/isa.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"
#include "softgpu/ptx/text/ast.h"

namespace softgpu::ptx {

// What a module-level name means.
struct Symbol {
  enum class Kind : std::uint8_t { kDevice, kShared, kDynamicShared, kFunction };
  Kind kind = Kind::kDevice;
  std::uint64_t value = 0;  // device address, offset in shared memory, or function index
};
using SymbolTable = std::unordered_map<std::string_view, Symbol>;

// Rows of equal constants are shared by the whole module.
class ConstantPool {
 public:
  std::int32_t value(std::uint64_t bits, std::size_t bytes);
  std::int32_t predicate(bool value);
  void store(Program& program) const;

 private:
  std::int32_t reserve(std::size_t bytes);

  std::map<std::pair<std::uint64_t, std::size_t>, std::int32_t> rows_;  // (bits, bytes; 0: a predicate) -> operand
  std::size_t used_ = 0;
};

struct Address {
  std::int32_t row = 0;
  std::int64_t offset = 0;
  bool is_wide = true;  // 64-bit addresses, else 32-bit
};

class Decoder {
 public:
  Decoder(const InstructionSet& isa, const SymbolTable& symbols, const std::vector<ast::Function>& functions,
          Program& program, ConstantPool& constants)
      : isa_(isa), symbols_(symbols), functions_(functions), program_(program), constants_(constants) {}

  // Decodes program.functions[index]. The error names the instruction and its line.
  std::optional<LoadError> decode(std::size_t index);

  // The instruction being decoded. Every modifier must be taken by somebody, else the instruction is refused.
  std::string_view opcode() const { return current_->opcode; }
  std::span<const ast::Operand> operands() const { return operands_; }
  bool take(std::string_view modifier);
  // Takes the first modifier that is one of `names`, in the order the instruction spells them; its index, or -1.
  int take_any(std::span<const std::string_view> names);
  Type take_type();  // the next type modifier; refuses the instruction when there is none
  std::optional<Type> maybe_type();
  std::optional<Space> maybe_space();
  bool modifiers_contain(std::string_view modifier) const;  // taken or not
  bool expect_operands(std::size_t least, std::size_t most);

  // Rows of operands. Reading converts constants, symbols and special registers to a row of `type`, and a register of
  // another width by truncation or (for signed types) extension. Writing to a register of another width is completed
  // after the handlers of the instruction.
  std::int32_t read(const ast::Operand& operand, Type type);
  std::int32_t write(const ast::Operand& operand, Type type);
  std::int32_t read_predicate(const ast::Operand& operand);
  std::int32_t write_predicate(const ast::Operand& operand);
  // The low half of a 128-bit register: a row of 64-bit values, which the row of the high half follows.
  std::int32_t wide_row(const ast::Operand& operand);
  std::int32_t second_predicate(const ast::Operand& operand);  // q of p|q, or kNoRow
  Address address(const ast::Operand& operand, Space space);
  std::int32_t scratch();
  Type register_type(const ast::Operand& operand) const;

  Instruction& emit(Handler handler);
  Instruction& emit_memory(Handler handler);  // with an extent cache slot
  void branch_to(std::string_view label);     // sets the target of the handler emitted last
  std::string_view symbol_label(const ast::Operand& operand);
  void refuse(std::string_view why, LoadError::Kind kind = LoadError::Kind::kUnsupported);
  bool refused() const { return error_.has_value(); }

  // What some families need to know of the surroundings.
  const InstructionSet& isa() const { return isa_; }
  const ast::Function& function() const { return *function_; }
  const ast::Instruction& current() const { return *current_; }
  Code& code() { return *code_; }
  Program& program() { return program_; }
  const Symbol* find_symbol(std::string_view name) const;
  const ast::Function& function_at(std::size_t index) const { return functions_[index]; }
  const FunctionVariable* variable(const ast::Operand& operand) const;
  std::size_t parameter_offset(int variable) const { return parameter_offsets_[static_cast<std::size_t>(variable)]; }
  bool is_kernel_parameter(const ast::Operand& operand) const;
  const RowList* keep(RowList list);
  const CallSite* keep(CallSite site);
  BranchTargets* branch_table(std::string_view name);

 private:
  struct Widening {
    std::int32_t to, from;
    std::size_t to_bytes, from_bytes;
    bool sign;
  };
  struct Fixup {
    std::size_t instruction;
    std::string_view label;
  };
  struct TableFixup {
    BranchTargets* table;
    std::string_view name;
    int line;
  };

  void layout_variables();
  void decode_instruction(const ast::Instruction& instruction);
  void decode_body(const Opcode& opcode);
  void decode_guarded(const Opcode& opcode);
  void finish_instruction(std::size_t first);
  void place_label(std::string_view name);
  bool resolve_branches();
  bool resolve_tables();
  void place_lives();
  std::int32_t register_row(int index) const { return register_rows_[static_cast<std::size_t>(index)]; }
  std::int32_t allocate(std::size_t bytes, std::size_t alignment);
  void emit_resize(std::int32_t to, std::size_t to_bytes, std::int32_t from, std::size_t from_bytes, bool sign);
  std::int32_t read_symbol(const ast::Operand& operand, Type type);
  std::int32_t read_variable(const ast::Operand& operand, Type type);
  void refuse_decoration(const ast::Operand& operand);
  bool takes_address(std::size_t variable) const;
  void spill_parameters();
  std::int32_t read_special(const ast::Operand& operand, Type type);
  std::int32_t constant(const ast::Operand& operand, Type type);
  std::string spelled() const;

  const InstructionSet& isa_;
  const SymbolTable& symbols_;
  const std::vector<ast::Function>& functions_;
  Program& program_;
  ConstantPool& constants_;

  const ast::Function* function_ = nullptr;
  Code* code_ = nullptr;
  std::vector<FunctionVariable> variables_;
  std::vector<std::size_t> parameter_offsets_;  // of an entry's parameters in the launch's parameter block
  std::vector<std::int32_t> register_rows_;
  std::vector<RegisterLife> lives_;
  std::vector<int> positions_;  // of the tree's instructions: index of the first handler
  std::vector<std::int32_t> scratch_rows_;
  std::unordered_map<std::string_view, std::size_t> labels_;
  std::vector<Fixup> fixups_;
  std::vector<TableFixup> table_fixups_;

  const ast::Instruction* current_ = nullptr;
  std::span<const ast::Operand> operands_;
  std::span<const std::string_view> modifiers_;
  std::uint32_t taken_ = 0;  // bit per modifier
  std::size_t scratch_used_ = 0;
  std::vector<Widening> widenings_;
  std::optional<LoadError> error_;
};

}  // namespace softgpu::ptx
