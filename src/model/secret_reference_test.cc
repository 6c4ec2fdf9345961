#include "model/secret_reference.h"

#include <gtest/gtest.h>

namespace fairlead {
namespace {

TEST(SecretReference, IsAWholeValue) {
  const auto variable = referred_secret("{{resolve:secret:db-password}}");
  ASSERT_TRUE(variable);
  EXPECT_EQ(variable->name, "db-password");
  EXPECT_FALSE(variable->is_file);
  const auto file = referred_secret("{{resolve:secret-file:db-password}}");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->name, "db-password");
  EXPECT_TRUE(file->is_file);
  for (const char* value :
       {"", "db-password", "x{{resolve:secret:a}}", "{{resolve:secret:a}}x", "{{resolve:secret:a}"}) {
    EXPECT_FALSE(referred_secret(value)) << value;
  }
}

TEST(SecretReference, WhatLooksLikeOneAndIsNoneIsRefused) {
  EXPECT_TRUE(validate_reference("V", "{{resolve:secret:a.b_c-1}}"));
  EXPECT_TRUE(validate_reference("V", "{{resolve:secret-file:a.b_c-1}}"));
  EXPECT_TRUE(validate_reference("V", "{{mustache}}"));
  for (const char* value : {"{{resolve:ssm:a}}", "{{resolve:secret:}}", "{{resolve:secret:a", "{{resolve:secret:../a}}",
                            "{{resolve:secret:a}} ", "{{resolve:secret:a b}}", "{{resolve:secret-file:}}",
                            "{{resolve:secret-file:../a}}", "{{resolve:secret-files:a}}"}) {
    const Status status = validate_reference("V", value);
    ASSERT_FALSE(status) << value;
    EXPECT_NE(status.error().message.find("'V'"), std::string::npos);
  }
}

TEST(SecretReference, NamesAreBounded) {
  EXPECT_TRUE(validate_secret_name(std::string(64, 'a')));
  for (const std::string& name : {std::string(), std::string(65, 'a'), std::string(".a"), std::string("a/b"),
                                  std::string("a\0b", 3), std::string("-a")}) {
    EXPECT_FALSE(validate_secret_name(name)) << name;
  }
}

}  // namespace
}  // namespace fairlead
