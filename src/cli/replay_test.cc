// Replaying bursts to a node: what is asked of whom, and what is refused before anything is sent.
#include <gmock/gmock.h>

#include "cli/fake_node.h"
#include "cli/test_cli.h"

namespace fairlead::cli {
namespace {

using testing::HasSubstr;

TEST(Replay, BurstsNeedFunctionsAndRates) {
  EXPECT_THAT(run_cli({"replay", "bursts"}).err, HasSubstr("--calls is missing"));
  EXPECT_THAT(run_cli({"replay", "bursts", "--calls", "f"}).err, HasSubstr("it must be NAME=RATE"));
  EXPECT_THAT(run_cli({"replay", "bursts", "--calls", "f=0"}).err, HasSubstr("it must be NAME=RATE"));
}

TEST(Replay, BurstsAreSentToFunctionsThatAreThere) {
  FakeNode node;
  const Outcome outcome =
      run_cli({"--endpoint", node.endpoint(), "replay", "bursts", "--calls", "f=5,g=5", "--duration", "1"});
  EXPECT_NE(0, outcome.status);
  EXPECT_THAT(outcome.err, HasSubstr("the node has no function f, g"));
}

}  // namespace
}  // namespace fairlead::cli
