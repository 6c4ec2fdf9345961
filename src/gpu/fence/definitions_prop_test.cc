#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "gpu/fence/definitions.h"
#include "gpu/fence/dominators.h"

namespace fairlead::fence {
namespace {

using ::testing::ElementsAre;

TEST(Dominators, OfADiamondWithALoop) {
  //        0 -> 1 -> 2, 3 -> 4 -> 1; nothing leads to 5
  EXPECT_THAT(immediate_dominators({{1}, {2, 3}, {4}, {4}, {1}, {4}}), ElementsAre(0, 0, 1, 1, 1, kUnreached));
}

// The definition: without its dominator nothing leads to a node.
RC_GTEST_PROP(DominatorsProp, AgreeWithLeavingOutNodes, ()) {
  const auto count = *rc::gen::inRange<std::uint32_t>(1, 9);
  Edges next(count);
  const auto edges = *rc::gen::container<std::vector<std::pair<std::uint32_t, std::uint32_t>>>(
      rc::gen::pair(rc::gen::inRange<std::uint32_t>(0, count), rc::gen::inRange<std::uint32_t>(0, count)));
  for (const auto& [from, to] : edges) next[from].push_back(to);
  const auto reached_without = [&](std::uint32_t left_out) {
    std::vector<bool> reached(count);
    const std::function<void(std::uint32_t)> walk = [&](std::uint32_t node) {
      if (node == left_out || reached[node]) return;
      reached[node] = true;
      for (const std::uint32_t to : next[node]) walk(to);
    };
    walk(0);
    return reached;
  };
  const std::vector<bool> reached = reached_without(kUnreached);
  const std::vector<std::uint32_t> found = immediate_dominators(next);
  for (std::uint32_t node = 1; node < count; ++node) {
    if (!reached[node]) {
      RC_ASSERT(found[node] == kUnreached);
      continue;
    }
    std::set<std::uint32_t> dominators, on_path;
    for (std::uint32_t other = 0; other < count; ++other) {
      if (other != node && !reached_without(other)[node]) dominators.insert(other);
    }
    for (std::uint32_t at = node; at != 0; at = found[at]) on_path.insert(found[at]);
    RC_ASSERT(on_path == dominators);
  }
}

// One statement of a small language: four registers, three labels.
struct Statement {
  int kind = 0, to = 0, from = 0;

  std::string text(int index) const {
    switch (kind) {
      case 0: return fmt::format("mov.u32 %r{}, %r{};", to, from);
      case 1: return fmt::format("@%p mov.u32 %r{}, %r{};", to, from);
      case 2: return fmt::format("mov.u32 %r{}, 7;", to);
      case 3: return fmt::format("bra L{};", to % 3);
      case 4: return fmt::format("@!%p bra L{};", to % 3);
      case 5: return "ret;";
      case 6: return "@%p exit;";
      case 7: return fmt::format("T{0}: .branchtargets L{1}, L{2}; brx.idx %r{1}, T{0};", index, to % 3, from % 3);
      default: return fmt::format("st.global.u32 [%rd], %r{};", from);
    }
  }
};

// Straight from the words: may a way lead from the beginning to a read of the register with no certain write before?
class NaiveReader {
 public:
  NaiveReader(const std::vector<Statement>& statements, const std::map<int, std::size_t>& labels)
      : statements_(statements), labels_(labels) {}

  bool reads_first(int wanted) {
    seen_.assign(statements_.size() + 1, false);
    return walk(0, wanted);
  }

 private:
  bool walk(std::size_t at, int wanted) {
    if (at >= statements_.size() || seen_[at]) return false;
    seen_[at] = true;
    const Statement& now = statements_[at];
    const auto jump = [&](int label) { return walk(labels_.at(label % 3), wanted); };
    const bool reads_from = now.kind == 0 || now.kind == 1 || now.kind > 7;
    if ((reads_from && now.from == wanted) || (now.kind == 1 && now.to == wanted)) return true;
    if (now.kind == 7) return now.to % 3 == wanted || jump(now.to) || jump(now.from);
    if ((now.kind == 0 || now.kind == 2) && now.to == wanted) return false;
    if (now.kind == 3) return jump(now.to);
    if (now.kind == 4 && jump(now.to)) return true;
    return now.kind != 5 && walk(at + 1, wanted);
  }

  const std::vector<Statement>& statements_;
  const std::map<int, std::size_t>& labels_;
  std::vector<bool> seen_;
};

RC_GTEST_PROP(DefinitionsProp, AgreeWithASearchOfAllWays, ()) {
  const auto statements = *rc::gen::container<std::vector<Statement>>(
      rc::gen::construct<Statement>(rc::gen::inRange(0, 9), rc::gen::inRange(0, 4), rc::gen::inRange(0, 4)));
  std::map<int, std::size_t> labels;
  std::string body;
  for (int label = 0; label < 3; ++label) labels[label] = *rc::gen::inRange<std::size_t>(0, statements.size() + 1);
  for (std::size_t i = 0; i <= statements.size(); ++i) {
    for (const auto& [label, at] : labels) {
      if (at == i) body += fmt::format("L{}: ", label);
    }
    if (i < statements.size()) body += statements[i].text(static_cast<int>(i)) + "\n";
  }
  const std::string ptx =
      ".version 7.8\n.target sm_80\n.address_size 64\n.entry k() {\n.reg .b32 %r<4>; .reg .b64 %rd; .reg .pred %p;\n"
      "mov.u64 %rd, 0; setp.eq.u64 %p, %rd, 0;\n" +
      body + "}\n";
  const Result<Module> module = parse_ptx(ptx);
  RC_ASSERT(module.has_value());
  const Function& function = module->functions[0];
  std::set<std::string> found, expected;
  for (const int id : read_before_written(function).registers) {
    found.emplace(function.registers[static_cast<std::size_t>(id)].name);
  }
  NaiveReader naive(statements, labels);
  for (int wanted = 0; wanted < 4; ++wanted) {
    if (naive.reads_first(wanted)) expected.insert(fmt::format("%r{}", wanted));
  }
  RC_ASSERT(found == expected);
}

}  // namespace
}  // namespace fairlead::fence
