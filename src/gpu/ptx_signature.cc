// Kernels of PTX text. What they are given is declared before their bodies:
//
//   .visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 .ptr .global x, .param .align 8 .b8 s[24])
//   .maxntid 256, 1, 1                                          parameters at 0, 4, 8, 16; at most 256 threads
//   { .shared .align 4 .b8 tile[4096]; ... }                    4096 bytes of static shared memory
//
// Shared memory is declared in a body or outside of all, and of the latter a kernel has what it uses, itself or through
// the functions it calls. So each body's words are looked up among those names, and each kernel's uses are followed.
// Whatever else is in the text is skipped: only its braces must match.
#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "gpu/image_formats.h"
#include "gpu/ptx_scanner.h"

namespace fairlead {
namespace {

constexpr std::uint64_t kMaxParameterBytes = 1 << 20;              // of one; the hardware's limit is 32764 of all
constexpr std::uint64_t kMaxSharedBytes = std::uint64_t{1} << 32;  // of one variable; no device has a thousandth
constexpr std::uint64_t kSharedGranule = 16;                       // as ptxas rounds what a kernel has
constexpr std::size_t kMaxStepsPerByte = 16;                       // of following uses, for each byte of text

// Of a fundamental type, ".u32"; 0: it is none.
std::uint64_t type_bytes(std::string_view word) {
  static constexpr std::pair<std::string_view, std::uint64_t> kOthers[] = {
      {".f16x2", 4}, {".bf16", 2},   {".bf16x2", 4}, {".tf32", 4},   {".pred", 1},       {".e4m3", 1},
      {".e5m2", 1},  {".e4m3x2", 2}, {".e5m2x2", 2}, {".texref", 8}, {".samplerref", 8}, {".surfref", 8}};
  if (word.size() >= 3 && word.size() <= 5 && std::string_view("bsuf").find(word[1]) != std::string_view::npos) {
    unsigned bits = 0;
    const auto [end, error] = std::from_chars(word.data() + 2, word.data() + word.size(), bits);
    const bool is_size = bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128;
    if (error == std::errc() && end == word.data() + word.size() && is_size) return bits / 8;
  }
  for (const auto& [name, bytes] : kOthers) {
    if (name == word) return bytes;
  }
  return 0;
}

bool is_identifier(std::string_view word) {
  return !word.empty() && (std::string_view("_$%").find(word[0]) != std::string_view::npos ||
                           ((word[0] | 0x20) >= 'a' && (word[0] | 0x20) <= 'z'));
}

// One declared variable: ".align 8 .b8 s[24]" is 24 bytes at a multiple of 8.
struct Variable {
  std::string_view name;
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 1;
};

class PtxReader {
 public:
  explicit PtxReader(std::string_view text) : size_(text.size()), scanner_(text) {}

  Result<KernelImage> read() {
    if (scanner_.peek() != ".version") {
      refuse("begins with '{}'; PTX begins with .version, a cubin with ELF's magic number, a fat binary with its own",
             scanner_.next().substr(0, 32));
    }
    for (std::string_view word; ok() && !(word = scanner_.next()).empty();) read_declaration(word);
    if (ok() && image_.targets.empty()) refuse("ends without .target; every module names its architecture");
    if (ok()) make_kernels();
    if (!ok()) return fail(status_.error());
    return std::move(image_);
  }

 private:
  enum class SymbolKind { kFunction, kShared };
  struct Symbol {
    SymbolKind kind = SymbolKind::kShared;
    std::uint32_t index = 0;
    std::uint32_t last_user = 0;  // function whose body named it last, plus one
  };
  struct Function {
    KernelSignature signature;
    bool is_entry = false;
    bool has_body = false;
    std::uint64_t shared_bytes = 0;  // declared in its body
    std::vector<Symbol> uses;
    std::uint32_t reached_from = 0;  // kernel whose uses were followed last, plus one
  };
  struct Shared {
    Variable variable;
    std::uint32_t reached_from = 0;
  };

  bool ok() const { return status_.has_value(); }
  template <typename... Args>
  void refuse(fmt::format_string<Args...> format, Args&&... args) {
    if (!ok()) return;
    status_ = fail(Errc::kInvalidArgument, "PTX line {}: {}", scanner_.line(),
                   fmt::format(format, std::forward<Args>(args)...));
  }

  // ---- the module

  void read_declaration(std::string_view word) {
    if (word == ".entry" || word == ".func") {
      read_function(word == ".entry");
    } else if (word == ".shared") {
      read_variables([this](const Variable& variable) {
        symbols_.emplace(variable.name, Symbol{SymbolKind::kShared, static_cast<std::uint32_t>(shared_.size())});
        shared_.push_back({variable});
      });
    } else if (word == ".target") {
      read_target();
    } else if (word == "{") {  // an initializer, debugging information
      skip_to_match("{", "}");
    } else if (word == "}") {
      refuse("'}}' that nothing opened");
    }
  }

  // "sm_90a, texmode_independent"
  void read_target() {
    const std::string_view word = scanner_.next();
    const std::size_t digits = word.starts_with("sm_") ? 3 : 8;
    std::uint32_t target = 0;
    if (digits == 8 && !word.starts_with("compute_")) return refuse("target is '{}', it must be sm_NUMBER", word);
    std::from_chars(word.data() + digits, word.data() + word.size(), target);
    if (target == 0 || target > 9999) return refuse("target is '{}', it must be sm_NUMBER", word);
    image_.targets = {target};
  }

  // Behind an opening sign: past the one that closes it.
  void skip_to_match(std::string_view opens, std::string_view closes) {
    for (std::size_t depth = 1; depth != 0;) {
      const std::string_view word = scanner_.next();
      if (word.empty()) return refuse("ends inside of '{}'", opens);
      depth += word == opens ? 1 : 0;
      depth -= word == closes ? 1 : 0;
    }
  }

  std::uint64_t read_number(std::uint64_t most) {
    std::string_view word = scanner_.next();
    const std::string_view shown = word.substr(0, 32);
    if (word.size() > 1 && (word.back() == 'U' || word.back() == 'u')) word.remove_suffix(1);
    int base = 10;
    if (word.size() > 1 && word[0] == '0') {
      base = (word[1] | 0x20) == 'x' ? 16 : (word[1] | 0x20) == 'b' ? 2 : 8;
      word.remove_prefix(base == 8 ? 1 : 2);
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
    if (error != std::errc() || end != word.data() + word.size() || value > most) {
      refuse("'{}' stands where a number up to {} must", shown, most);
      return 0;
    }
    return value;
  }

  // ---- variables: ".align 8 .b8 a[24], b[8]" up to ";", ")" or the next parameter

  // `variable` has been given its alignment and type. Takes its dimensions.
  void read_dimensions(Variable& variable, std::uint64_t most) {
    while (ok() && scanner_.take("[")) {
      if (scanner_.take("]")) {  // as large as the launch says
        variable.bytes = 0;
        continue;
      }
      const std::uint64_t count = read_number(most);
      if (count != 0 && variable.bytes > most / count) return refuse("a variable of more than {} bytes", most);
      variable.bytes *= count;
      if (!scanner_.take("]")) refuse("'[{}' is not closed", count);
    }
  }

  // Alignment and type, up to the name. What a pointer's target is aligned to is not of interest.
  Variable read_variable_type() {
    Variable variable;
    std::uint64_t explicit_alignment = 0;
    bool is_target = false;
    for (std::string_view word = scanner_.peek(); ok() && word.starts_with('.'); word = scanner_.peek()) {
      scanner_.next();
      if (word == ".align") {
        const std::uint64_t alignment = read_number(kMaxParameterBytes);
        if (alignment == 0 || (alignment & (alignment - 1)) != 0) refuse(".align {} is no power of two", alignment);
        if (!is_target) explicit_alignment = alignment;
      } else if (word == ".ptr") {
        is_target = true;
      } else if (word == ".v2" || word == ".v4") {
        variable.alignment = word == ".v2" ? 2 : 4;  // elements, until the type is known
      } else if (word == ".attribute") {
        if (scanner_.take("(")) skip_to_match("(", ")");
      } else if (const std::uint64_t bytes = type_bytes(word); bytes != 0) {
        variable.bytes = variable.alignment * bytes;
      }
    }
    if (variable.bytes == 0) refuse("'{}' stands where a type must", scanner_.peek().substr(0, 32));
    variable.alignment = explicit_alignment != 0 ? explicit_alignment : variable.bytes;
    return variable;
  }

  template <typename Visit>
  void read_variables(Visit visit) {
    const Variable type = read_variable_type();
    while (ok()) {
      Variable variable = type;
      variable.name = scanner_.next();
      if (!is_identifier(variable.name)) return refuse("'{}' stands where a name must", variable.name.substr(0, 32));
      read_dimensions(variable, kMaxSharedBytes);
      visit(variable);
      const std::string_view word = scanner_.next();
      if (word == ";") return;
      if (word != ",") return refuse("'{}' stands where ';' must", word.substr(0, 32));
    }
  }

  // ---- functions

  void read_function(bool is_entry) {
    if (scanner_.take(".attribute") && scanner_.take("(")) skip_to_match("(", ")");
    if (!is_entry && scanner_.take("(")) skip_to_match("(", ")");  // what it returns
    const std::string_view name = scanner_.next();
    if (!is_identifier(name) || name.size() > kMaxKernelNameLength) {
      return refuse("'{}' stands where a function's name of at most {} bytes must", name.substr(0, 32),
                    kMaxKernelNameLength);
    }
    const std::uint32_t index = function_index(name);
    if (!ok()) return;
    Function function;
    function.is_entry = is_entry;
    function.signature.name = name;
    if (scanner_.take("(")) {
      if (is_entry) {
        read_parameters(function.signature);
      } else {
        skip_to_match("(", ")");
      }
    }
    read_limits(function.signature);
    if (ok() && scanner_.take("{")) {
      if (functions_[index].has_body) return refuse("function '{}' is there twice", name);
      function.has_body = true;
      read_body(function, index);
    }
    if (function.has_body || !functions_[index].has_body) functions_[index] = std::move(function);
  }

  std::uint32_t function_index(std::string_view name) {
    const auto next = static_cast<std::uint32_t>(functions_.size());
    const auto [found, is_new] = symbols_.emplace(name, Symbol{SymbolKind::kFunction, next});
    if (!is_new && found->second.kind != SymbolKind::kFunction) {
      refuse("function '{}' has the name of a variable", name.substr(0, 32));
      return 0;
    }
    if (is_new) functions_.emplace_back();
    return found->second.index;
  }

  void read_parameters(KernelSignature& signature) {
    std::uint64_t end = 0;
    while (ok() && !scanner_.take(")")) {
      scanner_.take(",");
      Variable parameter = read_variable_type();
      const std::string_view name = scanner_.next();
      if (!is_identifier(name)) return refuse("'{}' stands where a parameter's name must", name.substr(0, 32));
      read_dimensions(parameter, kMaxParameterBytes);
      const std::uint64_t offset = aligned(end, parameter.alignment);
      end = offset + parameter.bytes;
      if (end > kMaxParameterBytes) return refuse("parameters of more than {} bytes", kMaxParameterBytes);
      signature.parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(parameter.bytes)});
    }
  }

  // Between parameters and body; or up to the ";" of a declaration.
  void read_limits(KernelSignature& signature) {
    while (ok() && scanner_.peek() != "{") {
      const std::string_view word = scanner_.next();
      if (word == ";") return;
      if (word.empty()) return refuse("ends before the body of '{}'", signature.name.substr(0, 64));
      if (word == ".maxntid") signature.max_threads = volume(read_dim());
      if (word == ".reqntid") signature.required_threads = read_dim();
      if (word == ".pragma") {
        for (std::string_view part; !(part = scanner_.next()).empty() && part != ";";) continue;
      }
    }
  }

  Dim3 read_dim() {
    Dim3 dim{1, 1, 1};
    for (std::size_t axis = 0; ok() && axis < dim.size(); ++axis) {
      dim[axis] = static_cast<std::uint32_t>(read_number(0xffffffff));
      if (!scanner_.take(",")) break;
    }
    return dim;
  }

  void read_body(Function& function, std::uint32_t index) {
    for (std::size_t depth = 1; ok() && depth != 0;) {
      const std::string_view word = scanner_.next();
      if (word.empty()) {
        refuse("ends inside of the body of '{}'", function.signature.name.substr(0, 64));
      } else if (word == "{") {
        ++depth;
      } else if (word == "}") {
        --depth;
      } else if (word == ".shared") {
        read_variables([&function](const Variable& variable) {
          function.shared_bytes = aligned(function.shared_bytes, variable.alignment) + variable.bytes;
        });
      } else if (is_identifier(word) && word[0] != '%' && word.find('.') == std::string_view::npos) {
        note_use(function, index, word);
      }
    }
  }

  void note_use(Function& function, std::uint32_t index, std::string_view word) {
    const auto found = symbols_.find(word);
    if (found == symbols_.end() || found->second.last_user == index + 1) return;
    found->second.last_user = index + 1;
    function.uses.push_back(found->second);
  }

  // ---- kernels

  void make_kernels() {
    std::size_t steps_left = kMaxStepsPerByte * size_;
    for (std::uint32_t i = 0; i < functions_.size(); ++i) {
      if (!functions_[i].is_entry || !functions_[i].has_body) continue;
      functions_[i].signature.static_shared_bytes = shared_bytes_from(i, steps_left);
      image_.kernels.push_back(functions_[i].signature);
    }
    if (steps_left == 0) refuse("its functions use each other too often for their shared memory to be counted");
    std::sort(image_.kernels.begin(), image_.kernels.end(),
              [](const KernelSignature& a, const KernelSignature& b) { return a.name < b.name; });
  }

  std::uint64_t shared_bytes_from(std::uint32_t kernel, std::size_t& steps_left) {
    std::uint64_t bytes = 0;
    std::vector<std::uint32_t> open{kernel};
    functions_[kernel].reached_from = kernel + 1;
    while (!open.empty()) {
      const Function& function = functions_[open.back()];
      open.pop_back();
      bytes += function.shared_bytes;
      for (const Symbol& use : function.uses) {
        if (steps_left == 0) return 0;
        --steps_left;
        std::uint32_t& reached_from =
            use.kind == SymbolKind::kShared ? shared_[use.index].reached_from : functions_[use.index].reached_from;
        if (std::exchange(reached_from, kernel + 1) == kernel + 1) continue;
        if (use.kind == SymbolKind::kShared) {
          const Variable& variable = shared_[use.index].variable;
          bytes = aligned(bytes, variable.alignment) + variable.bytes;
        } else {
          open.push_back(use.index);
        }
      }
    }
    return aligned(bytes, kSharedGranule);
  }

  const std::size_t size_;
  PtxScanner scanner_;
  Status status_;
  KernelImage image_;
  std::unordered_map<std::string_view, Symbol> symbols_;
  std::vector<Function> functions_;
  std::vector<Shared> shared_;
};

}  // namespace

Result<KernelImage> read_ptx(std::string_view text) {
  // Compilers embed PTX with a NUL, and the driver reads no further.
  return PtxReader(text.substr(0, text.find('\0'))).read();
}

}  // namespace fairlead
