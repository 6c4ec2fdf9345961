// Statements, one after the other. Whatever is no instruction is written here; an instruction is planned, and its plan written.
// What a refusal adds to the plan's reason is known here alone: function, line and the instruction as it was written.
#include "gpu/fence/rewriter.h"

#include <fmt/format.h>

#include <utility>

#include "gpu/fence/function_facts.h"
#include "gpu/fence/function_writer.h"
#include "gpu/fence/instruction_plan.h"
#include "gpu/fence/parser.h"
#include "gpu/fence/prologue.h"

namespace fairlead::fence {
namespace {

class FunctionRewriter {
 public:
  FunctionRewriter(const FunctionFacts& facts, const Clears& clears, std::size_t most_bytes)
      : facts_(facts), clears_(clears), body_(facts, most_bytes), start_(most_bytes) {}

  // The body first and the prologue after it, as only the body tells which registers and what of the arena are needed.
  Result<RewrittenFunction> run() {
    for (std::size_t i = 0; i < facts_.function.items.size(); ++i) {
      body_.region = facts_.addresses.regions[i];
      const Item& item = facts_.function.items[i];
      if (Status written = write_item(item); !written) return fail(std::move(written.error()));
      if (!body_.text.has_room()) return no_room(item.line);
    }
    // Nothing runs on behind the end of a function, whatever lies there.
    body_.text.raw("ret;\n");
    if (const Variable* const result = write_prologue(body_, clears_, start_)) return no_room(result->line);
    return RewrittenFunction{"{\n" + start_.text() + body_.text.text() + "}\n", report()};
  }

 private:
  FunctionReport report() const {
    return {.name = std::string(facts_.function.name),
            .is_entry = facts_.function.is_entry,
            .instructions = instructions_,
            .added = body_.text.instructions() - instructions_,
            .prologue = start_.instructions(),
            .accesses = body_.accesses};
  }

  tl::unexpected<Error> refuse(int line, std::string_view reason) const {
    return fail(Errc::kInvalidArgument, "{}{}", at_line(facts_.function.name, line), reason);
  }
  tl::unexpected<Error> refuse(const Item& item, std::string_view reason) const {
    return refuse(item.line, fmt::format("'{}': {}", text_of(item.instruction), reason));
  }
  tl::unexpected<Error> no_room(int line) const {
    return fail(Errc::kTooLarge, "{}{}", at_line(facts_.function.name, line), too_large());
  }

  Status write_item(const Item& item) {
    switch (item.kind) {
      case Item::Kind::kInstruction: return write_instruction(item);
      case Item::Kind::kOpen: ++depth_, body_.text.raw("{\n"); break;
      case Item::Kind::kClose: --depth_, body_.text.raw("}\n"); break;
      case Item::Kind::kText: write_line(item.text, body_.text); break;
      // The function's start may set those of its outermost scope.
      case Item::Kind::kRegisters: write_line(item.text, depth_ == 0 ? start_ : body_.text); break;
      case Item::Kind::kLabel:
        write_line(std::string(item.name) + ":", body_.text);
        body_.lanes = {};
        break;
      case Item::Kind::kVariable: return write_variable(item);
      case Item::Kind::kBranchTargets:
      case Item::Kind::kCallTargets:
      case Item::Kind::kPrototype: return write_table(item);
    }
    return {};
  }

  static void write_line(std::string_view line, FencedText& to) {
    to.raw(line);
    to.raw("\n");
  }

  // One in .local lies in the arena. One in .shared that nobody names NVIDIA's compiler puts behind dynamic memory, whose end
  // could not be told then.
  Status write_variable(const Item& item) {
    const auto index = static_cast<std::size_t>(item.index);
    const Variable& variable = facts_.function.variables[index];
    const bool is_left_out =
        variable.space == Space::kLocal || (variable.space == Space::kShared && !facts_.mentioned[index]);
    if (is_left_out) return {};
    write_line(text_of(variable) + ";", body_.text);
    const bool is_done = !facts_.call_parameters.needs_zeros[index] || store_zeros(variable, body_.text);
    return is_done ? Status() : no_room(variable.line);
  }

  // A table of branches is judged even if nothing branches by it. Of calls none is left: they become direct ones.
  Status write_table(const Item& item) {
    const Table& table = facts_.tables.at(item.name);
    // In two scopes that would be two tables, and an index held within one of them may leave the other.
    if (table.item != &item) return refuse(item.line, fmt::format("'{}' is the name of two tables", item.name));
    if (item.kind != Item::Kind::kBranchTargets) return {};
    if (const Status labels = leads_to_labels(table); !labels) return refuse(item.line, labels.error().message);
    std::string targets;
    for (const std::string_view target : item.targets) targets += (targets.empty() ? "" : ", ") + std::string(target);
    body_.text.raw(fmt::format("{}: .branchtargets {};\n", item.name, targets));
    return {};
  }

  Status write_instruction(const Item& item) {
    ++instructions_;
    if (facts_.call_parameters.behind_label == &item) {
      return refuse(item, "a parameter of a call is used behind a label that stands behind its declaration");
    }
    if (facts_.new_names.empty()) return write_as_named(item.instruction, item);
    return write_as_named(with_new_names(facts_, item.instruction), item);
  }

  Status write_as_named(const Instruction& instruction, const Item& item) {
    const auto plan = plan_instruction(instruction, facts_);
    if (!plan) return refuse(item, plan.error().message);
    const Status written = write(*plan, instruction, body_);
    if (written) return {};
    if (written.error().code == Errc::kTooLarge) return no_room(item.line);
    return refuse(item, written.error().message);
  }

  const FunctionFacts& facts_;
  const Clears& clears_;
  FunctionWriter body_;
  FencedText start_;              // the function's own declarations, then the prologue
  std::size_t instructions_ = 0;  // of the module's own
  int depth_ = 0;                 // of scopes
};

}  // namespace

std::string too_large() {
  return "fenced, the module is larger than 4 times what it was and 64 KiB: an access may take ten instructions more, "
         "and a call through an address becomes a choice among all functions that fit it; split the module";
}

std::string signature_text(const Function& function, std::string_view name, const Layout& layout) {
  std::string text = text_of(function.signature, name);
  if (function.is_entry || layout.arena_bytes == 0) return text;
  text.pop_back();
  text += function.signature.parameters.empty() ? "" : ", ";
  return text + ".param .align 8 .b64 __fence_arena, .param .align 8 .b64 __fence_frame)";
}

Result<RewrittenFunction> rewrite_function(const Function& function, const Layout& layout, const Clears& clears,
                                           const FenceOptions& options, std::size_t most_bytes) {
  const FunctionFacts facts = facts_of(function, layout, options);
  return FunctionRewriter(facts, clears, most_bytes).run();
}

}  // namespace fairlead::fence
