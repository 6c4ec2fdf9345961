#include "fairlead/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fairlead/error.h"

namespace fairlead {
namespace {

using ::testing::HasSubstr;

template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.type() + ": " + error.what();
  }
  return "no error";
}

TEST(Parameters, AbsentMembersTakeTheirDefaults) {
  for (const char* json : {"", "  ", "null", "{}", " { } ", "{\"n\":null}"}) {
    Parameters parameters(json);
    EXPECT_EQ(parameters.integer("n", 7, {1, 10}), 7) << json;
    EXPECT_EQ(parameters.text("name", "x", 5), "x") << json;
    EXPECT_NO_THROW(parameters.check_all_used());
  }
}

TEST(Parameters, ReadsNumbersStringsAndEscapes) {
  Parameters parameters(R"( {"n": 4096 ,"e":1.5e3,"s":"a\"\\\n\u00e9\ud83d\ude00","b":true} )");
  EXPECT_EQ(parameters.integer("n", 0, {0, 5000}), 4096);
  EXPECT_EQ(parameters.integer("e", 0, {0, 5000}), 1500);
  EXPECT_EQ(parameters.text("s", "", 100), "a\"\\\n\xc3\xa9\xf0\x9f\x98\x80");
}

TEST(Parameters, LastOfRepeatedMembersWins) {
  EXPECT_EQ(Parameters(R"({"n":1,"n":2})").integer("n", 0, {0, 9}), 2);
}

TEST(Parameters, ErrorNamesFieldValueAndBound) {
  const auto integer = [](const char* json) { return error_of([&] { Parameters(json).integer("n", 1, {1, 64}); }); };
  EXPECT_EQ(integer(R"({"n":65})"),
            "Runtime.InvalidParameter: parameter \"n\" is 65; it must be a whole number, 1 to 64");
  EXPECT_THAT(integer(R"({"n":1.5})"), HasSubstr("is 1.5;"));
  EXPECT_THAT(integer(R"({"n":1e300})"), HasSubstr("is 1e300;"));
  EXPECT_THAT(integer(R"({"n":"8"})"), HasSubstr("is \"8\";"));
  EXPECT_THAT(integer(R"({"n":true})"), HasSubstr("is true;"));
  EXPECT_THAT(error_of([] { Parameters(R"({"n":48})").power_of_two("n", 1, {1, 64}); }), HasSubstr("power of two"));
  EXPECT_THAT(error_of([] {
                Parameters(R"({"n":40})").multiple_of(16, "n", 16, {16, 64});
              }),
              HasSubstr("a multiple of 16, 16 to 64"));
  EXPECT_THAT(error_of([] { Parameters(R"({"s":"abcdef"})").text("s", "", 5); }), HasSubstr("6 bytes long"));
}

TEST(Parameters, MisspeltMemberIsNamed) {
  Parameters parameters(R"({"n":1,"sead":2})");
  parameters.integer("n", 0, {0, 9});
  EXPECT_THAT(error_of([&] { parameters.check_all_used(); }), HasSubstr("\"sead\""));
}

TEST(Parameters, MalformedJsonIsRefusedWithItsPosition) {
  for (const char* json : {"{", "[1]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{\"a\":1}x", "{\"a\":\"b", "{\"a\":{}}",
                           "{\"a\":\"\\q\"}", "{\"a\":\"\\u12\"}", "{\"a\":\"\\ud800x\"}", "nul"}) {
    EXPECT_THAT(error_of([&] { Parameters parameters(json); }), HasSubstr("at byte ")) << json;
  }
}

TEST(JsonObject, WritesMembersInOrderAndEscapes) {
  EXPECT_EQ(JsonObject().str(), "{}");
  EXPECT_EQ(JsonObject().add("n", 4096).add("x", 0.5).add("s", "a\"\\\x01").add("bad", std::nan("")).str(),
            R"({"n":4096,"x":0.5,"s":"a\"\\\u0001","bad":null})");
}

}  // namespace
}  // namespace fairlead
