// Words that PTX has behind an opcode. The fence passes on those that it does not know, since the driver's compiler refuses them;
// the checkers, which look for words in the text, would take one that two were joined to for either. So the fuzzer leaves out
// what no compiler reads.
#pragma once

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace fairlead::fence::testing {

inline constexpr char kModifiers[] =
    "1d 2d 3d L1 L2 NaN a abs acq_rel acquire add aligned all alloc and any approx arrive arrive_drop async b "
    "b0 b1 b2 b3 ballot bfly bulk c ca cas cc cg clamp cluster col commit_group complete_tx const cs cta cv d "
    "dec down eq equ evict_first evict_last evict_normal exch f4e finite fractional ftz full ge geu global "
    "gpu gt gtu h0 h1 hi hs idx inc infinite init inval l le leu lo load local ls lt ltu lu max min mma mmio "
    "nan nc ne neu noftz noinc normal not_all notanumber num number or param pending_count po popc pred range "
    "rcp red reduce relaxed release relu rm rmi rn rna rni row rp rpi rz rzi sat satfinite sc shared shiftamt "
    "shr15 shr7 store subnormal sync sys test_wait tf32 to trans try_wait uni up v2 v4 v8 volatile wait_all "
    "wait_group warp wb weak wide wrap wt x1 x2 x4 xor xorsign ";

inline std::set<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::set<std::string> all;
  for (std::string word; stream >> word;) all.insert(word);
  return all;
}

inline bool is_known_modifier(const std::string& word) {
  static const std::set<std::string> known = words(kModifiers);
  static const std::regex kType(R"([busf](8|16|32|64|128)|bf16(x2)?|f16x2|e4m3x2|e5m2x2|[us]4|b1)");
  static const std::regex kShape(R"(m\d+n\d+(k\d+)?)");
  static const std::regex kSpaced(
      R"(shared::(cta|cluster)|param::(entry|func)|L1::(evict_(normal|unchanged|first|last)|no_allocate)|)"
      R"(L2::(cache_hint|(64|128|256)B|evict_(normal|first|last))|mbarrier::complete_tx::bytes)");
  return known.contains(word) || std::regex_match(word, kType) || std::regex_match(word, kShape) ||
         std::regex_match(word, kSpaced);
}

// Of a fenced module's text, whose instructions have a line each.
inline bool has_unknown_modifier(const std::string& ptx) {
  std::istringstream lines(ptx);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".") || line.ends_with(":")) continue;
    if (line.starts_with("@")) line.erase(0, std::min(line.find(' ') + 1, line.size()));
    std::istringstream words(line.substr(0, line.find_first_of(" ;")));
    std::string word;
    std::getline(words, word, '.');  // the opcode
    while (std::getline(words, word, '.')) {
      if (!is_known_modifier(word)) return true;
    }
  }
  return false;
}

}  // namespace fairlead::fence::testing
