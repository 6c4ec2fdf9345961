// Planted and caught: a destructor that joins its threads; one thread for all look-ups; threads without a bound.
#include "net/host_resolver.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

namespace fairlead::net {
namespace {

using namespace std::chrono_literals;

// Look-ups of "hangs" end with the test, or after so long that a test which waits for them has failed.
class HostResolverTest : public ::testing::Test {
 protected:
  ~HostResolverTest() override { end_->set_value(); }

  HostResolver::LookUp look_up() {
    return [ended = end_->get_future().share(), end = end_](const std::string& host, const std::string&) {
      if (host == "hangs") ended.wait_for(1min);
      return look_up_host("127.0.0.1", "80");
    };
  }
  bool run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + 50s;
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      io_.restart();
      io_.run_one_for(5ms);
    }
    return done();
  }

  std::shared_ptr<std::promise<void>> end_ = std::make_shared<std::promise<void>>();
  boost::asio::io_context io_{1};
};

TEST_F(HostResolverTest, ANameThatHangsIsInNoOthersWay) {
  HostResolver resolver(io_, look_up());
  int told = 0;
  resolver.ask("hangs", "80", [&](const auto&) { told += 100; });
  resolver.ask("answers", "80", [&](const auto& found) { told += found && found->size() == 1 ? 1 : 1000; });
  EXPECT_TRUE(run_until([&] { return told > 0; }));
  EXPECT_EQ(told, 1);
}

TEST_F(HostResolverTest, ItsEndWaitsForNoName) {
  const auto begin = std::chrono::steady_clock::now();
  auto resolver = std::make_unique<HostResolver>(io_, look_up());
  bool was_told = false;
  resolver->ask("hangs", "80", [&](const auto&) { was_told = true; });
  resolver.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 50s);
  io_.poll();
  EXPECT_FALSE(was_told);
}

TEST_F(HostResolverTest, WhatIsBeyondTheBoundIsRefused) {
  HostResolver resolver(io_, look_up());
  for (std::size_t i = 0; i < HostResolver::kMost; ++i) resolver.ask("hangs", "80", [](const auto&) {});
  std::optional<Errc> refused;
  resolver.ask("answers", "80", [&](const auto& found) { refused = found ? Errc::kInternal : found.error().code; });
  EXPECT_FALSE(refused) << "from inside the call";
  EXPECT_TRUE(run_until([&] { return refused.has_value(); }));
  EXPECT_EQ(refused, Errc::kResourceExhausted);
}

TEST_F(HostResolverTest, ANameThatIsNotThereIsSaid) {
  HostResolver resolver(io_);
  std::string said;
  resolver.ask("no such name", "80", [&](const auto& found) { said = found ? "found" : found.error().message; });
  EXPECT_TRUE(run_until([&] { return !said.empty(); }));
  EXPECT_NE(said.find("cannot resolve host 'no such name'"), std::string::npos) << said;
}

}  // namespace
}  // namespace fairlead::net
