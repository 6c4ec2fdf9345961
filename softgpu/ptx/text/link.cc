#include "softgpu/ptx/text/link.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "softgpu/ptx/builtin.h"
#include "softgpu/ptx/text/header.h"
#include "softgpu/ptx/text/lexer.h"

namespace softgpu::ptx {
namespace {

enum class Linkage { kPrivate, kVisible, kWeak, kExtern };

struct Item {
  bool is_function = false;
  bool is_shared = false;
  bool is_definition = false;
  Linkage linkage = Linkage::kPrivate;
  std::string_view name;
  std::string_view text;
  std::string_view linkage_text;  // ".extern", within `text`
  std::size_t input = 0;
};

bool is_mark(const Token& token, char mark) {
  return token.kind == Token::Kind::kPunctuation && token.text[0] == mark;
}

bool is_dotted(const Token& token, std::string_view word) {
  return token.kind == Token::Kind::kDotted && token.text == word;
}

// Cuts one text into items.
class Cutter {
 public:
  Cutter(const LinkInput& input, std::size_t index, std::vector<Item>& items, std::string& error)
      : input_(input), index_(index), items_(items), error_(error), lexer_(input.text) {
    advance();
  }

  bool run() {
    while (token_.kind != Token::Kind::kEnd) {
      if (is_dotted(token_, "section")) {
        while (token_.kind != Token::Kind::kEnd && !is_mark(token_, '}')) advance();
        advance();
      } else if (is_mark(token_, ';')) {
        advance();
      } else if (is_line()) {
        const int line = token_.line;
        while (token_.kind != Token::Kind::kEnd && token_.line == line) advance();
      } else if (!item()) {
        return false;
      }
    }
    return true;
  }

 private:
  void advance() { token_ = lexer_.next(); }

  // Statements that end with their line; debug information names labels at module level.
  bool is_line() const {
    return token_.kind == Token::Kind::kIdentifier || is_dotted(token_, "version") || is_dotted(token_, "target") ||
           is_dotted(token_, "address_size") || is_dotted(token_, "file") || is_dotted(token_, "loc") ||
           is_dotted(token_, "pragma");
  }

  bool item() {
    Item item;
    item.input = index_;
    if (token_.kind != Token::Kind::kDotted)
      return fail("expected a directive before '" + std::string(token_.text) + "'");
    const char* const begin = token_.text.data() - 1;
    int depth = 0;   // of ( and [
    int braces = 0;  // of {
    bool ended = false;
    while (!ended) {
      if (token_.kind == Token::Kind::kEnd) return fail("the text ends within '" + std::string(item.name) + "'");
      if (depth == 0 && braces == 0) note(item);
      depth += (is_mark(token_, '(') || is_mark(token_, '[')) - (is_mark(token_, ')') || is_mark(token_, ']'));
      if (is_mark(token_, '{')) ++braces;
      if (is_mark(token_, '}')) --braces;
      ended = braces <= 0 && (is_mark(token_, ';') || (is_mark(token_, '}') && item.is_function));
      if (ended) finish(item, begin);
      advance();
    }
    if (item.name.empty()) return fail("a declaration without a name");
    items_.push_back(item);
    return true;
  }

  void note(Item& item) {
    if (token_.kind == Token::Kind::kIdentifier && item.name.empty()) item.name = token_.text;
    if (token_.kind != Token::Kind::kDotted || !item.name.empty()) return;
    const std::string_view word = token_.text;
    const std::string_view dotted(word.data() - 1, word.size() + 1);
    if (word == "extern" || word == "visible" || word == "weak" || word == "common") {
      item.linkage = word == "extern" ? Linkage::kExtern : word == "visible" ? Linkage::kVisible : Linkage::kWeak;
      item.linkage_text = dotted;
    } else if (word == "entry" || word == "func") {
      item.is_function = true;
      // The driver finds an entry by its name, whether it is .visible or not.
      if (word == "entry" && item.linkage == Linkage::kPrivate) item.linkage = Linkage::kVisible;
    } else if (word == "shared") {
      item.is_shared = true;
    }
  }

  void finish(Item& item, const char* begin) const {
    const char* const end = token_.text.data() + token_.text.size();
    item.text = {begin, static_cast<std::size_t>(end - begin)};
    item.is_definition = item.is_function ? is_mark(token_, '}') : item.linkage != Linkage::kExtern;
  }

  bool fail(const std::string& what) {
    error_ = std::string(input_.name) + ", line " + std::to_string(token_.line) + ": " + what;
    return false;
  }

  const LinkInput& input_;
  std::size_t index_;
  std::vector<Item>& items_;
  std::string& error_;
  Lexer lexer_;
  Token token_;
};

class Linker {
 public:
  explicit Linker(std::span<const LinkInput> inputs) : inputs_(inputs), renamed_(inputs.size()) {}

  LinkOutput run() {
    LinkOutput output;
    if (cut(output.error) && define(output.error) && resolve(output.error)) output.text = text();
    return output;
  }

 private:
  bool cut(std::string& error) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const auto header = read_header(inputs_[i].text);
      if (!header) {
        error = std::string(inputs_[i].name) + ": no PTX text";
        return false;
      }
      header_.version = std::max(header_.version, header->version);
      if (header->architecture > header_.architecture) {
        header_.architecture = header->architecture;
        header_.variant = header->variant;
      }
      if (!Cutter(inputs_[i], i, items_, error).run()) return false;
    }
    return true;
  }

  // The definition that each public name stands for, and new names for the private ones that are not alone.
  bool define(std::string& error) {
    for (const Item& item : items_) {
      if (!item.is_definition || item.linkage == Linkage::kPrivate) continue;
      const Item*& chosen = public_[item.name];
      if (chosen == nullptr || (chosen->linkage == Linkage::kWeak && item.linkage == Linkage::kVisible)) {
        chosen = &item;
      } else if (item.linkage == Linkage::kVisible) {
        error = "Multiple definition of '" + std::string(item.name) + "' in '" + std::string(inputs_[item.input].name) +
                "', first defined in '" + std::string(inputs_[chosen->input].name) + "'";
        return false;
      }
    }
    std::map<std::string_view, std::size_t> private_names;  // by the first input that has them
    for (const Item& item : items_) {
      if (item.linkage != Linkage::kPrivate || renamed_[item.input].contains(item.name)) continue;
      const auto [entry, is_first] = private_names.try_emplace(item.name, item.input);
      if (entry->second == item.input && !public_.contains(item.name)) continue;
      renamed_[item.input][item.name] = std::string(item.name) + "__linked" + std::to_string(item.input);
    }
    return true;
  }

  // Every name that is only declared and yet used must be something the machine brings.
  bool resolve(std::string& error) {
    std::map<std::string_view, const Item*> undefined;
    for (const Item& item : items_) {
      const bool is_known = public_.contains(item.name) || item.is_shared || builtin_from_name(item.name).has_value();
      if (item.linkage == Linkage::kExtern && !is_known) undefined.emplace(item.name, &item);
    }
    if (undefined.empty()) return true;
    for (const Item& item : items_) {
      if (!item.is_definition) continue;
      Lexer lexer(item.text);
      for (Token token = lexer.next(); token.kind != Token::Kind::kEnd; token = lexer.next()) {
        if (token.kind != Token::Kind::kIdentifier || !undefined.contains(token.text)) continue;
        error = "Undefined reference to '" + std::string(token.text) + "' in '" +
                std::string(inputs_[item.input].name) + "'";
        return false;
      }
    }
    for (const auto& [name, item] : undefined) dropped_.insert(name);
    return true;
  }

  bool keeps(const Item& item) {
    if (dropped_.contains(item.name)) return false;
    if (item.is_definition) {
      return item.linkage == Linkage::kPrivate || public_.at(item.name) == &item;
    }
    if (item.is_function) return true;
    return !public_.contains(item.name) && declared_.insert(item.name).second;  // a dynamic shared array, once
  }

  std::string text() {
    std::string declarations;
    std::string variables;
    std::string functions;
    for (const Item& item : items_) {
      if (!keeps(item)) continue;
      std::string& out = !item.is_function ? variables : item.is_definition ? functions : declarations;
      out += renamed(item) + "\n";
    }
    std::string target = "sm_" + std::to_string(header_.architecture);
    if (header_.variant != '\0') target += header_.variant;
    return ".version " + std::to_string(header_.version / 10) + "." + std::to_string(header_.version % 10) +
           "\n.target " + target + "\n.address_size 64\n" + declarations + variables + functions;
  }

  // The item's text with its private names made unique and, when the name is defined now, as a declaration of it.
  std::string renamed(const Item& item) const {
    std::string out;
    const char* copied = item.text.data();
    const auto replace = [&](std::string_view piece, std::string_view by) {
      out.append(copied, piece.data());
      out += by;
      copied = piece.data() + piece.size();
    };
    if (const auto found = public_.find(item.name);
        found != public_.end() && item.linkage == Linkage::kExtern && item.is_function) {
      replace(item.linkage_text, found->second->linkage == Linkage::kWeak ? ".weak" : ".visible");
    }
    const auto& names = renamed_[item.input];
    Lexer lexer(item.text);
    for (Token token = lexer.next(); !names.empty() && token.kind != Token::Kind::kEnd; token = lexer.next()) {
      if (token.kind != Token::Kind::kIdentifier) continue;
      if (const auto found = names.find(token.text); found != names.end()) replace(token.text, found->second);
    }
    out.append(copied, item.text.data() + item.text.size());
    return out;
  }

  std::span<const LinkInput> inputs_;
  std::vector<Item> items_;
  Header header_;
  std::map<std::string_view, const Item*> public_;
  std::vector<std::map<std::string_view, std::string>> renamed_;  // by input
  std::set<std::string_view> dropped_;                            // declared, undefined and unused
  std::set<std::string_view> declared_;
};

}  // namespace

LinkOutput link(std::span<const LinkInput> inputs) {
  return Linker(inputs).run();
}

}  // namespace softgpu::ptx
