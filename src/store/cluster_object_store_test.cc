#include "store/cluster_object_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "store/test_folder.h"

namespace fairlead {
namespace {

using ::testing::ElementsAre;

const ObjectName kX{"default", "x"};

// Another node, which answers when the test says so.
class FakeElsewhere final : public ObjectsElsewhere {
 public:
  void find(const ObjectName& name, ObjectStore::Callback<ObjectInfo> done) override {
    asked.push_back("find " + name.key);
    found = std::move(done);
  }
  void fetch(const ObjectName& name, Duration how_long, std::function<void(Status)> done) override {
    asked.push_back("fetch " + name.key);
    patience = how_long;
    fetched = std::move(done);
  }
  void remove(const ObjectName& name, std::function<void(Status)> done) override {
    asked.push_back("remove " + name.key);
    removed = std::move(done);
  }

  std::vector<std::string> asked;
  Duration patience{0};
  ObjectStore::Callback<ObjectInfo> found;
  std::function<void(Status)> fetched, removed;
};

// What is called may ask again, and so replace what is called.
template <typename F, typename... Arguments>
void call(F& callback, Arguments&&... arguments) {
  const auto held = callback;
  held(std::forward<Arguments>(arguments)...);
}

class ClusterObjectStoreTest : public ::testing::Test {
 protected:
  ClusterObjectStoreTest() { store_.set_elsewhere(&elsewhere_); }

  void put(const std::string& key, const std::string& bytes) {
    bool is_done = false;
    store_.here().put({"default", key}, bytes, std::nullopt, [&](const Result<ObjectInfo>& info) {
      EXPECT_TRUE(info);
      is_done = true;
    });
    turn_until(is_done);
  }
  // "the bytes", or the error's.
  void open(std::string& into) {
    store_.open_object(kX, Duration(0), [&into](const Result<OpenObject>& object) {
      if (!object) return void(into = object.error().message);
      into.resize(static_cast<std::size_t>(object->info.bytes.count()));
      EXPECT_EQ(::pread(object->memory.get(), into.data(), into.size(), 0), std::ssize(into));
    });
  }
  template <typename T>
  void turn_until(const T& done) {
    for (int i = 0; i < 20'000; ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        if (done) return;
      } else if (!done.empty()) {
        return;
      }
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "nothing came";
  }

  boost::asio::io_context io_;
  store::TestFolder folder_;
  FakeElsewhere elsewhere_;
  ClusterObjectStore store_{
      ObjectStore::open(io_, {.memory_dir = folder_ / "memory", .spill_dir = folder_ / "spill"}).value()};
};

TEST_F(ClusterObjectStoreTest, WhatIsHereIsAskedOfNobody) {
  put("x", "abc");
  std::string bytes;
  open(bytes);
  turn_until(bytes);
  EXPECT_EQ(bytes, "abc");
  std::optional<ObjectInfo> info;
  bool is_done = false;
  store_.locate(kX, [&](const Result<ObjectInfo>& found) {
    EXPECT_EQ(found->node, "");
    is_done = true;
  });
  turn_until(is_done);
  EXPECT_THAT(elsewhere_.asked, ElementsAre());
}

TEST_F(ClusterObjectStoreTest, WhatIsNotIsFetchedOnceForAllReaders) {
  std::string first, second;
  open(first);
  open(second);
  EXPECT_THAT(elsewhere_.asked, ElementsAre("fetch x"));
  put("x", "abc");
  call(elsewhere_.fetched, Status());
  turn_until(second);
  EXPECT_EQ(first + second, "abcabc");
}

TEST_F(ClusterObjectStoreTest, WhatNobodyHasIsAskedForAgain) {
  std::string bytes;
  open(bytes);
  call(elsewhere_.fetched, fail(Errc::kNotFound, "nobody has it"));
  EXPECT_EQ(bytes, "nobody has it");
  open(bytes);
  EXPECT_THAT(elsewhere_.asked, ElementsAre("fetch x", "fetch x"));
}

TEST_F(ClusterObjectStoreTest, WhatIsWrittenHereMeanwhileCounts) {
  std::string bytes;
  open(bytes);
  put("x", "abc");
  call(elsewhere_.fetched, fail(Errc::kUnavailable, "the other node ended"));
  turn_until(bytes);
  EXPECT_EQ(bytes, "abc");
}

// Whoever joins waits for as long as he said, and not as whoever came first.
TEST_F(ClusterObjectStoreTest, EachReaderHasHisOwnPatience) {
  std::string impatient, patient;
  open(impatient);
  store_.open_object(kX, std::chrono::hours(1),
                     [&](const Result<OpenObject>& object) { patient = object ? "it came" : object.error().message; });
  call(elsewhere_.fetched, fail(Errc::kDeadlineExceeded, "it is being written"));
  EXPECT_EQ(impatient, "it is being written");
  EXPECT_EQ(patient, "");
  EXPECT_THAT(elsewhere_.asked, ElementsAre("fetch x", "fetch x"));
  EXPECT_EQ(elsewhere_.patience, kFetchSlice);
  call(elsewhere_.fetched, fail(Errc::kDeadlineExceeded, "it is being written"));
  put("x", "abc");
  call(elsewhere_.fetched, Status());
  turn_until(patient);
  EXPECT_EQ(patient, "it came");
}

TEST_F(ClusterObjectStoreTest, WhoWaitsForAnObjectHearsOfACopy) {
  bool is_there = false;
  store_.watch(kX, [&](const Status& status) { is_there = status.has_value(); });
  EXPECT_THAT(elsewhere_.asked, ElementsAre("fetch x"));
  put("x", "abc");
  call(elsewhere_.fetched, Status());
  turn_until(is_there);
}

TEST_F(ClusterObjectStoreTest, WhatHasFailedHereSaysWhyWhereNobodyElseHasIt) {
  ASSERT_TRUE(store_.expect(kX, Bytes(3)));
  store_.abandon(kX, {Errc::kUnavailable, "its writer ended"});
  std::optional<ObjectInfo> info;
  store_.locate(kX, [&](const Result<ObjectInfo>& found) { info = found.value(); });
  call(elsewhere_.found, Result<ObjectInfo>(fail(Errc::kNotFound, "nobody has it")));
  bool is_done = false;
  store_.here().locate({"default", "y"}, [&](const Result<ObjectInfo>&) { is_done = true; });  // behind the other one
  turn_until(is_done);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->state, ObjectState::kFailed);
}

TEST_F(ClusterObjectStoreTest, DeletingIsForAllNodes) {
  put("x", "abc");
  std::vector<bool> removed;
  const auto remove = [&] {
    store_.remove_everywhere(kX, [&](const Status& status) { removed.push_back(status.has_value()); });
  };
  remove();
  call(elsewhere_.removed, fail(Errc::kNotFound, "nobody else had it"));
  EXPECT_FALSE(store_.info(kX));
  remove();
  call(elsewhere_.removed, Status());
  remove();
  call(elsewhere_.removed, fail(Errc::kNotFound, "nobody had it"));
  put("x", "abc");
  remove();
  call(elsewhere_.removed, fail(Errc::kUnavailable, "another node did not answer, and may have it"));
  EXPECT_THAT(removed, ElementsAre(true, true, false, false));
}

TEST_F(ClusterObjectStoreTest, WhatIsNoNameIsAskedOfNobody) {
  bool is_done = false;
  store_.locate({"default", std::string(3'000, 'k')}, [&](const Result<ObjectInfo>& found) {
    EXPECT_EQ(found.error().code, Errc::kNotFound);
    is_done = true;
  });
  turn_until(is_done);
  EXPECT_THAT(elsewhere_.asked, ElementsAre());
}

TEST_F(ClusterObjectStoreTest, ANodeAloneAsksNobody) {
  store_.set_elsewhere(nullptr);
  std::string bytes;
  open(bytes);
  turn_until(bytes);
  EXPECT_EQ(bytes, "there is no object 'x' of tenant 'default'");
}

}  // namespace
}  // namespace fairlead
