// Rewrites one function: every statement of its body once more, with fences. The state of fence_ptx(), which is the way in.
//
//   Function ──plans──> where addresses are fenced, what is read first, which parameters need zeros
//   items, in their order ──> text_              now_ is the instruction as handlers change it, source_ as it was written
//   what the body turned out to need ──> start_  declarations, the arena, clearing; it stands before text_
//
// One pass, and one way only through an instruction: instruction() asks what it is and calls that family's handler, which
// writes what goes before, the instruction, and nothing if it refuses. Names of the fence begin with __fence or %__fence, and
// no name of a module may.
#pragma once

#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/fence/address_plan.h"
#include "gpu/fence/call_parameters.h"
#include "gpu/fence/clears.h"
#include "gpu/fence/definitions.h"
#include "gpu/fence/fence.h"
#include "gpu/fence/layout.h"
#include "gpu/fence/ptx.h"

namespace fairlead::fence {

// The parameters that hand a device function its thread's arena; empty when the module has none.
std::string signature_text(const Function& function, std::string_view name, const Layout& layout);
// The name a function has in the fenced module: extern ones are replaced.
std::string name_in_output(const Function& function);

// Why a module whose fenced text would exceed most_fenced_bytes() is refused.
std::string too_large();

class FunctionRewriter {
 public:
  // The fenced body has at most `most_bytes`, or is refused. It begins with `clears`.
  FunctionRewriter(const Function& function, const Layout& layout, const Clears& clears, const FenceOptions& options,
                   std::size_t most_bytes);
  // The body with its braces.
  Result<std::string> run();
  const FunctionReport& report() const { return report_; }

 private:
  // A .local variable and an offset in it.
  struct LocalPlace {
    int variable = -1;
    std::int64_t offset = 0;
  };

  bool refuse(std::string_view reason);
  bool has_room();  // for what is written so far; else it is refused
  template <class... Args>
  void emit(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
    ++emitted_;
  }
  void emit_guarded(const std::string& text);

  // What stands before the body (rewriter_prologue.cc).
  std::string prologue();
  void begin(const std::string& line);  // a line of it
  void begin_registers();
  void begin_arena();
  void clear_shared();
  void clear_arena();
  void set_registers();
  void set_companions();
  void name_anew();
  void mention(const std::vector<Operand>& operands);
  void apply_names(std::vector<Operand>& operands) const;
  bool store_zeros(const Variable& parameter, std::string& text);
  std::string_view name_of_register(std::size_t id) const;

  // Statements.
  bool item(const Item& item);
  bool variable(const Variable& variable);
  bool instruction();
  void fence_written_registers();
  bool plain();
  bool operands_are_plain(const std::vector<Operand>& operands, std::size_t from = 0);
  bool operand_is_plain(const Operand& operand);
  bool branch();
  bool table_branch();
  bool targets_are_labels(std::size_t table);
  bool move();
  bool move_of_symbol(const std::string& to, unsigned bits, const Operand& symbol);
  bool convert();

  // Memory (rewriter_memory.cc).
  bool access();
  bool access_in(Space space, Operand& address);
  bool is_inside(const Variable& parameter, const Operand& address);
  bool async_copy();
  bool shared_only();
  bool matrix();
  std::optional<std::string> global_address(const Operand& address);
  std::optional<std::string> generic_address(const Operand& address);
  std::optional<std::string> local_address(const Operand& address);
  bool sum(std::string_view to, const Operand& address);
  void fence(std::string_view to, std::string_view from);
  std::uint64_t fenced(std::uint64_t address) const;
  std::string companion(int register_id);
  std::string constant_address(std::uint64_t address);
  void bound_local(std::string_view to, std::string_view from, std::string_view arena);
  std::string frame_address(std::uint64_t offset) const;
  std::vector<Operand*> addresses();
  bool may_write() const;
  void find_local_pointers();
  std::optional<LocalPlace> local_place(const Operand& operand) const;

  // Other lanes (rewriter_lanes.cc).
  // Which lanes of the warp are here is known until code is reached or left by other lanes.
  void forget_lanes();
  void look_for_lanes();
  void find_lanes(const std::string& mask);
  bool find_source_lane(const Operand& lane, const Operand& segment);
  bool shuffle();

  // Calls (rewriter_call.cc).
  bool call();
  bool direct_call(const CallParts& parts, const Function& callee, std::string_view guard);
  bool indirect_call(const CallParts& parts);
  bool call_operands_are_plain(const CallParts& parts);
  bool fits(const Operand* given, const std::vector<Variable>& wanted);
  const std::vector<std::string_view>& possible_targets(std::size_t table);

  unsigned bits_of(const Operand& operand) const;
  std::string guard_text() const;

  const Function& function_;
  const Layout& layout_;
  const FenceOptions& options_;
  const Clears& clears_;
  const std::size_t most_bytes_;
  const AddressPlan plan_;
  const ReadFirst read_first_;
  const CallParameters call_parameters_;
  std::map<std::string_view, std::size_t> tables_;  // of branches and calls: item
  std::map<std::string_view, bool> labels_;
  // Each table is looked through once, however many branches and calls name it.
  std::set<std::size_t> tables_of_labels_;
  std::map<std::size_t, std::vector<std::string_view>> functions_of_table_;
  std::vector<bool> mentioned_;                            // by variable
  std::vector<std::optional<LocalPlace>> local_pointers_;  // by register
  std::vector<int> fresh_in_;                              // by register: region in which its companion is up to date

  std::map<int, std::string> register_names_;  // of inner scopes, that the function's start sets

  const Instruction* source_ = nullptr;  // the instruction at hand, as it was written
  Instruction now_;                      // and as handlers change it
  int line_ = 0;
  int region_ = 0;
  int depth_ = 0;  // of scopes
  std::string text_, start_, declarations_;
  std::optional<Error> error_;
  FunctionReport report_;
  std::size_t emitted_ = 0;
  int labels_made_ = 0;
  std::map<int, int> companions_;  // register -> number of its companion
  bool uses_temporaries_ = false, uses_arena_ = false, uses_generic_arena_ = false, uses_lanes_ = false;
  bool whole_warp_is_known_ = false;  // that all lanes are here
  std::string lanes_known_for_;       // the mask for which %__fence_lanes is up to date
};

}  // namespace fairlead::fence
