#include "net/grpc/grpc_message.h"

#include <gtest/gtest.h>

#include "net/grpc/grpc_test_server.h"

namespace fairlead::net {
namespace {

TEST(GrpcMessage, ComesInPiecesOfAnySize) {
  const std::string bytes = framed("0123456789");
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    GrpcMessage message;
    for (std::size_t i = 0; i < bytes.size(); i += size) {
      EXPECT_TRUE(message.finish()) << "not yet";
      EXPECT_FALSE(message.append(std::string_view(bytes).substr(i, size), 10));
    }
    EXPECT_FALSE(message.finish());
    EXPECT_EQ(message.text(), "0123456789");
  }
}

}  // namespace
}  // namespace fairlead::net
