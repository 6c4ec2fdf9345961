#include "net/server_sent_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead::net {
namespace {

using ::testing::HasSubstr;

TEST(ServerSentEvents, AnEventIsItsFieldsAndAnEmptyLine) {
  EXPECT_EQ("event: status\nid: 7\ndata: {}\n\n", event_text({.name = "status", .id = "7", .data = "{}"}).value());
  EXPECT_EQ("data: \n\n", event_text({}).value());
}

TEST(ServerSentEvents, EveryLineOfTheDataIsAFieldWhateverEndsIt) {
  EXPECT_EQ("data: a\ndata: b\ndata: c\ndata: \ndata: d\ndata: \n\n", event_text({.data = "a\nb\rc\r\n\nd\n"}).value());
  EXPECT_EQ("data: x\ndata: event: forged\n\n", event_text({.data = "x\revent: forged"}).value());
}

TEST(ServerSentEvents, ANameOrIdOfSeveralLinesIsRefused) {
  for (const std::string_view bad : {std::string_view("a\nb"), std::string_view("a\rb"), std::string_view("a\0b", 3)}) {
    EXPECT_THAT(event_text({.name = bad}).error().message, HasSubstr("event of a server-sent event")) << bad;
    EXPECT_EQ(Errc::kInvalidArgument, event_text({.id = bad}).error().code) << bad;
  }
}

TEST(ServerSentEvents, ACommentIsSkippedWhateverItHolds) {
  EXPECT_EQ(": \n\n", comment_text(""));
  EXPECT_EQ(": a\n: data: b\n\n", comment_text("a\ndata: b"));
}

TEST(ServerSentEvents, ARefusedEventWritesNothing) {
  EventStream events = make_event_stream(64);
  EXPECT_FALSE(events.writer.send({.name = "a\nb", .data = "x"}));
  EXPECT_EQ(BodyWrite::kFull, events.writer.send({.data = std::string(64, 'x')}).value());
  EXPECT_EQ(64u, events.writer.body().room());
  EXPECT_EQ(BodyWrite::kTaken, events.writer.comment());
  EXPECT_EQ(60u, events.writer.body().room());
}

}  // namespace
}  // namespace fairlead::net
