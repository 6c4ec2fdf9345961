// The second claim of the fence, checked without any of its code: in fenced text nothing is read that the last kernel may
// have left. A register, the carry, a byte of a parameter is read only where every way to there has written it; an entry
// that may read shared memory or its arena clears them before anything else. Naive on purpose: lines and words, and sets
// that grow until nothing changes.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace fairlead::fence::testing {

// One function of the text, as its lines, without the braces around them.
struct CheckedFunction {
  std::string head;
  bool is_entry = false;
  std::vector<std::string> lines;
};

inline std::vector<CheckedFunction> functions_of(const std::string& ptx) {
  std::vector<CheckedFunction> functions;
  std::istringstream lines(ptx);
  int depth = 0;
  std::string head;
  for (std::string line; std::getline(lines, line);) {
    if (line == "{" && depth++ == 0) {
      functions.push_back({head, head.find(".entry ") != std::string::npos, {}});
      continue;
    }
    if (line == "}" && --depth == 0) continue;
    if (depth > 0) {
      functions.back().lines.push_back(line);
    } else {
      head = line;
    }
  }
  return functions;
}

inline std::string name_in_head(const std::string& head) {
  static const std::regex kName(R"(\.(?:entry|func) (?:\(.*?\) )?([\w$%]+) \()");
  std::smatch match;
  return std::regex_search(head, match, kName) ? match[1].str() : "";
}

// Follows one function. Everything that can be read has a number: registers by scope and name, the carry, bytes of
// parameters by scope, name and offset.
class DefinitionChecker {
 public:
  explicit DefinitionChecker(const CheckedFunction& function) : lines_(function.lines) {
    scopes_.emplace_back();
    static const std::regex kResults(R"(\.func \((.*?)\) )");
    std::smatch match;
    if (!function.is_entry && std::regex_search(function.head, match, kResults)) {
      const std::string results = match[1];
      for (std::sregex_iterator at(results.begin(), results.end(), parameter()), end; at != end; ++at) {
        declare_parameter(*at);
        results_.push_back(scopes_.back().at((*at)[4]));
      }
    }
    for (std::size_t i = 0; i < lines_.size(); ++i) parse(lines_[i]);
  }

  // The first line that may read what is not written, or nothing.
  std::string first_fault() {
    // By line: what is written on every way to it. A bit for each number; a line that no way leads to has none.
    std::vector<std::vector<bool>> before(lines_.size() + 1);
    before[0].resize(numbers_.size() + 1);
    std::vector<std::size_t> waiting = {0};
    while (!waiting.empty()) {
      const std::size_t at = waiting.back();
      waiting.pop_back();
      if (at == lines_.size()) continue;
      std::vector<bool> after = before[at];
      for (const std::size_t number : facts_[at].writes) after[number] = true;
      for (const std::size_t to : followers(at)) {
        const std::vector<bool> old = before[to];
        if (old.empty()) before[to] = after;
        for (std::size_t i = 0; i < old.size(); ++i) before[to][i] = old[i] && after[i];
        if (before[to] != old) waiting.push_back(to);
      }
    }
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const auto is_written = [&](std::size_t number) { return before[i][number]; };
      if (!before[i].empty() && !std::ranges::all_of(facts_[i].reads, is_written)) return lines_[i];
    }
    return {};
  }

 private:
  struct Meaning {
    std::size_t serial = 0;  // of its declaration
    std::size_t count = 0;   // %r<count>; 0: the name itself
    std::size_t bytes = 0;   // of a parameter
    bool is_register = false;
  };
  using Thing = std::pair<std::size_t, std::string>;  // what a number stands for: serial, and which of it
  struct Facts {
    std::set<std::size_t> reads, writes;
    std::vector<std::string> targets;
    bool ends = false;
  };

  static const std::regex& parameter() {
    static const std::regex kParameter(R"(\.param \.align (\d+) (?:(\.v[248]) )?(\.\w+) ([\w$%]+)((?:\[\d*\])*))");
    return kParameter;
  }
  static std::size_t bytes_of(const std::string& type) {
    if (type.ends_with("b128")) return 16;
    if (type.ends_with("x2")) return 4;
    std::size_t at = type.find_last_not_of("0123456789");
    return at + 1 < type.size() ? static_cast<std::size_t>(std::atoi(type.c_str() + at + 1)) / 8 : 0;
  }
  void declare_parameter(const std::smatch& match) {
    std::size_t bytes =
        bytes_of(match[3]) * (match[2].length() > 0 ? static_cast<std::size_t>(match[2].str()[2] - '0') : 1);
    static const std::regex kExtent(R"(\[(\d*)\])");
    const std::string extents = match[5];
    for (std::sregex_iterator at(extents.begin(), extents.end(), kExtent), end; at != end; ++at) {
      bytes *= (*at)[1].length() > 0 ? std::stoull((*at)[1]) : 0;
    }
    scopes_.back()[match[4]] = {++serial_, 0, bytes, false};
  }

  std::size_t number(const Meaning& meaning, const std::string& which) {
    return numbers_.try_emplace({meaning.serial, which}, numbers_.size()).first->second;
  }

  // What a name means here: itself, or one of a family, whichever is declared in the innermost scope.
  const Meaning* find(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end() && found->second.count == 0)
        return &found->second;
      for (std::size_t cut = name.size(); cut-- > 1 && std::isdigit(static_cast<unsigned char>(name[cut])) != 0;) {
        const auto found = scope->find(name.substr(0, cut));
        const bool is_member = found != scope->end() && found->second.count > 0 && name.size() - cut < 8 &&
                               (name[cut] != '0' || cut + 1 == name.size()) &&
                               std::stoull(name.substr(cut)) < found->second.count;
        if (is_member) return &found->second;
      }
    }
    return nullptr;
  }

  void parse(const std::string& line) {
    Facts facts;
    std::smatch match;
    static const std::regex kRegisters(R"(^\.reg (\.\w+) (.*);$)");
    static const std::regex kRegister(R"(([\w$%]+)(?:<(\d+)>)?)");
    static const std::regex kTable(R"(^([\w$%]+): \.branchtargets (.*);$)");
    static const std::regex kInstruction(R"(^(?:@(!?)([\w$%]+) )?([a-z]\w*)([.:\w]*)(?: (.*))?;$)");
    if (line == "{") {
      scopes_.emplace_back();
    } else if (line == "}") {
      scopes_.pop_back();
    } else if (line.ends_with(":")) {
      labels_[line.substr(0, line.size() - 1)].push_back(facts_.size());
    } else if (std::regex_match(line, match, kTable)) {
      const std::string targets = match[2];
      std::istringstream words(targets);
      for (std::string word; words >> word;) tables_[match[1]].push_back(word.substr(0, word.find(',')));
    } else if (std::regex_match(line, match, kRegisters)) {
      const std::string names = match[2];
      for (std::sregex_iterator at(names.begin(), names.end(), kRegister), end; at != end; ++at) {
        scopes_.back()[(*at)[1]] = {++serial_, (*at)[2].length() > 0 ? std::stoull((*at)[2]) : 0, 0, true};
      }
    } else if (line.starts_with(".param")) {
      if (std::regex_search(line, match, parameter())) declare_parameter(match);
    } else if (std::regex_match(line, match, kInstruction)) {
      instruction(match, facts);
    }
    facts_.push_back(std::move(facts));
  }

  void instruction(const std::smatch& match, Facts& facts) {
    const bool is_certain = match[2].length() == 0;
    const std::string opcode = match[3], modifiers = match[4];
    std::string operands = match[5];
    if (!is_certain) touch(match[2], facts.reads);
    if (opcode == "bra" || opcode == "brx") {
      facts.targets.push_back(operands.substr(operands.rfind(' ') + 1));
      touch(operands, facts.reads);
    }
    facts.ends =
        is_certain && (opcode == "bra" || opcode == "brx" || opcode == "ret" || opcode == "exit" || opcode == "trap");
    if (opcode == "ret") {
      for (const Meaning& result : results_) touch_bytes(result, 0, result.bytes, facts.reads);
    }
    if (modifiers.find(".param") != std::string::npos && (opcode == "ld" || opcode == "st")) {
      return parameter_access(opcode, modifiers, operands, is_certain, facts);
    }
    static const std::set<std::string> kNoDestination = {"st",
                                                         "red",
                                                         "bra",
                                                         "brx",
                                                         "bar",
                                                         "barrier",
                                                         "membar",
                                                         "fence",
                                                         "nanosleep",
                                                         "prefetch",
                                                         "cp",
                                                         "exit",
                                                         "ret",
                                                         "trap",
                                                         "call",
                                                         "discard",
                                                         "stmatrix",
                                                         "setmaxnreg",
                                                         "griddepcontrol",
                                                         "prefetchu",
                                                         "applypriority"};
    const bool is_reduction = opcode.starts_with("bar") && modifiers.find(".red") != std::string::npos;
    const bool has_destination = (!kNoDestination.contains(opcode) || is_reduction) && operands[0] != '[';
    std::string destination;
    if (has_destination || (opcode == "call" && operands[0] == '(')) {
      const char closing = operands[0] == '{' ? '}' : operands[0] == '(' ? ')' : ',';
      const std::size_t end = std::min(operands.find(closing), operands.size());
      destination = operands.substr(0, end);
      operands = operands.substr(end);
    }
    touch(operands, facts.reads);
    if (opcode == "addc" || opcode == "subc" || opcode == "madc") facts.reads.insert(number({}, "carry"));
    std::set<std::size_t>& reached = is_certain ? facts.writes : facts.reads;
    touch(destination, reached);
    if (modifiers.find(".cc") != std::string::npos) reached.insert(number({}, "carry"));
  }

  // All registers that are named, and the parameters, whole.
  void touch(const std::string& text, std::set<std::size_t>& set) {
    static const std::regex kName(R"([\w$%]+)");
    for (std::sregex_iterator at(text.begin(), text.end(), kName), end; at != end; ++at) {
      const Meaning* const meaning = find(at->str());
      if (meaning == nullptr) continue;
      if (meaning->is_register) set.insert(number(*meaning, at->str()));
      if (!meaning->is_register) touch_bytes(*meaning, 0, meaning->bytes, set);
    }
  }
  void touch_bytes(const Meaning& meaning, std::size_t begin, std::size_t end, std::set<std::size_t>& set) {
    for (std::size_t i = begin; i < end; ++i) set.insert(number(meaning, std::to_string(i)));
  }

  void parameter_access(const std::string& opcode, const std::string& modifiers, const std::string& operands,
                        bool is_certain, Facts& facts) {
    static const std::regex kAddress(R"(\[([\w$%]+)(?:\+(-?\d+))?\])");
    static const std::regex kType(R"((?:\.(v[248]))?(?:\.\w+)*(\.\w+)$)");
    std::smatch address, type;
    std::regex_search(operands, address, kAddress);
    std::string others = operands;
    if (!address.empty())
      others.replace(static_cast<std::size_t>(address.position()), static_cast<std::size_t>(address.length()), "");
    touch(others, opcode == "ld" && is_certain ? facts.writes : facts.reads);
    const Meaning* const meaning = address.empty() ? nullptr : find(address[1]);
    if (meaning == nullptr) return;
    if (meaning->is_register) return touch(address[1], facts.reads);
    std::size_t bytes = bytes_of(modifiers.substr(modifiers.rfind('.')));
    const std::size_t vector = modifiers.find(".v");
    if (vector != std::string::npos && vector + 2 < modifiers.size() &&
        std::isdigit(static_cast<unsigned char>(modifiers[vector + 2])) != 0) {
      bytes *= static_cast<std::size_t>(modifiers[vector + 2] - '0');
    }
    const std::size_t begin = address[2].matched ? std::stoull(address[2]) : 0;
    if (opcode == "ld") touch_bytes(*meaning, begin, begin + bytes, facts.reads);
    if (opcode == "st" && is_certain) touch_bytes(*meaning, begin, begin + bytes, facts.writes);
  }

  std::vector<std::size_t> followers(std::size_t i) const {
    std::vector<std::size_t> found;
    if (!facts_[i].ends) found.push_back(i + 1);
    for (const std::string& target : facts_[i].targets) {
      std::vector<std::string> names = {target};
      if (const auto table = tables_.find(target); table != tables_.end()) names = table->second;
      for (const std::string& name : names) {
        if (const auto label = labels_.find(name); label != labels_.end()) {
          found.insert(found.end(), label->second.begin(), label->second.end());
        }
      }
    }
    return found;
  }

  const std::vector<std::string>& lines_;
  std::vector<std::map<std::string, Meaning>> scopes_;
  std::map<Thing, std::size_t> numbers_;
  std::size_t serial_ = 0;
  std::vector<Meaning> results_;
  std::vector<Facts> facts_;
  std::map<std::string, std::vector<std::size_t>> labels_;
  std::map<std::string, std::vector<std::string>> tables_;
};

// What entries have to clear, by the words of their functions.
class ClearChecker {
 public:
  explicit ClearChecker(const std::string& ptx) : functions_(functions_of(ptx)) {
    for (std::size_t i = 0; i < functions_.size(); ++i) by_name_[name_in_head(functions_[i].head)] = i;
  }

  std::string first_fault() const {
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      if (!functions_[i].is_entry) continue;
      const std::string fault = fault_of(i);
      if (!fault.empty()) return fault;
    }
    return {};
  }

 private:
  // The lines of the function and of all that it may call.
  std::vector<std::string> reachable(std::size_t entry) const {
    static const std::regex kCall(R"(^(?:@\S+ )?call\S* (?:\(.*?\), )?([\w$%]+))");
    std::set<std::size_t> seen = {entry};
    std::vector<std::size_t> waiting = {entry};
    std::vector<std::string> lines;
    while (!waiting.empty()) {
      const CheckedFunction& function = functions_[waiting.back()];
      waiting.pop_back();
      for (const std::string& line : function.lines) {
        lines.push_back(line);
        std::smatch match;
        if (!std::regex_search(line, match, kCall)) continue;
        const auto callee = by_name_.find(match[1]);
        if (callee != by_name_.end() && seen.insert(callee->second).second) waiting.push_back(callee->second);
      }
    }
    return lines;
  }

  std::string fault_of(std::size_t entry) const {
    static const std::regex kShared(
        R"(^(@\S+ )?(((ld|ldu|atom)\.\S*shared|wmma\.load\S*\.shared|ldmatrix|mbarrier\.(?!pending_count))\S*|cp\.async\.mbarrier\S*) ?.*$)");
    static const std::regex kLocal(R"(^(@\S+ )?(ld|ldu)\.\S*local.*$)");
    static const std::regex kGeneric(R"(^(@\S+ )?(ld|ldu|atom)(?!\S*\.(shared|global|local|param|const))\..*$)");
    static const std::regex kMayBeShared(R"(^isspacep\.shared %__fence_p0,)"),
        kMayBeLocal(R"(^isspacep\.local %__fence_p1,)");
    static const std::regex kCluster(R"(::cluster)");
    const std::vector<std::string> lines = reachable(entry);
    const auto any = [&](const std::regex& wanted) {
      return std::ranges::any_of(lines, [&](const std::string& line) { return std::regex_search(line, wanted); });
    };
    const std::string start = start_of(functions_[entry].lines);
    const auto has = [&](const std::string& text) { return start.find(text + "\n") != std::string::npos; };
    if (any(kShared) || (any(kGeneric) && any(kMayBeShared))) {
      if (!has("st.shared.v4.b32 [%c4], {%c3, %c3, %c3, %c3};\n"
               "add.u32 %c4, %c4, %c5;\nsetp.lt.u32 %q, %c4, %c6;\n"
               "@%q bra __fence_next;")) {
        return functions_[entry].head;
      }
      const bool is_cluster = any(kCluster);
      if (!has(is_cluster ? "barrier.cluster.arrive;\nbarrier.cluster.wait;" : "bar.sync 0;"))
        return functions_[entry].head;
      if (!has("mov.u32 %c3, __fence_dynamic;")) return functions_[entry].head;
      for (const CheckedFunction& function : functions_) {
        const std::string unnamed = unnamed_shared(function.lines);
        if (!unnamed.empty()) return unnamed;
      }
    }
    static const std::regex kArena(R"(\.local \.align 16 \.b8 __fence_arena\[(\d+)\];)");
    std::smatch arena;
    std::string text;
    for (const std::string& line : functions_[entry].lines) text += line + "\n";
    const bool reads_local = any(kLocal) || (any(kGeneric) && any(kMayBeLocal));
    if (reads_local && std::regex_search(text, arena, kArena)) {
      const std::size_t bytes = std::stoull(arena[1]);
      const std::string zeros = ", {%c, %c, %c, %c};";
      const std::string end = std::to_string(bytes - 16);
      bool is_cleared = has("setp.lt.u64 %q, %__fence_l0, " + end + ";") &&
                        has("st.local.v4.b32 [%__fence_l2]" + zeros) &&
                        has("st.local.v4.b32 [__fence_arena+" + end + "]" + zeros);
      if (!is_cleared) {
        is_cleared = true;
        for (std::size_t at = 0; at < bytes; at += 16) {
          is_cleared &= has("st.local.v4.b32 [__fence_arena+" + std::to_string(at) + "]" + zeros);
        }
      }
      if (!is_cleared) return functions_[entry].head;
    }
    return unguarded_lanes(lines);
  }

  static std::set<std::string> words_of(const std::string& line) {
    static const std::regex kWord(R"([\w$%]+)");
    std::set<std::string> words;
    for (std::sregex_iterator at(line.begin(), line.end(), kWord), end; at != end; ++at) words.insert(at->str());
    return words;
  }
  // A variable in shared memory that no line names lies behind dynamic memory, so that this does not end where it seems to.
  static std::string unnamed_shared(const std::vector<std::string>& lines) {
    static const std::regex kVariable(R"(^\.shared \.align \d+ (?:\.v\d )?\.\w+ ([\w$%]+).*;$)");
    std::smatch match;
    for (const std::string& line : lines) {
      if (!std::regex_match(line, match, kVariable)) continue;
      const std::string name = match[1];
      const bool is_named = std::ranges::any_of(
          lines, [&](const std::string& other) { return !other.starts_with(".") && words_of(other).contains(name); });
      if (!is_named) return line;
    }
    return {};
  }

  // What runs before the tenant's own lines: scopes that begin as the fence's do, and lines that name something of the
  // fence's.
  static std::string start_of(const std::vector<std::string>& lines) {
    std::string start = "\n";
    bool is_in_scope = false;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string& line = lines[i];
      const std::string next = i + 1 < lines.size() ? lines[i + 1] : "";
      if (line == "{" && next != ".reg .b32 %c<7>;" && next != ".reg .b32 %c;") break;
      is_in_scope = (is_in_scope || line == "{") && line != "}";
      if (!is_in_scope && line != "}" && !line.starts_with(".") && line.find("__fence") == std::string::npos) break;
      start += line + "\n";
    }
    return start;
  }
  // What a shuffle gives is replaced where it came from no lane, and a matrix instruction has seen since the last label or
  // jump that all lanes are there.
  static std::string unguarded_lanes(const std::vector<std::string>& lines) {
    static const std::regex kShuffle(R"(^(@\S+ )?shfl\.\S* ([\w$%]+)\|([\w$%]+), .*;$)");
    static const std::regex kAnyShuffle(R"(^(@\S+ )?shfl\b.*$)");
    static const std::regex kMatrix(R"(^(@\S+ )?(mma|wmma|ldmatrix|stmatrix|movmatrix)\..*$)");
    static const std::regex kJump(R"(^(@\S+ )?(bra|brx|call|ret|exit)\b.*$)");
    bool is_whole = false;
    std::smatch match;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string& line = lines[i];
      if (line.ends_with(":") || std::regex_match(line, kJump)) is_whole = false;
      if (line == "@%__fence_p2 trap;") is_whole = true;
      if (std::regex_match(line, kMatrix) && !is_whole) return line;
      if (!std::regex_match(line, kAnyShuffle)) continue;
      if (!std::regex_match(line, match, kShuffle)) return line;
      const std::string guard = match[1], to = match[2];
      const bool is_replaced = i > 1 && i + 2 < lines.size() &&
                               (lines[i - 1] == "bfe.u32 %__fence_w1, %__fence_lanes, %__fence_w1, 1;" ||
                                lines[i - 1] == "mov.pred %__fence_p2, 0;") &&
                               lines[i + 1] == "setp.eq.and.u32 %__fence_p1, %__fence_w1, 0, " + match[3].str() + ";" &&
                               lines[i + 2] == guard + "selp.b32 " + to + ", 0, " + to + ", %__fence_p1;";
      if (!is_replaced && to != "_") return line;
    }
    return {};
  }

  std::vector<CheckedFunction> functions_;
  std::map<std::string, std::size_t> by_name_;
};

// The first line that breaks the claim, or nothing.
inline std::string leftover_read(const std::string& ptx) {
  for (const CheckedFunction& function : functions_of(ptx)) {
    const std::string fault = DefinitionChecker(function).first_fault();
    if (!fault.empty()) return name_in_head(function.head) + ": " + fault;
  }
  return ClearChecker(ptx).first_fault();
}

}  // namespace fairlead::fence::testing
