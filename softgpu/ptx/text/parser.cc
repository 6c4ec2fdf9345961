#include "softgpu/ptx/text/parser.h"

#include <utility>

#include "softgpu/ptx/text/parser_state.h"

namespace softgpu::ptx {

ParseResult parse(std::string_view text) {
  return Parser(text).run();
}

ParseResult Parser::run() {
  while (token_.kind != Token::Kind::kEnd && module_item()) {
  }
  return std::move(result_);
}

bool Parser::fail(std::string message, LoadError::Kind kind) {
  return fail_at(token_.line, std::move(message), kind);
}

bool Parser::fail_at(int line, std::string message, LoadError::Kind kind) {
  if (!result_.error) result_.error = LoadError{kind, line, std::move(message)};
  return false;
}

bool Parser::accept(char punctuation) {
  if (!is(punctuation)) return false;
  advance();
  return true;
}

bool Parser::expect(char punctuation) {
  if (accept(punctuation)) return true;
  return fail(std::string("expected '") + punctuation + "' before '" + std::string(token_.text) + "'");
}

bool Parser::expect_name(std::string_view& name, const char* what) {
  if (token_.kind != Token::Kind::kIdentifier) {
    return fail(std::string("expected ") + what + " before '" + std::string(token_.text) + "'");
  }
  name = token_.text;
  advance();
  return true;
}

bool Parser::expect_count(std::size_t& value, const char* what) {
  constexpr std::uint64_t kLargestCount = std::uint64_t{1} << 40;
  if (token_.kind != Token::Kind::kInteger || token_.bits > kLargestCount) {
    return fail(std::string("expected ") + what + ", at most 2^40, before '" + std::string(token_.text) + "'");
  }
  value = token_.bits;
  advance();
  return true;
}

bool Parser::module_item() {
  if (accept(';')) return true;
  // Debug information names its labels at module level.
  if (token_.kind == Token::Kind::kIdentifier) return skip_statement();
  if (token_.kind != Token::Kind::kDotted) {
    return fail("expected a directive before '" + std::string(token_.text) + "'");
  }
  const std::string_view word = token_.text;
  if (word == "version" || word == "target" || word == "address_size" || word == "file" || word == "loc" ||
      word == "pragma") {
    return skip_statement();
  }
  if (word == "section") return skip_section();
  if (word == "alias") return alias();
  return linking_item();
}

bool Parser::linking_item() {
  bool is_extern = false;
  while (is_dotted("visible") || is_dotted("extern") || is_dotted("weak") || is_dotted("common")) {
    is_extern |= is_dotted("extern");
    advance();
  }
  if (is_dotted("entry") || is_dotted("func")) {
    const bool is_entry = is_dotted("entry");
    advance();
    return function(is_entry);
  }
  const auto space = token_.kind == Token::Kind::kDotted ? space_from_name(token_.text) : std::nullopt;
  if (!space || *space == Space::kParam || *space == Space::kLocal) {
    return fail("directive ." + std::string(token_.text) + " is not supported at module level",
                LoadError::Kind::kUnsupported);
  }
  advance();
  return variable_list(*space, is_extern);
}

bool Parser::alias() {
  ast::Alias alias;
  alias.line = token_.line;
  advance();
  const bool ok = expect_name(alias.name, "the name of an alias") && expect(',') &&
                  expect_name(alias.target, "the name of a function") && expect(';');
  if (ok) result_.module.aliases.push_back(alias);
  return ok;
}

// Module-level statements have no terminator but the end of their line.
bool Parser::skip_statement() {
  const int line = token_.line;
  while (token_.kind != Token::Kind::kEnd && token_.line == line) advance();
  return true;
}

bool Parser::skip_section() {
  while (token_.kind != Token::Kind::kEnd && !is('{')) advance();
  while (token_.kind != Token::Kind::kEnd && !is('}')) advance();
  return expect('}');
}

bool Parser::function(bool is_entry) {
  ast::Function function;
  function.is_entry = is_entry;
  function.line = token_.line;
  if (!function_header(function)) return false;
  while (token_.kind == Token::Kind::kDotted) {
    if (!performance_directive(function)) return false;
  }
  function.has_body = is('{');
  result_.module.functions.push_back(std::move(function));
  if (accept(';')) return true;
  function_ = &result_.module.functions.back();
  const bool ok = body();
  function_ = nullptr;
  return ok;
}

bool Parser::function_header(ast::Function& function) {
  if (is('(') && !parameter_list(function.returns)) return false;
  if (!expect_name(function.name, "a function name")) return false;
  return !is('(') || parameter_list(function.parameters);
}

bool Parser::performance_directive(ast::Function& function) {
  const std::string_view word = token_.text;
  if (word == "pragma" || word == "attribute") {
    while (token_.kind != Token::Kind::kEnd && !is(';') && !is('{')) advance();
    accept(';');
    return true;
  }
  const bool is_thread_bound = word == "maxntid" || word == "reqntid";
  const bool is_cluster_size = word == "reqnctapercluster" || word == "maxclusterrank";
  const bool is_known = is_thread_bound || is_cluster_size || word == "noreturn" || word == "explicitcluster" ||
                        word == "minnctapersm" || word == "maxnreg" || word == "maxnctapersm";
  if (!is_known) {
    return fail("directive ." + std::string(word) + " is not supported on a function", LoadError::Kind::kUnsupported);
  }
  advance();
  if (word == "noreturn" || word == "explicitcluster") return true;
  std::size_t product = 1;
  do {
    std::size_t value = 0;
    if (!expect_count(value, "a number")) return false;
    product *= value;
  } while (accept(','));
  if (word == "reqnctapercluster" && product > 1) {
    return fail("clusters of more than one block are not supported", LoadError::Kind::kUnsupported);
  }
  if (is_thread_bound) function.max_threads = static_cast<unsigned>(product);
  return true;
}

}  // namespace softgpu::ptx
