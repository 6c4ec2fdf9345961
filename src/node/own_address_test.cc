// Where others reach a node: by the first address that means something elsewhere.
#include "node/own_address.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

std::string own(std::vector<std::string> listen, const std::string& certificate = "") {
  ServeOptions options;
  options.listen = std::move(listen);
  options.tls_certificate = certificate;
  return own_address(options);
}

TEST(OwnAddress, IsTheFirstThatMeansSomethingElsewhere) {
  EXPECT_EQ(own({"10.0.0.7:9001", "10.0.0.8:9001"}), "http://10.0.0.7:9001");
  EXPECT_EQ(own({"0.0.0.0:9001", "[::]:9001", "10.0.0.8:9001"}), "http://10.0.0.8:9001");
  EXPECT_EQ(own({"10.0.0.7:9001"}, "node.crt"), "https://10.0.0.7:9001");
  EXPECT_EQ(own({"unix:/run/node.sock"}, "node.crt"), "unix:/run/node.sock");
}

TEST(OwnAddress, IsNoneWhereAllStandForAll) {
  EXPECT_EQ(own({}), "");
  EXPECT_EQ(own({"0.0.0.0:9001"}), "");
  EXPECT_EQ(own({"no address"}), "");
}

}  // namespace
}  // namespace fairlead
