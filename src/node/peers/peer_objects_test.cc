// Nodes of a cluster in one process, each with a store of its own, on one event loop.
#include "node/peers/peer_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "edge/error_document.h"
#include "edge/router.h"
#include "edge/testing/fake_node.h"
#include "node/peers/cluster_node.h"
#include "node/peers/peers_edge.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const ObjectName kX{"t", "x"};

struct Place {
  Place(boost::asio::io_context& io, std::string called) : name(std::move(called)) {
    store = std::make_unique<ClusterObjectStore>(
        ObjectStore::open(io, {.memory_dir = folder / "memory", .spill_dir = folder / "spill"}).value());
    server = std::make_unique<net::HttpServer>(io, net::HttpLimits{}, [this](net::HttpExchange exchange) {
      if (dies_after && --*dies_after < 0) return;  // its connections end without an answer
      router.dispatch(std::move(exchange));
    });
    address = "http://" + server->listen("127.0.0.1:0").value();
  }
  void join(boost::asio::io_context& io, const std::vector<std::string>& others) {
    ClusterOptions options{
        .state_dir = folder / "", .peers = {.name = name, .key = std::string(32, 'k')}, .objects = store.get()};
    for (const std::string& other : others) options.peers.peers.push_back(net::parse_endpoint(other).value());
    cluster = ClusterNode::create(io, node, std::move(options)).value();
    ASSERT_TRUE(router.add(peers_edge(*cluster)));
    cluster->start();
  }

  std::string name, address;
  store::TestFolder folder;
  FakeNode node;
  std::unique_ptr<ClusterObjectStore> store;
  Router router{document_errors()};
  std::optional<int> dies_after;  // requests
  std::unique_ptr<ClusterNode> cluster;
  std::unique_ptr<net::HttpServer> server;
};

class PeerObjectsTest : public testing::Test {
 protected:
  PeerObjectsTest() {
    for (Place* place : {&a_, &b_, &c_}) place->join(io_, {a_.address, b_.address, c_.address});
    until([&] {
      return std::ranges::all_of(std::vector{&a_, &b_, &c_}, [](Place* place) {
        return place->cluster->peers().others(PeerLife::kAlive).size() == 2;
      });
    });
  }

  template <typename Condition>
  void until(Condition condition) {
    const Instant end = monotonic_now() + 60s;
    while (!condition()) {
      ASSERT_LT(monotonic_now(), end) << "not so within a minute";
      io_.restart();
      io_.run_one_for(10ms);
    }
  }
  void put(Place& at, const std::string& bytes) {
    bool is_done = false;
    at.store->put(kX, bytes, std::nullopt, [&](const Result<ObjectInfo>& info) { is_done = info.has_value(); });
    until([&] { return is_done; });
  }
  Result<std::string> open(Place& at, Duration patience = {}) {
    std::optional<Result<std::string>> bytes;
    at.store->open_object(kX, patience, [&](const Result<OpenObject>& object) {
      if (!object) return void(bytes = fail(object.error()));
      std::string text(static_cast<std::size_t>(object->info.bytes.count()), '\0');
      EXPECT_EQ(::pread(object->memory.get(), text.data(), text.size(), 0), std::ssize(text));
      bytes = std::move(text);
    });
    until([&] { return bytes.has_value(); });
    return *std::move(bytes);
  }
  static std::string large() {
    std::string bytes;
    for (int i = 0; bytes.size() < (3 << 20) + 17; ++i) bytes += std::to_string(i);
    return bytes;
  }

  boost::asio::io_context io_{1};
  Place a_{io_, "a"}, b_{io_, "b"}, c_{io_, "c"};
};

TEST_F(PeerObjectsTest, AnObjectOfOneNodeIsReadAtAnother) {
  const std::string bytes = large();
  put(b_, bytes);
  const auto read = open(a_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, bytes);
  const auto copy = a_.store->info(kX);
  ASSERT_TRUE(copy) << "it stays";
  EXPECT_EQ(copy->content, b_.store->info(kX)->content);
  EXPECT_TRUE(copy->expires_ms);
  EXPECT_EQ(a_.cluster->brought().objects->counters().copies, 1u);
  EXPECT_EQ(a_.cluster->brought().objects->counters().bytes, bytes.size());
  EXPECT_EQ(*open(a_), bytes);
  EXPECT_EQ(a_.cluster->brought().objects->counters().copies, 1u) << "not again";
}

TEST_F(PeerObjectsTest, OneWithoutBytesIsOne) {
  put(b_, "");
  EXPECT_EQ(*open(a_), "");
}

TEST_F(PeerObjectsTest, WhatNobodyHasIsNotFound) {
  const auto read = open(a_);
  EXPECT_EQ(read.error().code, Errc::kNotFound);
  EXPECT_THAT(read.error().message, HasSubstr("nor on the 2 others that answered"));
  put(b_, "late");
  EXPECT_EQ(*open(a_), "late");
}

TEST_F(PeerObjectsTest, AnObjectThatIsBeingWrittenIsWaitedFor) {
  UniqueFd memory;
  b_.store->create(kX, Bytes(4), std::nullopt, [&](Result<UniqueFd> made) { memory = *std::move(made); });
  until([&] { return memory.get() >= 0; });
  EXPECT_EQ(open(a_, 10ms).error().code, Errc::kDeadlineExceeded);
  std::optional<std::string> bytes;
  a_.store->open_object(kX, 60s, [&](const Result<OpenObject>& object) {
    bytes = object ? std::string("it came") : object.error().message;
  });
  ASSERT_EQ(::pwrite(memory.get(), "abcd", 4, 0), 4);
  memory = UniqueFd();
  b_.store->seal(kX, [](const Result<ObjectInfo>& sealed) { EXPECT_TRUE(sealed); });
  until([&] { return bytes.has_value(); });
  EXPECT_EQ(*bytes, "it came");
}

// Who waits holds nobody else's turn, however many and however long.
TEST_F(PeerObjectsTest, OthersAreServedWhileManyWait) {
  std::size_t made = 0, ended = 0;
  const std::size_t count = 3 * PeerObjects::kAtATime;
  const auto pending = [](std::size_t i) { return ObjectName{"waits", std::to_string(i)}; };
  for (std::size_t i = 0; i < count; ++i) {
    b_.store->create(pending(i), Bytes(1), std::nullopt, [&](const Result<UniqueFd>&) { ++made; });
  }
  until([&] { return made == count; });
  for (std::size_t i = 0; i < count; ++i) {
    a_.store->open_object(pending(i), 900s, [&](const Result<OpenObject>&) { ++ended; });
  }
  put(b_, "abc");
  EXPECT_EQ(*open(a_), "abc");
  EXPECT_EQ(ended, 0u);
  for (std::size_t i = 0; i < count; ++i) b_.store->abandon(pending(i), {Errc::kUnavailable, "its writer ended"});
  until([&] { return ended == count; });
}

TEST_F(PeerObjectsTest, WhereOneNodeEndsAnotherGoesOn) {
  const std::string bytes = large();
  put(b_, bytes);
  ASSERT_EQ(*open(c_), bytes);
  b_.dies_after = 3;  // the question, the opening, a part
  c_.dies_after = std::nullopt;
  const auto read = open(a_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, bytes);
}

TEST_F(PeerObjectsTest, ACopyThatDoesNotComeLeavesNothing) {
  put(b_, large());
  b_.dies_after = 3;
  const auto read = open(a_);
  ASSERT_FALSE(read);
  EXPECT_FALSE(a_.store->info(kX).has_value() && a_.store->info(kX)->state == ObjectState::kSealed);
  EXPECT_EQ(a_.cluster->brought().objects->counters().failed, 1u);
  b_.dies_after = std::nullopt;
  until([&] { return a_.cluster->peers().others(PeerLife::kAlive).size() == 2; });
  const auto later = open(a_);
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_EQ(*later, large());
}

TEST_F(PeerObjectsTest, ItIsFoundAndDeletedWhereverItIs) {
  put(b_, "abc");
  std::optional<Result<ObjectInfo>> info;
  a_.store->locate(kX, [&](Result<ObjectInfo> found) { info = std::move(found); });
  until([&] { return info.has_value(); });
  ASSERT_TRUE(*info);
  EXPECT_EQ((*info)->node, "b");
  EXPECT_EQ((*info)->bytes, Bytes(3));
  EXPECT_FALSE(a_.store->info(kX)) << "asking brings nothing";
  ASSERT_TRUE(open(c_));
  std::optional<Status> removed;
  a_.store->remove_everywhere(kX, [&](const Status& status) { removed = status; });
  until([&] { return removed.has_value(); });
  EXPECT_TRUE(*removed);
  EXPECT_FALSE(b_.store->info(kX) || c_.store->info(kX));
  removed.reset();
  a_.store->remove_everywhere(kX, [&](const Status& status) { removed = status; });
  until([&] { return removed.has_value(); });
  EXPECT_EQ(removed->error().code, Errc::kNotFound);
}

TEST_F(PeerObjectsTest, ACopyEndsWithItsObject) {
  bool is_done = false;
  b_.store->put(kX, "abc", 30min, [&](const Result<ObjectInfo>& info) { is_done = info.has_value(); });
  until([&] { return is_done; });
  ASSERT_TRUE(open(a_));
  b_.dies_after = 0;  // c has a copy of a copy
  ASSERT_TRUE(open(c_));
  const auto end = b_.store->info(kX)->expires_ms;
  EXPECT_NEAR(static_cast<double>(*a_.store->info(kX)->expires_ms - *end), 0, 5'000);
  EXPECT_NEAR(static_cast<double>(*c_.store->info(kX)->expires_ms - *end), 0, 5'000);
}

// Whoever deletes a copy under way, and writes another object of that name, has his own.
TEST_F(PeerObjectsTest, ACopyThatFailsLeavesWhatWasWrittenSince) {
  put(b_, large());
  std::optional<bool> is_read;
  a_.store->open_object(kX, {}, [&](const Result<OpenObject>& object) { is_read = object.has_value(); });
  until([&] { return a_.cluster->brought().objects->counters().bytes > 0; });
  ASSERT_TRUE(a_.store->remove(kX));
  ASSERT_TRUE(b_.store->here().remove(kX));
  UniqueFd memory;
  a_.store->create(kX, Bytes(3), std::nullopt, [&](Result<UniqueFd> made) { memory = *std::move(made); });
  until([&] { return memory.get() >= 0 && a_.cluster->brought().objects->counters().failed == 1; });
  ASSERT_EQ(::pwrite(memory.get(), "own", 3, 0), 3);
  memory = UniqueFd();
  bool is_sealed = false;
  a_.store->seal(kX, [&](const Result<ObjectInfo>& sealed) { is_sealed = sealed.has_value(); });
  until([&] { return is_sealed && is_read; });
  EXPECT_EQ(*open(a_), "own");
}

TEST_F(PeerObjectsTest, OneThatIsWholeComesBeforeOneThatIsBeingWritten) {
  UniqueFd memory;
  b_.store->create(kX, Bytes(4), std::nullopt, [&](Result<UniqueFd> made) { memory = *std::move(made); });
  put(c_, "whole");
  until([&] { return memory.get() >= 0; });
  EXPECT_EQ(*open(a_), "whole");
}

TEST_F(PeerObjectsTest, ManyComeAFewAtATime) {
  std::size_t done = 0;
  const std::size_t count = 3 * PeerObjects::kAtATime;
  for (std::size_t i = 0; i < count; ++i) {
    b_.store->put({"t", std::to_string(i)}, large(), std::nullopt, [&](const Result<ObjectInfo>&) { ++done; });
  }
  until([&] { return done == count; });
  done = 0;
  for (std::size_t i = 0; i < count; ++i) {
    a_.store->open_object({"t", std::to_string(i)}, {},
                          [&](const Result<OpenObject>& object) { done += object ? 1 : 0; });
  }
  until([&] { return done == count; });
}

}  // namespace
}  // namespace fairlead
