// The claim of the fence, checked without any of its code: in fenced text every access to global or generic memory goes
// to an address that the lines before it made one of the range. Naive on purpose: lines and words, nothing else.
#pragma once

#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "fence/fence.h"

namespace fairlead::fence::testing {

// The first line that breaks the claim, or nothing.
inline std::string unfenced_access(const std::string& ptx, const FenceOptions& options) {
  static const std::regex kAnd(R"(^and\.b64 (%__fence_[at]\d+), \S+, 0x([0-9a-f]+);$)");
  static const std::regex kOr(R"(^or\.b64 (%__fence_[at]\d+), (%__fence_[at]\d+), 0x([0-9a-f]+);$)");
  static const std::regex kMove(R"(^mov\.b64 (%__fence_[at]\d+), 0x([0-9a-f]+);$)");
  static const std::regex kSelect(R"(^selp\.b64 (%__fence_t1), %__fence_t0, %__fence_t1, %__fence_p[01];$)");
  static const std::regex kWrite(R"(^(?:@\S+ )?[a-z]\S* (%__fence_[at]\d+)\b.*$)");
  static const std::regex kMemory(
      R"(^(?:@\S+ )?(ld|ldu|st|atom|red|prefetch|prefetchu|discard|applypriority|cp|wmma|suld|sust|tex|multimem)([.:\w]*)\s.*\[.*$)");
  static const std::regex kAddress(R"(\[(%__fence_[at]\d+)(?:\+(-?\d+))?\])");
  static const std::regex kHead(R"(^(\.\w+ )?\.(entry|func) )");
  enum class State { kUnknown, kMasked, kFenced };
  std::map<std::string, State> always, now;  // by register: on entry of any line; by the lines since the last label
  std::istringstream lines(ptx);
  std::smatch match;
  bool is_prologue = false;
  for (std::string line; std::getline(lines, line);) {
    const std::string at_fault = line;
    if (std::regex_search(line, kHead)) {
      always.clear();
      now.clear();
      is_prologue = true;
    }
    if (line.ends_with(":")) now = always;  // a label: reached from anywhere
    if (std::regex_match(line, match, kMemory)) {
      const std::string spaces = match[2];
      const bool is_bounded_elsewhere =
          spaces.find(".shared") != std::string::npos || spaces.find(".local") != std::string::npos ||
          spaces.find(".param") != std::string::npos || spaces.find(".const") != std::string::npos;
      if (match[1] != "cp" && is_bounded_elsewhere) continue;
      std::string rest = line;
      if (match[1] == "cp") {  // the first address is in shared memory
        if (spaces.find("mbarrier") != std::string::npos) continue;
        rest = line.substr(line.find(']') + 1);
      }
      std::smatch address;
      if (!std::regex_search(rest, address, kAddress)) return at_fault;
      const long long offset = address[2].matched ? std::stoll(address[2]) : 0;
      const auto guard = static_cast<long long>(options.guard_bytes);
      if (now[address[1]] != State::kFenced || offset < -guard || offset > guard) return at_fault;
    }
    State next = State::kUnknown;
    if (std::regex_match(line, match, kAnd) && std::stoull(match[2], nullptr, 16) == options.bytes - 1) {
      next = State::kMasked;
    } else if (std::regex_match(line, match, kOr) && match[1] == match[2] && now[match[1]] == State::kMasked &&
               std::stoull(match[3], nullptr, 16) == options.base) {
      next = State::kFenced;
    } else if (std::regex_match(line, match, kMove) &&
               std::stoull(match[2], nullptr, 16) - options.base < options.bytes) {
      next = State::kFenced;
    } else if (std::regex_match(line, match, kSelect)) {
      next = now["%__fence_t1"];
    } else if (!std::regex_match(line, match, kWrite)) {
      if (!line.starts_with(".") && !line.starts_with("{") && !line.starts_with("ld.param") &&
          !line.starts_with("cvta"))
        is_prologue = false;
      continue;
    }
    now[match[1]] = next;
    // A companion is never anything but fenced once a line of the function's start made it so.
    const bool is_companion = match[1].str().find("_a") != std::string::npos;
    if (is_companion && is_prologue && next == State::kFenced) always[match[1]] = next;
    if (is_companion && next == State::kUnknown) return at_fault;
  }
  return {};
}

}  // namespace fairlead::fence::testing
