// Power cuts and failing disks under the store: what was acknowledged is there afterwards, whole, and nothing else is needed.
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <set>

#include "store/store.h"
#include "store/test_folder.h"
#include "store/testing/power_cut_disk.h"

namespace fairlead {
namespace {

constexpr int kEvents = 12;
constexpr unsigned kCutsOfDatabase = 50;  // then it begins again: one that grows makes cuts slow

// $POWER_CUTS: 60 unless it says so; `make survive` asks for 1000.
unsigned power_cuts() {
  const char* const text = std::getenv("POWER_CUTS");
  return text == nullptr ? 60 : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

std::string payload_of(const std::string& id) {
  std::string payload = id;
  while (payload.size() < 3000) payload += id;
  return payload;
}

// What callers were told, by the thread that runs the callbacks; read at the moment of a cut.
struct Told {
  std::mutex mutex;
  std::set<std::string> accepted, over;
  void add(std::set<std::string>& to, const std::string& id) {
    const std::lock_guard lock(mutex);
    to.insert(id);
  }
};

class PowerCut : public testing::Test {
 protected:
  // Accepts events, retries some, finishes some: each commit has one to three operations.
  void work(unsigned seed) {
    boost::asio::io_context io;
    auto store = Store::open(io, folder_.path());
    if (!store) return;
    std::mt19937 random(seed);
    for (int i = 0; i < kEvents; ++i) {
      const std::string id = std::to_string(seed) + "-" + std::to_string(i);
      QueuedEvent event{.accepted_ms = i};
      event.invocation = {.request_id = id, .function = "f", .payload = payload_of(id)};
      (*store)->put_event(event, [this, id](const Status& written) {
        if (written) told_.add(told_.accepted, id);
      });
      if (random() % 3 == 0) {
        event.attempts = 1;
        (*store)->put_event(event, {});
      }
      if (random() % 3 == 0) {
        const std::lock_guard lock(told_.mutex);
        told_.over.insert(id);  // from the call on it may be gone
        (*store)->finish_event(id, {});
      }
      if (random() % 2 == 0) io.restart(), io.run();
    }
    io.restart();
    io.run();
  }

  void begin_again() {
    disk_.clear();
    told_.accepted.clear();
    told_.over.clear();
    work(0);
  }

  void expect_kept(const std::set<std::string>& accepted, const std::set<std::string>& over) {
    std::filesystem::remove(folder_ / "state.tally");  // it lies on another disk here
    boost::asio::io_context io;
    auto store = Store::open(io, folder_.path());
    ASSERT_TRUE(store) << store.error().message;
    const auto events = (*store)->load_events();
    ASSERT_TRUE(events) << events.error().message;
    EXPECT_EQ((*store)->damage().damaged_events + (*store)->damage().missing_events, 0u);
    std::set<std::string> found;
    for (const QueuedEvent& event : *events) {
      EXPECT_EQ(event.invocation.payload, payload_of(event.invocation.request_id));
      found.insert(event.invocation.request_id);
    }
    for (const std::string& id : accepted) EXPECT_TRUE(found.contains(id) || over.contains(id)) << id << " is lost";
  }

  store::TestFolder folder_;
  store::PowerCutDisk disk_;
  Told told_;
};

TEST_F(PowerCut, WhatWasAcknowledgedIsThereAfterwards) {
  work(0);  // there is a database
  const int calls = disk_.calls();
  ASSERT_GT(calls, 30);
  std::mt19937 random(7);
  for (unsigned seed = 1; seed <= power_cuts(); ++seed) {
    bool is_cut = false;
    std::set<std::string> accepted, over;  // at the cut; what was told afterwards was told to nobody
    disk_.cut_after(1 + static_cast<int>(random() % static_cast<unsigned>(calls)), [&] {
      const std::lock_guard lock(told_.mutex);
      is_cut = true;
      accepted = told_.accepted;
      over = told_.over;
    });
    work(seed);
    disk_.restore(seed);
    if (is_cut) told_.accepted = accepted, told_.over = over;
    ASSERT_NO_FATAL_FAILURE(expect_kept(told_.accepted, told_.over)) << "seed " << seed;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    if (seed % kCutsOfDatabase == 0) begin_again();
  }
}

TEST_F(PowerCut, WhateverCallFailsNothingAcknowledgedIsLost) {
  work(0);
  for (const bool for_good : {false, true}) {
    for (unsigned call = 1; call <= 120; call += 3) {
      disk_.fail_at(static_cast<int>(call), for_good);
      work(1000 * (for_good ? 2 : 1) + call);
      disk_.heal();
      ASSERT_NO_FATAL_FAILURE(expect_kept(told_.accepted, told_.over)) << "call " << call;
      ASSERT_FALSE(HasFailure()) << "call " << call << (for_good ? " and all later ones" : "");
    }
  }
}

}  // namespace
}  // namespace fairlead
