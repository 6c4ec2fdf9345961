// Messages of the event stream, byte by byte. tests/functional/test_streams.py has botocore read them.
#include "edge/lambda/event_stream.h"

#include <gtest/gtest.h>

#include <boost/crc.hpp>

namespace fairlead {
namespace {

std::size_t number_at(std::string_view bytes, std::size_t at) {
  std::size_t value = 0;
  for (std::size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::size_t crc_of(std::string_view bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

TEST(EventStream, AMessageSaysItsLengthsAndSums) {
  const std::string message = event_stream_message("PayloadChunk", "application/octet-stream", "hi");
  ASSERT_EQ(message.size(), number_at(message, 0));
  const std::size_t headers = number_at(message, 4);
  EXPECT_EQ(message.size(), 16 + headers + 2);
  EXPECT_EQ(number_at(message, 8), crc_of(std::string_view(message).substr(0, 8)));
  EXPECT_EQ(number_at(message, message.size() - 4), crc_of(std::string_view(message).substr(0, message.size() - 4)));
  EXPECT_EQ(message.substr(12 + headers, 2), "hi");
  const std::string_view head = std::string_view(message).substr(12, headers);
  EXPECT_TRUE(head.starts_with(std::string_view("\x0b:event-type\x07\x00\x0cPayloadChunk", 27))) << head;
}

TEST(EventStream, APayloadMayBeEmptyOrHoldAnyBytes) {
  EXPECT_EQ(number_at(event_stream_message("E", "t", ""), 0), event_stream_message("E", "t", "").size());
  const std::string bytes("\0\xff\r\n", 4);
  const std::string message = event_stream_message("E", "t", bytes);
  EXPECT_EQ(message.substr(message.size() - 8, 4), bytes);
}

}  // namespace
}  // namespace fairlead
