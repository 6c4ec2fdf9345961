#include "gpu/fence/verifier.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/fence/parser.h"
#include "gpu/fence/ptx.h"
#include "gpu/fence/verifier_function.h"

namespace fairlead::fence {
namespace {

constexpr std::size_t kLongestReason = 1000;  // it quotes the instruction, which may be as long as the module
// Sums of an address, an offset and a stride must not wrap around. Hardware has 57 bits.
constexpr std::uint64_t kHighestAddress = std::uint64_t{1} << 62;
constexpr std::uint64_t kLargestGuard = 16 << 20;
// Rounds of bound_frames(). One settles all calls that lead forwards; each call backwards on the deepest chain takes one more.
constexpr int kMostRounds = 16;

tl::unexpected<Error> refuse(std::string_view reason) {
  return fail(Errc::kInternal,
              "the fence's output is not proved safe, which is a fault of the fence and not of the module: {}{}",
              reason.substr(0, kLongestReason), reason.size() > kLongestReason ? "..." : "");
}

// Compares the text with what its tree prints, word by word and blank by blank: then no byte of it is left that was skipped
// when it was read, or that a second reader could take for something else.
class Printing {
 public:
  explicit Printing(std::string_view text) : text_(text) {}

  bool is_of(const Module& module) {
    bool same = take(module.header);
    for (const Variable& variable : module.variables) same = same && take(text_of(variable)) && take(";\n");
    for (const Function& function : module.functions) same = same && is_next(function);
    for (const Alias& alias : module.aliases)
      same = same && take(fmt::format(".alias {}, {};\n", alias.name, alias.target));
    return same && at_ == text_.size();
  }
  // Where they part.
  auto line() const { return 1 + std::ranges::count(text_.substr(0, at_), '\n'); }

 private:
  bool take(std::string_view piece) {
    if (text_.substr(at_, piece.size()) != piece) return false;
    at_ += piece.size();
    return true;
  }

  // Items stand each on a line, without indentation, as the rewriter writes them.
  bool is_next(const Function& function) {
    const std::string linkage = function.linkage.empty() ? "" : std::string(function.linkage) + " ";
    const bool is_head = take(linkage) && take(function.is_entry ? ".entry " : ".func ") &&
                         take(text_of(function.signature, function.name)) && take(function.directives);
    if (!is_head || !function.has_body) return is_head && take(";\n");
    const auto is_item = [&](const Item& item) { return take(printed(function, item)) && take("\n"); };
    return take("\n{\n") && std::ranges::all_of(function.items, is_item) && take("}\n");
  }

  static std::string printed(const Function& function, const Item& item) {
    switch (item.kind) {
      case Item::Kind::kOpen: return "{";
      case Item::Kind::kClose: return "}";
      case Item::Kind::kText:
      case Item::Kind::kRegisters: return item.text;
      case Item::Kind::kLabel: return std::string(item.name) + ":";
      case Item::Kind::kVariable: return text_of(function.variables[static_cast<std::size_t>(item.index)]) + ";";
      case Item::Kind::kInstruction: return text_of(item.instruction);
      case Item::Kind::kBranchTargets: break;
      case Item::Kind::kCallTargets:
      case Item::Kind::kPrototype: return "?";  // no fenced module has these
    }
    std::string targets;
    for (const std::string_view target : item.targets) targets.append(targets.empty() ? "" : ", ").append(target);
    return fmt::format("{}: .branchtargets {};", item.name, targets);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class ModuleVerifier {
 public:
  ModuleVerifier(const Module& module, const FenceOptions& options) : module_(module), options_(options) {}

  Status run() {
    Status ok = name_variables();
    if (ok) ok = name_functions();
    if (ok) ok = judge_aliases();
    for (const Function& function : module_.functions) {
      if (!ok || !function.has_body) continue;
      FunctionVerifier verifier(function, names_, options_);
      if (!verifier.run()) return refuse(verifier.refusal());
      uses_.emplace(&function, verifier.frame_use());
    }
    return ok ? bound_frames() : ok;
  }

 private:
  // .global ones are in the tenant's range, under no name. What is left is shared memory and constants.
  Status name_variables() {
    for (const Variable& variable : module_.variables) {
      const bool may_stay = variable.space == Space::kShared || variable.space == Space::kConst;
      if (!may_stay) return refuse(at_line({}, variable.line) + "a variable is in memory that the driver chooses");
      const auto is_symbol = [](const Initialiser& value) { return !value.symbol.empty(); };
      if (std::ranges::any_of(variable.initialisers, is_symbol)) {
        return refuse(at_line({}, variable.line) + "a constant holds an address that the driver chooses");
      }
      names_.variables[variable.name] = &variable;
    }
    return {};
  }

  // What is declared must be defined: a name left open is one that something outside the module may fill.
  Status name_functions() {
    for (const Function& function : module_.functions) {
      if (!function.has_body) continue;
      if (!names_.functions.try_emplace(function.name, &function).second) {
        return refuse(at_line(function.name, function.line) + "there are two functions of that name");
      }
      for (const Variable& variable : function.variables) {
        if (variable.space != Space::kLocal) continue;
        names_.smallest_arena = std::min(names_.smallest_arena, variable.bytes);
      }
    }
    std::set<std::string_view> aliases;
    for (const Alias& alias : module_.aliases) aliases.insert(alias.name);
    for (const Function& function : module_.functions) {
      if (names_.functions.contains(function.name) || aliases.contains(function.name)) continue;
      return refuse(at_line(function.name, function.line) + "a function is not defined in the module");
    }
    return {};
  }

  // A call by an alias goes where the driver says. None of the fence's does: they name the function itself.
  Status judge_aliases() const {
    for (const Alias& alias : module_.aliases) {
      const bool is_name = names_.functions.contains(alias.target) && !names_.functions.contains(alias.name);
      if (!is_name) return refuse(at_line({}, alias.line) + "an alias stands for no function, or hides one");
    }
    return {};
  }

  // How much local memory each function takes behind the beginning of its frame, with all that it calls:
  //
  //   takes(f) >= what f accesses itself;  takes(f) >= step + takes(g) for each call of g by f;  arena of e >= takes(e)
  //
  // Callees before callers settles all that does not call itself in one round; what does settles if its frames do not grow.
  Status bound_frames() {
    const std::vector<const Function*> order = callees_first();
    bool grows = true;
    for (int round = 0; grows && round < kMostRounds; ++round) {
      grows = false;
      for (const Function* const function : order) grows |= take_over(uses_.at(function));
    }
    if (grows) return refuse("functions call each other, and nothing bounds their frames");
    for (const Function* const function : order) {
      const bool is_bounded = !function->is_entry || uses_.at(function).bytes <= names_.smallest_arena;
      if (!is_bounded) return refuse(at_line(function->name, function->line) + "frames are larger than the arena");
    }
    return {};
  }

  // A callee that takes nothing may be handed any frame.
  bool take_over(FrameUse& use) {
    const std::uint64_t before = use.bytes;
    for (const FrameUse::Call& call : use.calls) {
      const std::uint64_t below = uses_.at(call.callee).bytes;
      if (below > 0) use.bytes = std::max(use.bytes, std::min(call.step + below, kHighestAddress));
    }
    return use.bytes != before;
  }

  // With a stack of its own: a chain of calls is as long as a stranger likes.
  std::vector<const Function*> callees_first() const {
    std::vector<const Function*> order;
    std::set<const Function*> seen;
    std::vector<std::pair<const Function*, std::size_t>> path;  // a function, and which of its calls is next
    for (const auto& [start, use] : uses_) {
      if (seen.insert(start).second) path.emplace_back(start, 0);
      while (!path.empty()) {
        auto& [function, next] = path.back();
        const std::vector<FrameUse::Call>& calls = uses_.at(function).calls;
        if (next == calls.size()) {
          order.push_back(function);
          path.pop_back();
        } else if (const Function* const callee = calls[next++].callee; seen.insert(callee).second) {
          path.emplace_back(callee, 0);
        }
      }
    }
    return order;
  }

  const Module& module_;
  const FenceOptions& options_;
  ModuleNames names_;
  std::map<const Function*, FrameUse> uses_;
};

}  // namespace

Status verify_fenced(std::string_view fenced, const FenceOptions& options) {
  const bool is_range = std::has_single_bit(options.bytes) && options.base % options.bytes == 0 && options.base != 0 &&
                        options.bytes < kHighestAddress && options.base < kHighestAddress &&
                        options.guard_bytes <= kLargestGuard;
  if (!is_range) return refuse("the range is none");
  const Result<Module> module = parse_ptx(fenced, Names::kOfFence);
  if (!module) return refuse(module.error().message);
  Printing printing(fenced);
  if (!printing.is_of(*module))
    return refuse(at_line({}, static_cast<int>(printing.line())) + "it is more than it reads as");
  return ModuleVerifier(*module, options).run();
}

}  // namespace fairlead::fence
