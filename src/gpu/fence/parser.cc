// Modules and functions' heads. Whatever the parser does not know it refuses, with two exceptions that are skipped, debug
// information and hints: they never reach the driver, because the text is written anew from the tree.
//
//   module    header, then variables, functions and aliases in any order
//   function  [(results)] name [(parameters)] directives, then ; or a body (body_parser.h)
//
// By recursive descent and one token ahead. What calls itself, initialisers and scopes, is bounded in depth.
#include "gpu/fence/parser.h"

#include <algorithm>
#include <array>
#include <utility>

#include "gpu/fence/body_parser.h"
#include "gpu/fence/token_reader.h"
#include "gpu/fence/variable_reader.h"

namespace fairlead::fence {
namespace {

// Directives of a function that cost or promise nothing but registers and launch sizes. `.noreturn` is not among them:
// code behind a call that returns although it promised not to would be whatever lies there.
constexpr std::array<std::string_view, 9> kDirectives = {
    ".maxntid",           ".reqntid",         ".minnctapersm",   ".maxnctapersm",      ".maxnreg",
    ".reqnctapercluster", ".explicitcluster", ".maxclusterrank", ".blocksareclusters",
};

class ModuleParser {
 public:
  ModuleParser(std::string_view text, Names names) : reader_(text, names) {}
  Result<Module> run();

 private:
  bool module_item();
  bool header_item();
  bool alias();
  bool linked_item();
  bool function(bool is_entry, std::string_view linkage);
  bool directives(Function& function);

  TokenReader reader_;
  Module module_;
  StaticVariables statics_;
};

Result<Module> ModuleParser::run() {
  while (!reader_.error() && !reader_.is_end()) module_item();
  if (!reader_.error() && module_.header.find(".address_size 64") == std::string::npos) {
    reader_.fail("'.address_size 64' is missing, which is the only size that is fenced");
  }
  if (reader_.error()) return fail(*reader_.error());
  module_.variables = std::move(statics_.variables);
  return std::move(module_);
}

bool ModuleParser::module_item() {
  if (reader_.accept(';')) return true;
  if (!reader_.is_dotted()) return reader_.fail(fmt::format("expected a directive before '{}'", reader_.token().text));
  const std::string_view word = reader_.token().text;
  if (word == ".version" || word == ".target" || word == ".address_size") return header_item();
  if (word == ".file" || word == ".loc" || word == ".pragma") return reader_.skip_line();
  if (word == ".section") return reader_.skip_section();
  if (word == ".alias") return alias();
  return linked_item();
}

// `.version 8.4`, `.target sm_90, debug`, `.address_size 64`, and nothing else: what is kept here reaches the driver.
bool ModuleParser::header_item() {
  const std::string_view word = reader_.token().text;
  reader_.advance();
  module_.header += word;
  const char* separator = " ";
  do {
    const bool is_value = word == ".target" ? reader_.token().kind == Token::Kind::kName
                          : word == ".version"
                              ? reader_.token().kind == Token::Kind::kFloat
                              : reader_.token().kind == Token::Kind::kInteger && reader_.token().text == "64";
    if (!is_value) return reader_.fail(fmt::format("'{}' is no value of {}", reader_.token().text, word));
    module_.header += separator + std::string(reader_.token().text);
    separator = ", ";
    reader_.advance();
  } while (word == ".target" && reader_.accept(','));
  module_.header += '\n';
  return true;
}

bool ModuleParser::alias() {
  Alias alias;
  alias.line = reader_.token().line;
  reader_.advance();
  if (!reader_.expect_name(alias.name, "the name of an alias") || !reader_.expect(',')) return false;
  if (!reader_.expect_name(alias.target, "the name of a function") || !reader_.expect(';')) return false;
  module_.aliases.push_back(alias);
  return true;
}

bool ModuleParser::linked_item() {
  std::string_view linkage;
  for (const std::string_view word : {".visible", ".extern", ".weak", ".common"}) {
    if (reader_.is_dotted(word)) linkage = word;
  }
  if (!linkage.empty()) reader_.advance();
  if (reader_.is_dotted(".entry") || reader_.is_dotted(".func")) {
    const bool is_entry = reader_.is_dotted(".entry");
    reader_.advance();
    return function(is_entry, linkage);
  }
  const auto space = reader_.is_dotted() ? space_named(reader_.token().text) : std::nullopt;
  if (!space || *space == Space::kParam || *space == Space::kLocal) {
    return reader_.fail(fmt::format("'{}' at the level of the module cannot be fenced", reader_.token().text));
  }
  reader_.advance();
  return read_variables(reader_, *space, linkage,
                        [this](Variable variable) { return statics_.keep(reader_, std::move(variable)); });
}

// Registered by name in layout.h, not here: a function may be declared as often as its author likes.
bool ModuleParser::function(bool is_entry, std::string_view linkage) {
  module_.functions.emplace_back();
  Function& function = module_.functions.back();
  function.line = reader_.token().line;
  function.is_entry = is_entry;
  function.linkage = linkage;
  if (reader_.is('(') && !read_parameters(reader_, function.signature.results)) return false;
  if (!reader_.expect_name(function.name, "the name of a function")) return false;
  reader_.enter(function.name);
  if (reader_.is('(') && !read_parameters(reader_, function.signature.parameters)) return false;
  const bool ok = directives(function) && (reader_.accept(';') || read_body(reader_, function, statics_));
  reader_.enter({});
  return ok;
}

bool ModuleParser::directives(Function& function) {
  while (reader_.is_dotted()) {
    const std::string_view word = reader_.token().text;
    if (word == ".pragma") {
      reader_.advance();
      if (reader_.token().kind != Token::Kind::kString) return reader_.fail("expected a string behind .pragma");
      reader_.advance();
      if (!reader_.expect(';')) return false;
      continue;
    }
    reader_.advance();
    if (word == ".noreturn") continue;
    if (std::ranges::find(kDirectives, word) == kDirectives.end()) {
      return reader_.fail(fmt::format("directive {} of a function is not known to the fence", word));
    }
    function.directives += " " + std::string(word);
    const char* separator = " ";
    while (reader_.token().kind == Token::Kind::kInteger) {
      function.directives += separator + std::string(reader_.token().text);
      separator = ", ";
      reader_.advance();
      if (!reader_.accept(',')) break;
    }
  }
  return true;
}

}  // namespace

std::string at_line(std::string_view function, int line) {
  if (function.empty()) return fmt::format("line {}: ", line);
  return fmt::format("function '{}', line {}: ", function, line);
}

std::optional<Space> space_named(std::string_view dotted) {
  if (dotted == ".global") return Space::kGlobal;
  if (dotted == ".const") return Space::kConst;
  if (dotted == ".local") return Space::kLocal;
  if (dotted.starts_with(".shared") && (dotted.size() == 7 || dotted[7] == ':')) return Space::kShared;
  if (dotted.starts_with(".param") && (dotted.size() == 6 || dotted[6] == ':')) return Space::kParam;
  return std::nullopt;
}

Result<Module> parse_ptx(std::string_view text, Names names) {
  return ModuleParser(text, names).run();
}

}  // namespace fairlead::fence
