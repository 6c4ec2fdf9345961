#include "net/grpc/grpc_status.h"

#include <gtest/gtest.h>

namespace fairlead::net {
namespace {

TEST(GrpcStatus, TimeoutsAreRead) {
  using namespace std::chrono_literals;
  EXPECT_EQ(parse_grpc_timeout("250m"), 250ms);
  EXPECT_EQ(parse_grpc_timeout("5S"), 5s);
  EXPECT_EQ(parse_grpc_timeout("2M"), 2min);
  EXPECT_EQ(parse_grpc_timeout("99999999H"), 365 * 24h);
  EXPECT_EQ(parse_grpc_timeout("99999999u"), 99'999'999us);
  EXPECT_EQ(parse_grpc_timeout("1n"), 1ns);
  for (const char* wrong : {"", "m", "5", "5x", "-5S", "+5S", "999999999S", " 5S", "5 S", "0x5S"}) {
    EXPECT_EQ(parse_grpc_timeout(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace fairlead::net
