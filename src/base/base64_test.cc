#include "base/base64.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace fairlead {
namespace {

TEST(Base64, Rfc4648Section10) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(base64_encode(bytes), text);
    EXPECT_EQ(base64_decode("x", text).value_or("refused"), bytes);
  }
}

TEST(Base64, OtherTextIsRefused) {
  for (const char* text : {"Zg", "Zg=", "Zh==", "Zm9=", "=", "====", "Z===", "Zg==Zg==", "Zm 9", "Zm9-", "Zm9v\n"}) {
    EXPECT_FALSE(base64_decode("x", text)) << text;
  }
  EXPECT_EQ(base64_decode("Payload", "Zg").error().message, "Payload: its 2 characters are not base64 with padding");
}

TEST(Base64, AnyBytesComeBack) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    RC_ASSERT(base64_decode("x", base64_encode(bytes)).value_or("refused") == bytes);
  }));
}

}  // namespace
}  // namespace fairlead
