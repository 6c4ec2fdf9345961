// Module level: directives, variables, and the headers of functions.
#include "softgpu/ptx/text/parser.h"

#include <utility>

#include "softgpu/ptx/text/body_parser.h"
#include "softgpu/ptx/text/module_names.h"
#include "softgpu/ptx/text/scopes.h"
#include "softgpu/ptx/text/token_reader.h"
#include "softgpu/ptx/text/variable_reader.h"

namespace softgpu::ptx {
namespace {

class ModuleParser {
 public:
  explicit ModuleParser(std::string_view text) : reader_(text) {}
  ParseResult run();

 private:
  bool module_item();
  bool linking_item();
  bool alias();
  bool function(bool is_entry);
  bool function_header(ast::Function& function);
  bool performance_directive(ast::Function& function);

  TokenReader reader_;
  ParseResult result_;
  ModuleNames names_{result_};
  Scopes scopes_;
};

ParseResult ModuleParser::run() {
  while (!reader_.is_end() && module_item()) {
  }
  result_.error = reader_.error();
  return std::move(result_);
}

bool ModuleParser::module_item() {
  if (reader_.accept(';')) return true;
  // Debug information names its labels at module level. Such statements have no terminator but the end of their line.
  if (reader_.is_name()) return reader_.skip_line();
  if (!reader_.is_dotted()) return reader_.fail_expected("a directive");
  if (reader_.is_passing_directive()) return reader_.skip_directive();
  const std::string_view word = reader_.token().text;
  if (word == "section") return reader_.skip_section();
  if (word == "alias") return alias();
  return linking_item();
}

bool ModuleParser::linking_item() {
  bool is_extern = false;
  while (reader_.is_dotted("visible") || reader_.is_dotted("extern") || reader_.is_dotted("weak") ||
         reader_.is_dotted("common")) {
    is_extern |= reader_.is_dotted("extern");
    reader_.advance();
  }
  if (reader_.is_dotted("entry") || reader_.is_dotted("func")) {
    const bool is_entry = reader_.is_dotted("entry");
    reader_.advance();
    return function(is_entry);
  }
  const auto space = reader_.is_dotted() ? space_from_name(reader_.token().text) : std::nullopt;
  if (!space || *space == Space::kParam || *space == Space::kLocal) {
    return reader_.fail("directive ." + std::string(reader_.token().text) + " is not supported at module level",
                        LoadError::Kind::kUnsupported);
  }
  reader_.advance();
  return read_variables(reader_, scopes_, names_, *space, is_extern,
                        [this](ast::Variable variable) { names_.add(std::move(variable)); });
}

bool ModuleParser::alias() {
  ast::Alias alias;
  alias.line = reader_.token().line;
  reader_.advance();
  const bool ok = reader_.expect_name(alias.name, "the name of an alias") && reader_.expect(',') &&
                  reader_.expect_name(alias.target, "the name of a function") && reader_.expect(';');
  if (ok) result_.module.aliases.push_back(alias);
  return ok;
}

bool ModuleParser::function(bool is_entry) {
  ast::Function function;
  function.is_entry = is_entry;
  function.line = reader_.token().line;
  if (!function_header(function)) return false;
  while (reader_.is_dotted()) {
    if (!performance_directive(function)) return false;
  }
  function.has_body = reader_.is('{');
  result_.module.functions.push_back(std::move(function));
  if (reader_.accept(';')) return true;
  return read_body(reader_, scopes_, names_, result_.module.functions.back());
}

bool ModuleParser::function_header(ast::Function& function) {
  if (reader_.is('(') && !read_parameters(reader_, scopes_, function.returns)) return false;
  if (!reader_.expect_name(function.name, "a function name")) return false;
  return !reader_.is('(') || read_parameters(reader_, scopes_, function.parameters);
}

bool ModuleParser::performance_directive(ast::Function& function) {
  const std::string_view word = reader_.token().text;
  if (word == "pragma" || word == "attribute") {
    while (!reader_.is_end() && !reader_.is(';') && !reader_.is('{')) reader_.advance();
    reader_.accept(';');
    return true;
  }
  const bool is_thread_bound = word == "maxntid" || word == "reqntid";
  const bool is_cluster_size = word == "reqnctapercluster" || word == "maxclusterrank";
  const bool is_known = is_thread_bound || is_cluster_size || word == "noreturn" || word == "explicitcluster" ||
                        word == "minnctapersm" || word == "maxnreg" || word == "maxnctapersm";
  if (!is_known) {
    return reader_.fail("directive ." + std::string(word) + " is not supported on a function",
                        LoadError::Kind::kUnsupported);
  }
  reader_.advance();
  if (word == "noreturn" || word == "explicitcluster") return true;
  std::size_t product = 1;
  do {
    std::size_t value = 0;
    if (!reader_.expect_count(value, "a number")) return false;
    product *= value;
  } while (reader_.accept(','));
  if (word == "reqnctapercluster" && product > 1) {
    return reader_.fail("clusters of more than one block are not supported", LoadError::Kind::kUnsupported);
  }
  if (is_thread_bound) function.max_threads = static_cast<unsigned>(product);
  return true;
}

}  // namespace

ParseResult parse(std::string_view text) {
  return ModuleParser(text).run();
}

}  // namespace softgpu::ptx
