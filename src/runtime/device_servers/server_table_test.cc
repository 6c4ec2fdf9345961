#include "runtime/device_servers/server_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

namespace fairlead {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ServerPlace kA{GpuId(1), "a"}, kB{GpuId(1), "b"}, kElsewhere{GpuId(2), "a"};

class ServerTableTest : public ::testing::Test {
 protected:
  boost::asio::io_context io;
  std::optional<ServerTable> table{std::in_place, io, ServerRecovery::Options{}};
};

TEST_F(ServerTableTest, OnePlaceHasOneServerWithANumberOfItsOwn) {
  DeviceServer& a = table->at(kA, {{"K", "v"}});
  EXPECT_EQ(&table->at(kA, {}), &a) << "the environment is that of the first";
  EXPECT_EQ(a.environment.at("K"), "v");
  EXPECT_EQ(table->find(kB), nullptr);
  const std::uint64_t number = a.number;
  table->erase(a.place);
  EXPECT_EQ(table->find(kA), nullptr);
  EXPECT_GT(table->at(kA, {}).number, number) << "numbers are not used again";
}

TEST_F(ServerTableTest, AHandleFindsTheServerWhileItsProcessIsThatOne) {
  DeviceServer& a = table->at(kA, {});
  table->renew(a);
  const ServerTable::Handle handle = table->handle_of(a);
  EXPECT_EQ(handle.find(), &a);
  table->renew(a);
  EXPECT_EQ(handle.find(), nullptr) << "another process";
  EXPECT_FALSE(handle.outlives_all());
}

TEST_F(ServerTableTest, AHandleIsOfNoServerThatCameLaterInThatPlace) {
  table->renew(table->at(kA, {}));
  const ServerTable::Handle handle = table->handle_of(*table->find(kA));
  table->erase(kA);
  EXPECT_EQ(handle.find(), nullptr);
  table->renew(table->at(kA, {}));
  EXPECT_EQ(handle.find(), nullptr);
}

TEST_F(ServerTableTest, AHandleMayOutliveAllServers) {
  const ServerTable::Handle handle = table->handle_of(table->at(kA, {}));
  table.reset();
  EXPECT_TRUE(handle.outlives_all());
  EXPECT_EQ(handle.find(), nullptr);
}

TEST_F(ServerTableTest, ServersAreListedByGpu) {
  EXPECT_THAT(table->on(GpuId(1)), IsEmpty());
  table->at(kB, {});
  table->at(kElsewhere, {});
  table->at(kA, {});
  EXPECT_THAT(table->on(GpuId(1)), ElementsAre(kA, kB));
  EXPECT_EQ(table->views().size(), 3u);
  EXPECT_EQ(table->views()[0].tenant, "a");
}

TEST(ServerPlace, OnlyTheServerOfAllTenantsIsShared) {
  EXPECT_TRUE((ServerPlace{GpuId(1), ServerPlace::kAllTenants}).is_shared());
  EXPECT_FALSE(kA.is_shared());
}

TEST(ServerFetches, EachIsToldOnceAndWhoIsLeftIsTheCallersToTell) {
  ServerFetches fetches;
  std::vector<std::string> told;
  const auto note = [&told](const std::string& who) {
    return
        [&told, who](const Status& status) { told.push_back(who + (status ? " ok" : " " + status.error().message)); };
  };
  const std::uint64_t first = fetches.add(note("first"));
  fetches.add(note("second"));
  fetches.fetched(first, {});
  fetches.fetched(first, {});
  fetches.fetched(99, {});
  EXPECT_THAT(told, ElementsAre("first ok"));
  for (const auto& [number, done] : fetches.take_all()) done(fail(Errc::kUnavailable, "lost"));
  EXPECT_THAT(told, ElementsAre("first ok", "second lost"));
  EXPECT_THAT(fetches.take_all(), IsEmpty());
  EXPECT_GT(fetches.add(note("third")), first + 1) << "a number is not used again";
}

}  // namespace
}  // namespace fairlead
