#include "decide/core/core_parts_test_support.h"

namespace fairlead {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class Admission : public CoreParts {
 protected:
  Admission() : CoreParts({.queue_limit = 12, .queue_limit_per_flow = 10}) { add({.flow = kA}); }
  std::string refused(FlowId flow = kA) const {
    const Status status = admit(tables, flow);
    return status ? "" : status.error().message;
  }
  void queue(int invocations, FlowId flow) {
    for (int i = 0; i < invocations; ++i) arrive(++last_, flow);
  }
  std::uint64_t last_ = 0;
};

TEST_F(Admission, AQueueThatIsFullIsNamedWithItsBound) {
  queue(10, kA);
  EXPECT_THAT(refused(), HasSubstr("10 invocations of the function are queued, the limit is 10"));
  add({.flow = kB});
  EXPECT_EQ(refused(kB), "");
  queue(2, kB);
  EXPECT_THAT(refused(kB), HasSubstr("12 invocations are queued on the node, queue_limit is 12"));
}

TEST_F(Admission, WhoDrainsTakesNothingAndSaysSoFirst) {
  tables.draining = true;
  EXPECT_THAT(refused(FlowId(9)), HasSubstr("draining"));
  tables.draining = false;
  EXPECT_THAT(refused(FlowId(9)), HasSubstr("none of this node's"));
}

TEST_F(Admission, AReservedConcurrencyOfNoneRefusesAll) {
  add({.flow = kB, .max_concurrency = 0});
  EXPECT_THAT(refused(kB), HasSubstr("reserved concurrency is 0"));
}

// With n places in all and h of them one tenant's, it is refused where h / 2 >= n - h.
TEST_F(Admission, OfSeveralTenantsEachMayHaveTwiceWhatIsFree) {
  queue(8, kA);
  EXPECT_EQ(refused(), "") << "it is alone";
  add({.flow = kB, .tenant = TenantId(1)});
  EXPECT_THAT(refused(), HasSubstr("8 invocations of the tenant are queued or run, and 4 places are free"));
  EXPECT_EQ(refused(kB), "");
}

}  // namespace
}  // namespace fairlead
