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

TEST(Volume, OneForWritingIsATenants) {
  EXPECT_EQ(*parse_volume("out=/srv/out:vision:rw"), (Volume{"out", "/srv/out", "vision", true}));
  EXPECT_THAT(refused("out=/srv/out:rw"), HasSubstr("out=/srv/out:TENANT:rw"));
  EXPECT_NE(refused("out=/srv/out::rw"), "taken");
  EXPECT_NE(refused("out=/srv/out:vision:ro"), "taken");
  EXPECT_NE(refused("out=/srv/out:vision:rw:rw"), "taken");
}

TEST(Volume, AFunctionWritesWhereItWasOfferedAndAskedFor) {
  const std::vector<Volume> offered = {{"out", "/srv/out", "vision", true}, {"weights", "/srv/weights", "vision"}};
  const auto of = [&](const char* names) {
    return volumes_of(offered, {{"gpu:volumes", names}, {"gpu:tenant", "vision"}});
  };
  EXPECT_TRUE(of("out:rw")->at(0).writable);
  EXPECT_FALSE(of("out")->at(0).writable);
  for (const char* both : {"out out:rw", "out:rw out"}) {
    ASSERT_EQ(of(both)->size(), 1u);
    EXPECT_TRUE(of(both)->at(0).writable) << both;
  }
  EXPECT_THAT(of("weights:rw").error().message, HasSubstr("'weights' is for reading only"));
  EXPECT_THAT(volumes_of(offered, {{"gpu:volumes", "out:rw"}, {"gpu:tenant", "shop"}}).error().message,
              HasSubstr("no volume 'out', but: none"));
}

TEST(Volume, NoneIsSeenOrWrittenThroughAnother) {
  const Volume all{"all", "/srv", ""}, inner{"inner", "/srv/inner", "vision"};
  EXPECT_TRUE(check_apart({all, {"more", "/srv/more", ""}}));
  EXPECT_THAT(check_apart({all, inner}).error().message, HasSubstr("inner is for vision alone, and all has it too"));
  for (const Volume& written : {Volume{"out", "/srv/inner/out", "vision", true}, Volume{"out", "/srv", "vision", true},
                                Volume{"out", "/srv/inner", "vision", true}}) {
    EXPECT_THAT(check_apart({inner, written}).error().message, HasSubstr("functions may write to one"))
        << written.folder;
    EXPECT_FALSE(check_apart({written, inner})) << written.folder;
  }
  EXPECT_TRUE(check_apart({inner, {"out", "/srv/inner-out", "vision", true}}));
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
