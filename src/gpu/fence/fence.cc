// The passes, in their order: options, text to tree (parser.h), where variables and functions go (layout.h), what entries clear
// (clears.h), and each function written anew (rewriter.h). Every pass may refuse, and a refusal leaves nothing behind.
#include "gpu/fence/fence.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "gpu/fence/clears.h"
#include "gpu/fence/layout.h"
#include "gpu/fence/parser.h"
#include "gpu/fence/ptx.h"
#include "gpu/fence/rewriter.h"

namespace fairlead::fence {
namespace {

constexpr std::uint64_t kSmallestRange = 64 << 10;
// Offsets are immediates of 24 bits on the hardware, so that a larger guard would save no fence.
constexpr std::uint64_t kLargestGuard = 16 << 20;
constexpr std::uint64_t kVariablesAlignment = 4096;
constexpr std::size_t kLongestMessage = 1000;  // a refusal quotes the instruction, which may be as long as the module

Status check(const FenceOptions& options) {
  if (!std::has_single_bit(options.bytes) || options.bytes < kSmallestRange) {
    return fail(Errc::kInvalidArgument, "bytes is {:#x}, it must be a power of two from {:#x}", options.bytes,
                kSmallestRange);
  }
  if (options.base == 0 || options.base % options.bytes != 0) {
    return fail(Errc::kInvalidArgument, "base is {:#x}, it must be a multiple of bytes = {:#x} and not 0", options.base,
                options.bytes);
  }
  if (options.guard_bytes > kLargestGuard) {
    return fail(Errc::kInvalidArgument, "guard_bytes is {}, at most {} are allowed", options.guard_bytes,
                kLargestGuard);
  }
  if (options.variables_address % kVariablesAlignment != 0 || options.variables_address < options.base) {
    return fail(Errc::kInvalidArgument, "variables_address is {:#x}, it must be a multiple of {} from base = {:#x}",
                options.variables_address, kVariablesAlignment, options.base);
  }
  return {};
}

constexpr std::uint64_t kIntBytes = 4;

// A task has no output to print to, and the driver's printf would read whatever its arguments point to.
Result<std::string> stand_in(const Function& function, const Layout& layout) {
  std::string text = ".func " + signature_text(function, name_in_output(function), layout) + "\n{\n";
  for (const Variable& result : function.signature.results) {
    if (result.bytes != kIntBytes) {
      return fail(Errc::kInvalidArgument, "{}its result has {} bytes, it must have {}",
                  at_line(function.name, function.line), result.bytes, kIntBytes);
    }
    text += fmt::format("st.param.b32 [{}], -1;\n", result.name);
  }
  return text + (function.name == "__assertfail" ? "trap;\n" : "") + "ret;\n}\n";
}

std::string head_of(const Function& function, const Layout& layout) {
  std::string text = function.linkage.empty() ? "" : std::string(function.linkage) + " ";
  text += function.is_entry ? ".entry " : ".func ";
  return text + signature_text(function, function.name, layout) + function.directives;
}

class ModuleFencer {
 public:
  // The fenced text has at most `most_bytes`.
  ModuleFencer(const Module& module, const Layout& layout, const std::map<std::string_view, Clears>& clears,
               const FenceOptions& options, std::size_t most_bytes)
      : module_(module), layout_(layout), clears_(clears), options_(options), most_bytes_(most_bytes) {}

  Result<FencedModule> run() {
    out_.ptx = module_.header;
    for (const Variable& variable : module_.variables) {
      if (layout_.kept.contains(variable.name)) out_.ptx += text_of(variable) + ";\n";
    }
    declare_dynamic_shared();
    for (const Function& function : module_.functions) {
      const Status done = add(function);
      if (!done) return tl::unexpected<Error>(done.error());
    }
    for (const Alias& alias : module_.aliases) out_.ptx += fmt::format(".alias {}, {};\n", alias.name, alias.target);
    if (out_.ptx.size() > most_bytes_) return fail(Errc::kTooLarge, "{}", too_large());
    for (const auto& [name, place] : layout_.placed) out_.placed.push_back(place);
    out_.variables = layout_.image;
    return std::move(out_);
  }

 private:
  // The room that is left bounds this function, so that no function can take what the module may not.
  Status add(const Function& function) {
    if (!function.has_body) return declare(function);
    static const Clears kNothing;
    const auto clears = clears_.find(function.name);
    auto rewritten = rewrite_function(function, layout_, clears == clears_.end() ? kNothing : clears->second, options_,
                                      most_bytes_ - std::min(most_bytes_, out_.ptx.size()));
    if (!rewritten) return fail(std::move(rewritten.error()));
    out_.ptx += head_of(function, layout_) + "\n" + rewritten->body;
    out_.functions.push_back(std::move(rewritten->report));
    return {};
  }

  void declare_dynamic_shared() {
    const auto is_shared = [](const auto& entry) { return entry.second.shared; };
    if (std::ranges::none_of(clears_, is_shared)) return;
    out_.ptx += fmt::format(".extern .shared .align {} .b8 {}[];\n", layout_.dynamic_alignment, kDynamicShared);
  }

  Status declare(const Function& function) {
    const Function* const known = layout_.function(function.name);
    // A declaration stays only where a body follows: what nobody in the module defines must not be found elsewhere by the driver.
    if (known->has_body) {
      out_.ptx += head_of(function, layout_) + ";\n";
    } else if (known == &function && (function.name == "vprintf" || function.name == "__assertfail")) {
      const Result<std::string> text = stand_in(function, layout_);
      if (!text) return tl::unexpected<Error>(text.error());
      out_.ptx += *text;
      out_.notes.push_back(function.name == "vprintf" ? "printf prints nothing and returns -1"
                                                      : "a failed assertion ends the kernel without a message");
    }
    return {};
  }

  const Module& module_;
  const Layout& layout_;
  const std::map<std::string_view, Clears>& clears_;
  const FenceOptions& options_;
  const std::size_t most_bytes_;
  FencedModule out_;
};

// The options with their default, if they are valid.
Result<FenceOptions> complete(FenceOptions options) {
  if (options.variables_address == 0) options.variables_address = options.base;
  const Status valid = check(options);
  if (!valid) return fail(valid.error());
  return options;
}

Result<FencedModule> fence_all(std::string_view ptx, const FenceOptions& given) {
  const auto options = complete(given);
  if (!options) return fail(options.error());
  const Result<Module> module = parse_ptx(ptx);
  if (!module) return fail(module.error());
  const Result<Layout> layout = lay_out(*module, *options);
  if (!layout) return fail(layout.error());
  const auto clears = options->clears_leftovers ? plan_clears(*module, *layout) : std::map<std::string_view, Clears>();
  if (!clears) return fail(clears.error());
  return ModuleFencer(*module, *layout, *clears, *options, most_fenced_bytes(ptx.size())).run();
}

// A module may be measured and then refused: this looks at variables alone, so that room is known before the text is.
Result<std::uint64_t> measure(std::string_view ptx, const FenceOptions& given) {
  const auto options = complete(given);
  if (!options) return fail(options.error());
  const Result<Module> module = parse_ptx(ptx);
  if (!module) return fail(module.error());
  return variable_bytes(*module, *options);
}

template <typename T>
Result<T> with_short_message(Result<T> result) {
  if (result || result.error().message.size() <= kLongestMessage) return result;
  return fail(result.error().code, "{}...", result.error().message.substr(0, kLongestMessage));
}

}  // namespace

Result<FencedModule> fence_ptx(std::string_view ptx, const FenceOptions& options) {
  return with_short_message(fence_all(ptx, options));
}

Result<std::uint64_t> measure_variables(std::string_view ptx, const FenceOptions& options) {
  return with_short_message(measure(ptx, options));
}

}  // namespace fairlead::fence
