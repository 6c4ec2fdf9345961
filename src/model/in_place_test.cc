#include "model/in_place.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using testing::HasSubstr;

const InPlaceTerms kTerms = {.obstacle = "",
                             .state_dir = "/var/lib/fairlead",
                             .volumes = {{"torch", "/opt/torch", ""}, {"weights", "/srv/weights", "vision"}}};

std::string refusal(const std::string& folder, const std::string& tenant = "shop", const InPlaceTerms& terms = kTerms) {
  const Status status = check_in_place(folder, tenant, terms);
  return status ? "" : status.error().message;
}

TEST(InPlace, AFolderOfItsOwnMayBeCode) {
  EXPECT_EQ(refusal("/home/ana/classify"), "");
  EXPECT_EQ(refusal("/var/lib/fairlead-functions/f"), "");
  EXPECT_EQ(refusal("/opt/torch/examples"), "") << "everybody has that volume";
}

TEST(InPlace, NotWhatASandboxHasNorWhatIsNoPlainPath) {
  for (const char* folder : {"/", "relative", "/home/../etc", "/home/ana/"}) {
    EXPECT_THAT(refusal(folder), HasSubstr("absolute path other than '/'")) << folder;
  }
  for (const char* folder : {"/etc", "/etc/cron.d", "/usr", "/proc/1", "/run/x", "/var", "/opt", "/tmp/f"}) {
    EXPECT_THAT(refusal(folder), HasSubstr("would hide")) << folder;
  }
}

TEST(InPlace, NeitherTheStateFolderNorWhatItLiesInNorWhatIsInIt) {
  for (const char* folder : {"/var/lib/fairlead", "/var/lib", "/var/lib/fairlead/code/abc"}) {
    EXPECT_THAT(refusal(folder), HasSubstr("the node's state folder /var/lib/fairlead")) << folder;
  }
}

TEST(InPlace, NotAnothersVolume) {
  for (const char* folder : {"/srv/weights", "/srv/weights/v2", "/srv"}) {
    EXPECT_THAT(refusal(folder), HasSubstr("for another tenant than shop")) << folder;
    EXPECT_EQ(refusal(folder, "vision"), "") << folder;
  }
}

TEST(InPlace, NotWhatFunctionsWriteTo) {
  InPlaceTerms terms = kTerms;
  terms.volumes = {{"out", "/srv/private/out", "vision", true}};
  EXPECT_THAT(refusal("/srv/private/out/f", "vision", terms), HasSubstr("functions may write to"));
  EXPECT_THAT(refusal("/srv", "vision", terms), HasSubstr("functions may write to"));
  EXPECT_EQ(refusal("/srv/private/output", "vision", terms), "");
}

TEST(InPlace, ANodeThatCannotSaysWhy) {
  InPlaceTerms terms = kTerms;
  terms.obstacle = "other machines do not have the folder";
  EXPECT_THAT(refusal("/home/ana/classify", "shop", terms),
              HasSubstr("other machines do not have the folder; deploy a copy"));
}

}  // namespace
}  // namespace fairlead
