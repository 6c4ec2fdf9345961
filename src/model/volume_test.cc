#include "model/volume.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<Volume> kOffered = {{"torch", "/opt/torch", ""}, {"weights", "/srv/weights", "vision"}};

std::string refused(const std::string& text) {
  const auto parsed = parse_volume(text);
  return parsed ? "taken" : parsed.error().message;
}

TEST(Volume, AFolderForAllAndOneOfATenant) {
  EXPECT_EQ(*parse_volume("torch=/opt/torch"), kOffered[0]);
  EXPECT_EQ(*parse_volume("weights=/srv/weights:vision"), kOffered[1]);
}

TEST(Volume, ATextThatIsNoneSaysWhatItMustBe) {
  EXPECT_THAT(refused("/opt/torch"), HasSubstr("NAME=FOLDER"));
  EXPECT_THAT(refused("=/opt/torch"), HasSubstr("no name of a volume"));
  EXPECT_THAT(refused("a b=/opt/torch"), HasSubstr("'a b'"));
  EXPECT_THAT(refused("a=/opt/torch:no tenant"), HasSubstr("no tenant"));
  for (const char* folder : {"", "opt", "/", "/opt/", "/opt//torch", "/opt/../etc", "/opt/./torch"}) {
    EXPECT_THAT(refused(std::string("a=") + folder), HasSubstr("absolute path")) << folder;
  }
}

TEST(Volume, APathIsSoShortThatAFunctionOfSixteenStarts) {
  EXPECT_EQ(refused("a=/" + std::string(kMaxVolumeFolderBytes - 1, 'x')), "taken");
  EXPECT_THAT(refused("a=/" + std::string(kMaxVolumeFolderBytes, 'x')),
              HasSubstr("1025 bytes; it must be at most 1024"));
}

TEST(Volume, NoneHidesWhatASandboxHasOfItsOwn) {
  for (const char* folder : {"/usr", "/usr/share", "/var/run/x", "/var/tmp", "/etc/ssl", "/tmp/x", "/var", "/var/task",
                             "/var/task/lib", "/run/x", "/opt/gpu", "/opt"}) {
    EXPECT_THAT(refused(std::string("a=") + folder), HasSubstr("would hide")) << folder;
  }
  for (const char* folder : {"/usrlocal", "/var/tasks", "/opt/torch", "/var/lib/weights"}) {
    EXPECT_EQ(refused(std::string("a=") + folder), "taken") << folder;
  }
}

TEST(Volume, AFunctionGetsWhatItsTagNamesAndItsTenantMayHave) {
  EXPECT_TRUE(volumes_of(kOffered, {})->empty());
  EXPECT_THAT(*volumes_of(kOffered, {{"gpu:volumes", "torch weights torch"}, {"gpu:tenant", "vision"}}),
              ElementsAre(kOffered[0], kOffered[1]));
  EXPECT_THAT(*volumes_of(kOffered, {{"gpu:volumes", " torch "}, {"gpu:tenant", "shop"}}), ElementsAre(kOffered[0]));
}

TEST(Volume, AnothersVolumeIsNotNamed) {
  const auto got = volumes_of(kOffered, {{"gpu:volumes", "weights"}, {"gpu:tenant", "shop"}});
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("no volume 'weights', but: torch;"));
  EXPECT_THAT(volumes_of({}, {{"gpu:volumes", "x"}}).error().message, HasSubstr("but: none"));
}

TEST(Volume, ATagNamesAtLeastOneAndAtMostSixteen) {
  EXPECT_THAT(volumes_of(kOffered, {{"gpu:volumes", "  "}}).error().message, HasSubstr("names 0 volumes"));
  std::vector<Volume> many;
  std::string names;
  for (int i = 0; i < 17; ++i) {
    many.push_back({"v" + std::to_string(i), "/srv/" + std::to_string(i), ""});
    names += " " + many.back().name;
  }
  EXPECT_THAT(volumes_of(many, {{"gpu:volumes", names}}).error().message,
              HasSubstr("names 17 volumes; it must be 1 to 16"));
}

}  // namespace
}  // namespace fairlead
