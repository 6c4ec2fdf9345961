// The verifier's pass over one function: each line by what the lines before it prove (verifier_proofs.h). The rules are in
// verifier.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/fence/fence.h"
#include "gpu/fence/ptx.h"
#include "gpu/fence/verifier_proofs.h"

namespace fairlead::fence {

// What functions may name.
struct ModuleNames {
  std::map<std::string_view, const Function*> functions;  // with a body
  std::map<std::string_view, const Variable*> variables;
  std::uint64_t smallest_arena = ~std::uint64_t{0};  // of its entries, in bytes
};

// What a function takes of a thread's local memory, from where its frame begins. Whoever calls it must leave as much.
struct FrameUse {
  struct Call {
    const Function* callee = nullptr;
    std::uint64_t step = 0;  // from the caller's frame to the callee's
  };
  std::uint64_t bytes = 0;
  std::vector<Call> calls;
};

class FunctionVerifier {
 public:
  FunctionVerifier(const Function& function, const ModuleNames& names, const FenceOptions& options)
      : function_(function), names_(names), options_(options), proofs_(function, options) {}

  // Whether every line is allowed; else `refusal()` says which one is not.
  bool run();
  const std::string& refusal() const { return refusal_; }
  const FrameUse& frame_use() const { return frame_use_; }

 private:
  // The first reason stays; false, so that it can be returned.
  bool refuse(std::string_view reason);
  // Labels and tables, before the pass.
  bool find_names();
  bool item(const Item& item);
  bool variable(const Variable& variable);
  bool instruction();

  // What is no memory.
  bool operands_are_plain(const std::vector<Operand>& operands);
  bool is_plain(const Operand& operand);
  bool move();
  bool names_what_may_be_named(const Operand& symbol);

  // Where a function leads.
  bool branch();
  bool table();
  bool call();
  // Whether operands have the sizes of what they are taken for.
  bool fit(const Operand* given, const std::vector<Variable>& wanted);
  bool hands_over(const Operand& argument, const Variable& parameter, FrameUse::Call& call);

  // Memory: each address by the rule of its space.
  bool memory(std::size_t addresses);
  bool rows(const Operand& address);
  bool access(Space space, const Operand& address);
  bool global(const Operand& address);
  bool generic(const Operand& address);
  bool local(const Operand& address);
  bool shared(const Operand& address);
  bool parameter(const Operand& address);
  bool constant(const Operand& address);
  bool is_within_guard(std::int64_t offset) const;
  std::uint64_t bits_of(const Operand& operand) const;

  const Function& function_;
  const ModuleNames& names_;
  const FenceOptions& options_;
  Proofs proofs_;
  std::map<std::string_view, bool> labels_;
  std::map<std::string_view, std::uint64_t> tables_;  // how many labels each has
  int line_ = 0;
  const Instruction* now_ = nullptr;
  FrameUse frame_use_;
  std::string refusal_;
};

}  // namespace fairlead::fence
