#include "decide/residency/model_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

using ::testing::HasSubstr;
using State = ModelStore::State;

constexpr std::uint64_t kMiB = 1 << 20;

ModelDigest digest(std::uint8_t first) {
  ModelDigest made{};
  made[0] = first;
  return made;
}

// A store, and a server that does at once what it is told.
class ModelStoreTest : public ::testing::Test {
 protected:
  ModelStoreTest() : ModelStoreTest({.memory = 100 * kMiB, .tenant_memory = 60 * kMiB, .tenant_tensors = 6}) {}
  explicit ModelStoreTest(const ModelStoreOptions& options) : store(options) {}

  // Instance n is of tenant and function; its process has the same number.
  HolderId start(std::uint64_t n, const std::string& tenant = "t", const std::string& scope = "f",
                 std::set<std::string> lends = {}, std::set<std::string> uses = {}) {
    store.add_instance({InstanceId(n), tenant, scope, std::move(lends), std::move(uses)});
    store.add_holder(HolderId(n), InstanceId(n));
    return HolderId(n);
  }
  ModelActions open(HolderId holder, const std::string& id, std::uint64_t bytes,
                    std::optional<ModelDigest> content = std::nullopt, bool wait = true) {
    ModelActions out;
    store.open(tick(), holder, {.number = ++number, .id = id, .bytes = bytes, .digest = content, .wait = wait}, out);
    return out;
  }
  // Opens, is made, sealed and hashed.
  TensorId put(HolderId holder, const std::string& id, std::uint64_t bytes, std::uint8_t content) {
    const ModelActions actions = open(holder, id, bytes);
    const auto* create = actions.empty() ? nullptr : std::get_if<CreateTensor>(&actions.back());
    EXPECT_NE(create, nullptr);
    if (create == nullptr) return TensorId(0);
    ModelActions out;
    store.created(create->tensor, std::nullopt, out);
    store.seal(holder, ++number, create->tensor, out);
    out.clear();
    store.hashed(tick(), create->tensor, digest(content), out);
    return std::get<GiveTensor>(out.front()).tensor;
  }
  ModelActions gone(std::uint64_t n) {
    ModelActions out;
    store.holder_gone(tick(), HolderId(n), out);
    store.instance_gone(tick(), InstanceId(n), out);
    return out;
  }
  Instant tick() { return now += std::chrono::seconds(1); }

  template <typename T>
  static const T* find(const ModelActions& actions) {
    for (const ModelAction& action : actions) {
      if (const T* found = std::get_if<T>(&action)) return found;
    }
    return nullptr;
  }
  static ModelRefusal why(const ModelActions& actions) {
    const RefuseModel* const refused = find<RefuseModel>(actions);
    EXPECT_NE(refused, nullptr);
    return refused != nullptr ? refused->why : ModelRefusal::kAgain;
  }

  ModelStore store;
  Instant now{};
  std::uint64_t number = 0;
};

TEST_F(ModelStoreTest, ThreeInstancesShareOneCopy) {
  const HolderId a = start(1), b = start(2), c = start(3);
  const ModelActions first = open(a, "vit", 20 * kMiB);
  const TensorId tensor = std::get<CreateTensor>(first.at(0)).tensor;
  EXPECT_TRUE(open(b, "vit", 20 * kMiB).empty());  // waits
  EXPECT_EQ(why(open(c, "vit", 20 * kMiB, std::nullopt, false)), ModelRefusal::kPending);
  ModelActions out;
  store.created(tensor, std::nullopt, out);
  EXPECT_TRUE(std::get<GiveTensor>(out.at(0)).to_fill);
  EXPECT_TRUE(store.may_map(a, tensor));
  EXPECT_FALSE(store.may_map(b, tensor));  // nothing unsealed is read
  out.clear();
  store.seal(a, ++number, tensor, out);
  EXPECT_EQ(std::get<HashTensor>(out.at(0)).tensor, tensor);
  EXPECT_FALSE(store.may_map(a, tensor));
  out.clear();
  store.hashed(tick(), tensor, digest(1), out);
  ASSERT_EQ(out.size(), 2U);  // the filler, and who waited
  EXPECT_FALSE(std::get<GiveTensor>(out[0]).to_fill);
  EXPECT_EQ(std::get<GiveTensor>(out[1]).holder, b);
  EXPECT_NE(find<GiveTensor>(open(c, "vit", 0)), nullptr);
  EXPECT_EQ(store.use().bytes, 20 * kMiB);
  EXPECT_EQ(store.use().saved, 40 * kMiB);
}

TEST_F(ModelStoreTest, EqualContentOfATenantIsOneCopy) {
  const HolderId a = start(1, "t", "f"), b = start(2, "t", "g");
  const TensorId first = put(a, "x", 10 * kMiB, 7);
  EXPECT_EQ(put(b, "y", 10 * kMiB, 7), first);  // found when it was hashed
  const HolderId c = start(3, "t", "h");
  const ModelActions by_digest = open(c, "z", 10 * kMiB, digest(7));  // found before it was filled
  EXPECT_EQ(std::get<GiveTensor>(by_digest.at(0)).tensor, first);
  EXPECT_EQ(store.use().by_content, 2U);
  EXPECT_EQ(store.use().bytes - store.use().lingering, 10 * kMiB);
}

TEST_F(ModelStoreTest, AnotherTenantThatGuessesADigestLearnsNothing) {
  put(start(1, "t", "f"), "x", 10 * kMiB, 7);
  const HolderId spy = start(2, "spy", "s", {}, {"t"});
  const ModelActions guessed = open(spy, "x", 0, digest(7)), wrong = open(spy, "x", 0, digest(8));
  EXPECT_EQ(find<RefuseModel>(guessed)->message, find<RefuseModel>(wrong)->message);
  EXPECT_EQ(why(guessed), ModelRefusal::kAbsent);
}

TEST_F(ModelStoreTest, TenantsShareWhereBothAgree) {
  const TensorId base = put(start(1, "t", "f", {"u"}), "x", 10 * kMiB, 7);
  const TensorId for_all = put(start(2, "t", "g", {"@all"}), "y", 4 * kMiB, 9);
  const auto asks = [&](HolderId holder, std::uint8_t content) {
    const ModelActions actions = open(holder, "m" + std::to_string(content), 0, digest(content));
    const GiveTensor* const given = find<GiveTensor>(actions);
    return given != nullptr ? given->tensor : TensorId(0);
  };
  EXPECT_EQ(asks(start(3, "u", "a", {}, {"t"}), 7), base);
  EXPECT_EQ(asks(start(4, "u", "b"), 7), TensorId(0));             // it did not ask for t's
  EXPECT_EQ(asks(start(5, "v", "c", {}, {"t"}), 7), TensorId(0));  // t did not lend to it
  EXPECT_EQ(asks(start(6, "v", "d", {}, {"t"}), 9), for_all);
  EXPECT_EQ(store.use().by_tenant, (std::map<std::string, std::uint64_t>{{"t", 14 * kMiB}}));  // the owner's budget
}

TEST_F(ModelStoreTest, ConsentThatWasTakenBackEndsWithTheNextOpen) {
  put(start(1, "t", "f", {"u"}), "x", 10 * kMiB, 7);
  EXPECT_NE(find<GiveTensor>(open(start(2, "u", "a", {}, {"t"}), "m", 0, digest(7))), nullptr);
  EXPECT_EQ(why(open(start(3, "u", "a"), "m", 0)), ModelRefusal::kAbsent);  // the same version, without the tag
}

TEST_F(ModelStoreTest, SizesThatMakeNoSenseAreRefused) {
  const HolderId a = start(1);
  for (const std::uint64_t bytes : {std::uint64_t{1} << 63, ~std::uint64_t{0}, (std::uint64_t{1} << 62) + 1}) {
    EXPECT_EQ(why(open(a, "x", bytes)), ModelRefusal::kRefused) << bytes;
  }
  EXPECT_EQ(why(open(a, "x", std::uint64_t{1} << 62)), ModelRefusal::kNoRoom);
  EXPECT_EQ(why(open(a, "x", 0)), ModelRefusal::kAbsent);
  EXPECT_EQ(why(open(a, "", 1)), ModelRefusal::kRefused);
  EXPECT_EQ(why(open(a, "a\nb", 1)), ModelRefusal::kRefused);
  EXPECT_EQ(why(open(a, std::string(256, 'x'), 1)), ModelRefusal::kRefused);
  EXPECT_EQ(store.use().bytes, 0U);
}

TEST_F(ModelStoreTest, AFloodStopsAtTheBudgetOfItsTenant) {
  const HolderId a = start(1, "flood");
  std::size_t made = 0;
  for (int i = 0; i < 10'000; ++i) {
    const ModelActions out = open(a, "x" + std::to_string(i), 20 * kMiB);
    made += find<CreateTensor>(out) != nullptr ? 1 : 0;
    if (const RefuseModel* refused = find<RefuseModel>(out)) {
      EXPECT_THAT(refused->message, HasSubstr("--model-quota"));
    }
  }
  EXPECT_EQ(made, 3U);
  EXPECT_NE(find<CreateTensor>(open(start(2, "other", "o"), "x", 40 * kMiB)), nullptr);
}

TEST_F(ModelStoreTest, SmallOnesStopAtACount) {
  const HolderId a = start(1);
  for (int i = 0; i < 6; ++i) EXPECT_NE(find<CreateTensor>(open(a, "x" + std::to_string(i), 1)), nullptr);
  const ModelActions out = open(a, "one more", 1);
  EXPECT_EQ(why(out), ModelRefusal::kNoRoom);
  EXPECT_THAT(find<RefuseModel>(out)->message, HasSubstr("at most 6"));
}

TEST_F(ModelStoreTest, ClosingDoesNotPayTheBudgetBackWhileTheMappingMayLive) {
  const HolderId a = start(1);
  const TensorId tensor = put(a, "x", 50 * kMiB, 1);
  ModelActions out;
  store.close(tick(), a, tensor, out);
  EXPECT_EQ(store.evict(kMiB, out), 50 * kMiB);
  EXPECT_EQ(store.use().lingering, 50 * kMiB);
  EXPECT_EQ(why(open(a, "y", 50 * kMiB)), ModelRefusal::kNoRoom);
  gone(1);
  EXPECT_EQ(store.use().bytes, 0U);
  EXPECT_NE(find<CreateTensor>(open(start(2), "y", 50 * kMiB)), nullptr);
}

TEST_F(ModelStoreTest, UnusedOnesMakeRoomTheLongestUnusedFirst) {
  const TensorId old = put(start(1, "t", "f"), "x", 40 * kMiB, 1);
  const TensorId young = put(start(2, "u", "g"), "y", 40 * kMiB, 2);
  gone(1);
  gone(2);
  EXPECT_EQ(store.use().unused, 80 * kMiB);
  const ModelActions out = open(start(3, "v", "h"), "z", 30 * kMiB);
  EXPECT_EQ(find<DropTensor>(out)->tensor, old);
  EXPECT_EQ(store.state(young), State::kSealed);
}

TEST_F(ModelStoreTest, WhoIsRefusedHasCostNobodyAnything) {
  const TensorId idle = put(start(1, "t", "f"), "x", 40 * kMiB, 1);
  gone(1);
  put(start(2, "u", "g"), "y", 55 * kMiB, 2);
  EXPECT_EQ(why(open(start(3, "v", "h"), "z", 60 * kMiB)), ModelRefusal::kNoRoom);  // even without x it would not fit
  EXPECT_EQ(store.state(idle), State::kSealed);
}

TEST_F(ModelStoreTest, WhoDiesWhileFillingLeavesNothing) {
  const HolderId a = start(1), b = start(2);
  const TensorId tensor = std::get<CreateTensor>(open(a, "x", kMiB).at(0)).tensor;
  ModelActions out;
  store.created(tensor, std::nullopt, out);
  EXPECT_TRUE(open(b, "x", kMiB).empty());
  out.clear();
  store.holder_gone(tick(), a, out);
  EXPECT_EQ(why(out), ModelRefusal::kAgain);  // who waited opens it again
  EXPECT_NE(find<DropTensor>(out), nullptr);
  store.instance_gone(tick(), InstanceId(1), out);
  EXPECT_EQ(store.use().bytes, 0U);
  EXPECT_NE(find<CreateTensor>(open(b, "x", kMiB)), nullptr);
}

TEST_F(ModelStoreTest, WhoDiesBeforeTheServerAnswersLeavesNothing) {
  for (const bool hashing : {false, true}) {
    const HolderId a = start(hashing ? 2 : 1);
    const TensorId tensor = std::get<CreateTensor>(open(a, "x", kMiB).at(0)).tensor;
    ModelActions out;
    if (hashing) {
      store.created(tensor, std::nullopt, out);
      store.seal(a, ++number, tensor, out);
    }
    gone(hashing ? 2 : 1);
    out.clear();
    hashing ? void(store.hashed(tick(), tensor, digest(1), out)) : store.created(tensor, std::nullopt, out);
    ASSERT_EQ(out.size(), 1U);
    EXPECT_EQ(std::get<DropTensor>(out[0]).tensor, tensor);
    EXPECT_EQ(store.use().bytes, 0U);
  }
}

TEST_F(ModelStoreTest, ForeignNumbersAreAnsweredAsThoseThatNeverWere) {
  const HolderId a = start(1), b = start(2, "u", "g");
  const TensorId tensor = std::get<CreateTensor>(open(a, "x", kMiB).at(0)).tensor;
  ModelActions out;
  store.created(tensor, std::nullopt, out);
  for (const TensorId one : {tensor, TensorId(77)}) {
    out.clear();
    store.seal(b, 1, one, out);
    EXPECT_EQ(why(out), ModelRefusal::kRefused);
    out.clear();
    store.close(tick(), b, one, out);
    EXPECT_TRUE(out.empty());
  }
  EXPECT_EQ(store.state(tensor), State::kFilling);
}

TEST_F(ModelStoreTest, TheLastVersionThatNamesItTakesItAlong) {
  const TensorId tensor = put(start(1, "t", "f:1"), "x", kMiB, 1);
  EXPECT_EQ(put(start(2, "t", "f:2"), "x", kMiB, 1), tensor);
  gone(1);
  gone(2);
  ModelActions out;
  store.scope_gone("f:1", out);
  EXPECT_EQ(find<DropTensor>(out), nullptr);
  store.scope_gone("f:2", out);
  EXPECT_EQ(find<DropTensor>(out)->tensor, tensor);
  EXPECT_EQ(store.use().bytes, 0U);
}

TEST_F(ModelStoreTest, AVersionThatIsGoneKeepsWhatRunsAndStoresNothing) {
  const HolderId a = start(1, "t", "f:1");
  const TensorId tensor = put(a, "x", kMiB, 1);
  ModelActions out;
  store.scope_gone("f:1", out);
  EXPECT_EQ(store.state(tensor), State::kSealed);
  EXPECT_EQ(why(open(a, "y", kMiB)), ModelRefusal::kRefused);
  gone(1);
  EXPECT_EQ(store.use().bytes, 0U);
  EXPECT_NE(find<CreateTensor>(open(start(2, "t", "f:1"), "y", kMiB)), nullptr);  // deployed again
}

// What is taken back counts for tensors that are there already, from the next open on.
TEST_F(ModelStoreTest, ConsentTakenBackCountsAtOnceAndWhoHasItKeepsIt) {
  put(start(1, "t", "f", {"u"}), "x", kMiB, 1);
  const HolderId taker = start(2, "u", "g", {}, {"t"});
  const auto given = open(taker, "base", kMiB, digest(1));
  ASSERT_NE(find<GiveTensor>(given), nullptr);
  const TensorId tensor = find<GiveTensor>(given)->tensor;
  store.consent_changed("f", {}, {});
  EXPECT_TRUE(store.may_map(taker, tensor)) << "it is mapped already";
  const HolderId next = start(3, "u", "g", {}, {"t"});
  EXPECT_EQ(why(open(next, "base", 0)), ModelRefusal::kAbsent) << "by name";
  EXPECT_NE(find<CreateTensor>(open(next, "base", kMiB, digest(1))), nullptr) << "by content: it stores its own";
  store.consent_changed("f", {"@all"}, {});
  EXPECT_EQ(find<GiveTensor>(open(start(4, "u", "h", {}, {"t"}), "y", kMiB, digest(1)))->tensor, tensor);
  store.consent_changed("h", {}, {});
  EXPECT_NE(find<CreateTensor>(open(start(5, "u", "k", {}, {}), "y", kMiB, digest(1))), nullptr) << "it does not take";
}

TEST_F(ModelStoreTest, ConsentEndsWithTheVersionThatGaveIt) {
  put(start(1, "t", "f", {"@all"}), "x", kMiB, 1);
  ASSERT_NE(find<GiveTensor>(open(start(2, "u", "g", {}, {"t"}), "base", kMiB, digest(1))), nullptr);
  ModelActions out;
  store.scope_gone("f", out);
  EXPECT_NE(find<CreateTensor>(open(start(3, "u", "h", {}, {"t"}), "base", kMiB, digest(1))), nullptr);
}

// A version that is deployed again while an instance of before still runs.
TEST_F(ModelStoreTest, WhoWasThereWhenItsVersionWentStoresNothingThoughItIsDeployedAgain) {
  const HolderId old = start(1, "t", "f:1");
  ModelActions out;
  store.scope_gone("f:1", out);
  const HolderId fresh = start(2, "t", "f:1");
  EXPECT_NE(find<CreateTensor>(open(fresh, "x", kMiB)), nullptr);
  EXPECT_EQ(why(open(old, "y", kMiB)), ModelRefusal::kRefused);
}

TEST(ModelStoreBounds, ATenantHasSoManyTensorsAtTheServerAndSoManyNames) {
  ModelStore store({.memory = 100 * kMiB, .tenant_memory = 60 * kMiB, .tenant_at_server = 2, .scope_names = 3});
  store.add_instance({InstanceId(1), "t", "f", {}, {}});
  store.add_instance({InstanceId(2), "u", "g", {}, {}});
  store.add_holder(HolderId(1), InstanceId(1));
  store.add_holder(HolderId(2), InstanceId(2));
  const auto open = [&](std::uint64_t holder, const std::string& id,
                        std::optional<ModelDigest> content = std::nullopt) {
    ModelActions out;
    store.open(Instant(), HolderId(holder), {.number = 1, .id = id, .bytes = kMiB, .digest = content, .wait = true},
               out);
    return out;
  };
  const TensorId first = std::get<CreateTensor>(open(1, "a").at(0)).tensor;
  EXPECT_EQ(std::get<CreateTensor>(open(1, "b").at(0)).tenant, "t");
  const auto third = std::get<RefuseModel>(open(1, "c").at(0));
  EXPECT_EQ(third.why, ModelRefusal::kUnavailable);
  EXPECT_NE(third.message.find("2 tensors of tenant t are being made or hashed, 2 may be"), std::string::npos)
      << third.message;
  EXPECT_TRUE(std::holds_alternative<CreateTensor>(open(2, "c").at(0))) << "another tenant's";
  ModelActions out;
  store.created(first, std::nullopt, out);
  store.seal(HolderId(1), 1, first, out);
  store.hashed(Instant(), first, digest(1), out);
  for (const char* const id : {"d", "e", "g", "h"}) {
    EXPECT_TRUE(std::holds_alternative<GiveTensor>(open(1, id, digest(1)).at(0))) << id;
  }
  const auto by_name = [&](const std::string& id) {
    ModelActions got;
    store.open(Instant(), HolderId(1), {.number = 1, .id = id, .bytes = 0}, got);
    return std::holds_alternative<GiveTensor>(got.at(0));
  };
  EXPECT_TRUE(by_name("d"));
  EXPECT_FALSE(by_name("h")) << "a, b and d are its three names";
}

TEST_F(ModelStoreTest, AnIdKeepsItsContentAndSize) {
  const HolderId a = start(1), b = start(2);
  put(a, "x", kMiB, 1);
  EXPECT_EQ(why(open(b, "x", 2 * kMiB)), ModelRefusal::kRefused);
  EXPECT_EQ(why(open(b, "x", kMiB, digest(2))), ModelRefusal::kRefused);
  EXPECT_NE(find<GiveTensor>(open(b, "x", kMiB, digest(1))), nullptr);
}

TEST_F(ModelStoreTest, AServerThatEndsIsToldToAllWhoWait) {
  const HolderId a = start(1), b = start(2);
  put(a, "sealed", kMiB, 1);
  const TensorId tensor = std::get<CreateTensor>(open(a, "x", kMiB).at(0)).tensor;
  EXPECT_TRUE(open(b, "x", kMiB).empty());
  ModelActions out;
  store.server_lost("it ended", out);
  std::size_t told = 0;
  for (const ModelAction& action : out) told += std::holds_alternative<RefuseModel>(action) ? 1 : 0;
  EXPECT_EQ(told, 2U);
  EXPECT_EQ(store.use().tensors, 0U);
  EXPECT_EQ(store.use().lingering, 2 * kMiB);  // still mapped by a, until it ends
  EXPECT_NE(find<CreateTensor>(open(b, "sealed", kMiB)), nullptr);
  EXPECT_FALSE(store.may_map(a, tensor));
}

TEST_F(ModelStoreTest, WhatWasWrittenToIsNotGivenOutAgain) {
  for (const bool spoiled : {false, true}) {
    const std::uint64_t first = spoiled ? 10 : 1;
    const TensorId tensor = put(start(first), "x", kMiB, 1);
    ModelActions left = gone(first);
    ASSERT_EQ(find<HashTensor>(left)->tensor, tensor);
    const HolderId next = start(first + 1);
    EXPECT_TRUE(open(next, "x", kMiB).empty());  // waits for the check
    ModelActions out;
    store.hashed(tick(), tensor, digest(spoiled ? 2 : 1), out);
    EXPECT_EQ(find<GiveTensor>(out) == nullptr, spoiled);
    if (spoiled) {
      EXPECT_EQ(why(out), ModelRefusal::kAgain);
    }
    EXPECT_EQ(store.use().spoiled, spoiled ? 1U : 0U);
    gone(first + 1);
    ModelActions scope;
    store.scope_gone("f", scope);
    EXPECT_EQ(store.use().bytes, 0U);
  }
}

TEST_F(ModelStoreTest, NobodyWaitsForItself) {
  const HolderId a = start(1);
  open(a, "x", kMiB);
  EXPECT_EQ(why(open(a, "x", kMiB)), ModelRefusal::kRefused);
}

}  // namespace
}  // namespace fairlead
