// The head of an HTTP answer at the beginning of a stream: what is taken, what is left out, what is refused, wherever it is cut.
#include "edge/stream_prelude.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

using std::string_literals::operator""s;

const std::string kEnd(8, '\0');

struct Read {
  Result<std::optional<StreamPrelude>> prelude;
  std::string rest;
};

Read read(const std::string& text, std::size_t piece = 1 << 20) {
  PreludeReader reader;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    auto said = reader.feed(std::string_view(text).substr(at, piece));
    if (said && !*said) continue;
    const bool is_whole = said.has_value();
    std::string rest = is_whole ? reader.take_rest() : "";
    if (at + piece < text.size()) rest += text.substr(at + piece);
    return {std::move(said), std::move(rest)};
  }
  return {std::optional<StreamPrelude>(), ""};
}

std::string header(const StreamPrelude& prelude, std::string_view name) {
  std::string all;
  for (const net::Header& one : prelude.headers) {
    if (one.name == name) all += (all.empty() ? "" : "|") + one.value;
  }
  return all;
}

TEST(StreamPrelude, IsStatusHeadersAndCookies) {
  const Read got = read(R"({"statusCode": 404, "headers": {"Content-Type": "text/html"}, "cookies": ["a=b", "c=d"]})" +
                        kEnd + "<p>");
  ASSERT_TRUE(got.prelude && *got.prelude);
  EXPECT_EQ((*got.prelude)->status, 404u);
  EXPECT_EQ(header(**got.prelude, "Content-Type"), "text/html");
  EXPECT_EQ(header(**got.prelude, "Set-Cookie"), "a=b|c=d");
  EXPECT_EQ(got.rest, "<p>");
}

TEST(StreamPrelude, IsTheSameWhereverItIsCut) {
  const std::string text = R"({"headers": {"X-A": "\u0000"}})" + kEnd + "\0body"s;
  const std::string good = R"({"headers": {"X-A": "1"}})" + kEnd + "\0body"s;
  for (std::size_t piece = 1; piece <= good.size(); ++piece) {
    const Read got = read(good, piece);
    ASSERT_TRUE(got.prelude && *got.prelude) << piece;
    EXPECT_EQ((*got.prelude)->status, 200u);
    EXPECT_EQ(header(**got.prelude, "X-A"), "1");
    EXPECT_EQ(got.rest, "\0body"s) << "the ninth NUL is the body's";
    EXPECT_FALSE(read(text, piece).prelude) << "a NUL in a header";
  }
}

TEST(StreamPrelude, LeavesOutWhatIsTheNodes) {
  const Read got = read(
      R"({"headers": {"Content-Length": "5", "TRANSFER-ENCODING": "chunked", "Connection": "close", "X-Amz-Function-Error": "no",)"
      R"("x-amzn-RequestId": "mine", "X-Gpu-Start": "cold", "X-Mine": "1"}})" +
      kEnd);
  ASSERT_TRUE(got.prelude && *got.prelude);
  ASSERT_EQ((*got.prelude)->headers.size(), 1u);
  EXPECT_EQ(header(**got.prelude, "X-Mine"), "1");
}

TEST(StreamPrelude, RefusesWhatIsNone) {
  for (const std::string& bad :
       {"no JSON"s, "[]"s, ""s, R"({"statusCode": 99})"s, R"({"statusCode": 100})"s, R"({"statusCode": 600})"s,
        R"({"statusCode": "200"})"s, R"({"statusCode": -1})"s, R"({"statusCode": 200.5})"s, R"({"headers": []})"s,
        R"({"headers": {"A": 1}})"s, R"({"headers": {"A B": "1"}})"s, R"({"headers": {"": "1"}})"s,
        R"({"headers": {"A": "1\r\nB: 2"}})"s, R"({"cookies": "a=b"})"s, R"({"cookies": ["a=b\nX: 1"]})"s,
        R"({"cookies": [1]})"s, std::string(5000, '[') + std::string(5000, ']')}) {
    const Read got = read(bad + kEnd + "body");
    ASSERT_FALSE(got.prelude) << bad;
    EXPECT_NE(got.prelude.error().message.find(kPreludeType), std::string::npos);
  }
}

TEST(StreamPrelude, HasABound) {
  PreludeReader reader;
  const std::string part(4096, ' ');
  for (std::size_t fed = part.size(); fed <= kMaxPreludeBytes; fed += part.size())
    ASSERT_TRUE(reader.feed(part)) << fed;
  EXPECT_FALSE(reader.feed(part));
  const Read long_body = read("{}" + kEnd + std::string(2 * kMaxPreludeBytes, 'x'));
  ASSERT_TRUE(long_body.prelude && *long_body.prelude) << "the body has none";
  EXPECT_EQ(long_body.rest.size(), 2 * kMaxPreludeBytes);
}

}  // namespace
}  // namespace fairlead
