// Versions and aliases on disk: what comes back, what goes with its function, what is older than they are.
#include <gtest/gtest.h>

#include "base/check.h"
#include "store/records.h"
#include "store/schema.h"
#include "store/store.h"
#include "store/test_folder.h"

namespace fairlead {
namespace {

struct PublishedStore : testing::Test {
  std::unique_ptr<Store> open() {
    auto store = Store::open(io, folder.path());
    FL_CHECK(store.has_value(), "{}", store.error().message);
    return *std::move(store);
  }
  store::TestFolder folder;
  boost::asio::io_context io;
};

// A version is part of what a checksum guards; an event of $LATEST has the one that it always had.
TEST_F(PublishedStore, ADamagedVersionIsFound) {
  {
    auto store = open();
    store->put_function({.name = "f"}, {});
    QueuedEvent event;
    event.invocation.request_id = "e";
    event.invocation.function = "f";
    event.invocation.version = 7;
    store->put_event(event, {});
  }
  {
    StateDamage found;
    auto database = store::open_state_database(folder.path(), found).value();
    ASSERT_TRUE(database->run("UPDATE events SET version = 8"));
  }
  auto store = open();
  EXPECT_TRUE(store->load_events()->empty());
  EXPECT_EQ(store->damage().damaged_events, 1u);
}

TEST_F(PublishedStore, WeightsThatCannotBeReadAreNone) {
  {
    auto store = open();
    store->put_function({.name = "f"}, {});
    store->put_alias("f", {.name = "live", .version = 1, .description = "", .weights = {{2, 0.5}}, .revision_id = ""},
                     {});
  }
  for (const char* damaged : {"'{'", "'[]'", "'{\"x\": 1}'", "'{\"2\": \"much\"}'"}) {
    {
      StateDamage found;
      auto database = store::open_state_database(folder.path(), found).value();
      ASSERT_TRUE(database->run("UPDATE aliases SET weights = " + std::string(damaged)));
    }
    const auto published = open()->load_published();
    ASSERT_TRUE(published);
    EXPECT_TRUE(published->aliases.at("f")[0].weights.empty()) << damaged;
  }
}

}  // namespace
}  // namespace fairlead
