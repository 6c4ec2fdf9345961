#include "model/provisioned_tag.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

Tags tagged(const std::string& value) {
  return {{"gpu:provisioned", value}, {"team", "vision"}};
}

TEST(ProvisionedTag, VersionsAndAliasesHaveTheirNumbers) {
  EXPECT_THAT(*provisioned_in({}), IsEmpty());
  EXPECT_THAT(*provisioned_in(tagged("3=2")), ElementsAre(Pair("3", 2)));
  EXPECT_THAT(*provisioned_in(tagged("live=1,3=2,my-alias_2=1000")),
              ElementsAre(Pair("3", 2), Pair("live", 1), Pair("my-alias_2", 1000)));
}

TEST(ProvisionedTag, WhatIsWrongIsNamed) {
  for (const std::string text : {"", ",", "3", "3=", "=2", "3=0", "3=-1", "3=1001", "3=2x", "3=2,", ",3=2", "3=2,3=1",
                                 "03=1", "0=1", "a b=1", "3=99999999999999999999", "3==2", "live=1;3=2", "3= 2"}) {
    const auto read = provisioned_in(tagged(text));
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(Errc::kInvalidArgument, read.error().code);
    EXPECT_THAT(read.error().message, HasSubstr("gpu:provisioned"));
    EXPECT_THAT(read.error().message, HasSubstr("1000"));
  }
  EXPECT_THAT(provisioned_in(tagged("$LATEST=2")).error().message, HasSubstr("gpu:replicas"));
}

TEST(ProvisionedTag, IsSetChangedAndTakenAwayAndOtherTagsStay) {
  Tags tags{{"team", "vision"}};
  tags = *with_provisioned(tags, "live", 1);
  EXPECT_EQ(tagged("live=1"), tags);
  tags = *with_provisioned(tags, "3", 2);
  EXPECT_EQ(tagged("3=2,live=1"), tags);
  tags = *with_provisioned(tags, "3", 7);
  EXPECT_EQ(tagged("3=7,live=1"), tags);
  tags = *with_provisioned(tags, "live", 0);
  EXPECT_EQ(tagged("3=7"), tags);
  EXPECT_EQ(tags, *with_provisioned(tags, "absent", 0));
  EXPECT_EQ((Tags{{"team", "vision"}}), *with_provisioned(tags, "3", 0));
}

TEST(ProvisionedTag, NumbersAndLengthAreBounded) {
  EXPECT_THAT(with_provisioned({}, "3", 1001).error().message, HasSubstr("0 to 1000"));
  EXPECT_FALSE(with_provisioned({}, "3", -1));
  const Tags almost = *with_provisioned(*with_provisioned({}, std::string(125, 'a'), 1), std::string(120, 'b'), 1);
  EXPECT_EQ(250u, almost.at("gpu:provisioned").size());
  EXPECT_EQ(256u, with_provisioned(almost, "123", 1)->at("gpu:provisioned").size());
  const auto more = with_provisioned(almost, "1234", 1);
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message, HasSubstr("257 bytes, of at most 256"));
}

}  // namespace
}  // namespace fairlead
