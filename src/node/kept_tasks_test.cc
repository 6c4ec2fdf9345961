#include "node/kept_tasks.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "model/function.h"

namespace fairlead {
namespace {

using Names = std::vector<std::string>;

bool nobody(const std::string&) {
  return false;
}

// Adds it, and those that go for it.
std::optional<Names> put(KeptTasks& kept, const std::string& name, KeptTasks::Size size = {},
                         const std::function<bool(const std::string&)>& in_use = nobody) {
  auto gone = kept.to_drop(size, in_use);
  if (!gone) return gone;
  for (const std::string& other : *gone) kept.remove(other);
  kept.add(name, size);
  return gone;
}

TEST(KeptTasks, TheLeastRecentlyUsedGoesFirst) {
  KeptTasks kept({.tasks = 3});
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(Names{}, put(kept, name));
  EXPECT_TRUE(kept.use("a"));
  EXPECT_EQ(Names{"b"}, put(kept, "d"));
  EXPECT_FALSE(kept.use("b"));
  EXPECT_EQ(Names{"c"}, put(kept, "e"));
  EXPECT_EQ(Names{"a"}, put(kept, "f"));
  EXPECT_EQ(3U, kept.count());
}

TEST(KeptTasks, OneInUseStays) {
  KeptTasks kept({.tasks = 2});
  put(kept, "a");
  put(kept, "b");
  EXPECT_EQ(Names{"b"}, put(kept, "c", {}, [](const std::string& name) { return name == "a"; }));
  EXPECT_EQ(std::nullopt, put(kept, "d", {}, [](const std::string&) { return true; }));
  EXPECT_TRUE(kept.use("a") && kept.use("c"));
}

TEST(KeptTasks, FilesAndBytesAreBoundedToo) {
  KeptTasks kept({.tasks = 9, .files = 10, .bytes = Bytes(100)});
  put(kept, "a", {4, Bytes(10)});
  put(kept, "b", {4, Bytes(60)});
  EXPECT_EQ(Names{"a"}, put(kept, "c", {4, Bytes(10)}));
  EXPECT_EQ(Names{"b"}, put(kept, "d", {1, Bytes(40)}));
  EXPECT_EQ((Names{"c", "d"}), put(kept, "e", {1, Bytes(100)}));
  EXPECT_EQ(std::nullopt, put(kept, "f", {1, Bytes(101)}));
}

// Against a list that is looked through from its beginning.
RC_GTEST_PROP(KeptTasksProp, DoesAsASortedListDoes, ()) {
  KeptTasks kept({.tasks = 5, .files = 1000, .bytes = Bytes(12)});
  std::vector<std::pair<std::string, int>> list;  // names and bytes, by use
  const auto steps = *rc::gen::container<std::vector<std::tuple<int, int, unsigned>>>(
      rc::gen::tuple(rc::gen::inRange(0, 9), rc::gen::inRange(0, 6), rc::gen::arbitrary<unsigned>()));
  for (const auto& [number, bytes, busy] : steps) {
    const std::string name = std::to_string(number);
    const auto in_use = [busy = busy](const std::string& other) { return (busy >> std::stoi(other) & 1U) != 0; };
    const auto found = std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == name; });
    RC_ASSERT(kept.use(name) == (found != list.end()));
    if (found != list.end()) {
      std::rotate(found, found + 1, list.end());
      continue;
    }
    auto expected = list;
    const auto sum = [&] {
      int total = bytes;
      for (const auto& entry : expected) total += entry.second;
      return total;
    };
    for (std::size_t i = 0; i < expected.size() && (expected.size() >= 5 || sum() > 12);) {
      if (in_use(expected[i].first)) {
        ++i;
      } else {
        expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    const bool possible = expected.size() < 5 && sum() <= 12;
    RC_ASSERT(put(kept, name, {1, Bytes(bytes)}, in_use).has_value() == possible);
    if (!possible) continue;
    list = expected;
    list.emplace_back(name, bytes);
    RC_ASSERT(kept.count() == list.size());
  }
}

TEST(RequestedName, IsOfAllButTheCall) {
  const KernelTaskRequest request{.task = "{}", .files = {{"k", "abc"}}, .call = "1"};
  const std::string name = requested_name("a", request);
  EXPECT_EQ(8U + 64U, name.size());
  EXPECT_FALSE(validate_function_name(name));
  KernelTaskRequest other_call = request;
  other_call.call = "2";
  EXPECT_EQ(name, requested_name("a", other_call));
  std::set<std::string> names{name, requested_name("b", request)};
  names.insert(requested_name("a", {.task = "{ }", .files = {{"k", "abc"}}}));
  names.insert(requested_name("a", {.task = "{}", .files = {{"k", "abd"}}}));
  names.insert(requested_name("a", {.task = "{}", .files = {{"l", "abc"}}}));
  names.insert(requested_name("a", {.task = "{}", .files = {{"k", "abc"}}, .timeout_seconds = 61}));
  names.insert(requested_name("a", {.task = "{}"}));
  EXPECT_EQ(7U, names.size());
}

TEST(RequestedName, WhereOneTextEndsAndTheNextBeginsCounts) {
  std::set<std::string> names;
  names.insert(requested_name("ab", {.task = "c"}));
  names.insert(requested_name("a", {.task = "bc"}));
  names.insert(requested_name("", {.task = "", .files = {{"a", "bc"}}}));
  names.insert(requested_name("", {.task = "", .files = {{"ab", "c"}}}));
  names.insert(requested_name("", {.task = "", .files = {{"a", ""}, {"b", "c"}}}));
  EXPECT_EQ(5U, names.size());
}

}  // namespace
}  // namespace fairlead
