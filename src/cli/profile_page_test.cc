#include "cli/profile_page.h"

#include <gtest/gtest.h>

namespace fairlead::cli {
namespace {

TEST(ProfilePage, ShowsEachTrialAndEscapesWhatOthersWrote) {
  FunctionProfile profile{.function = "f", .code_sha256 = "c", .device = "<script>alert(1)</script>"};
  profile.trials = {{.width_percent = 12, .rate_per_s = 37.1, .error = 0.02, .why = "a & b"},
                    {.width_percent = 24, .rate_per_s = 71.4, .error = 0.02}};
  profile.work_ms = 311;
  profile.saturation_percent = 24;
  const std::string page = profile_page(profile);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_NE(page.find("a &amp; b"), std::string::npos);
  std::size_t dots = 0, cells = 0;
  for (std::size_t at = page.find("<circle"); at != std::string::npos; at = page.find("<circle", at + 1)) ++dots;
  for (std::size_t at = page.find("<rect"); at != std::string::npos; at = page.find("<rect", at + 1)) ++cells;
  EXPECT_EQ(dots, 2u);
  EXPECT_EQ(cells, 400u);
}

TEST(ProfilePage, SaysWhatItIsBesideACopyOrWhyNot) {
  FunctionProfile profile{.function = "f", .code_sha256 = "c", .device = "V100"};
  profile.trials = {{.width_percent = 12, .rate_per_s = 37.1, .error = 0.02}};
  EXPECT_EQ(profile_page(profile).find("copy of itself"), std::string::npos) << "one from before";
  profile.alone = "no <room>";
  EXPECT_NE(profile_page(profile).find("Not tried beside a copy of itself: no &lt;room&gt;."), std::string::npos);
  profile.alone.clear();
  profile.beside = TrialBeside{.trial = profile.trials[0], .slowdown = 1.25, .error = 0.03};
  EXPECT_NE(profile_page(profile).find("Beside a copy of itself, each 12 % of the SMs x 100 % of the time: 37.1 "
                                       "requests/s, 1.25 times as slow as alone +- 3.0 %."),
            std::string::npos);
}

}  // namespace
}  // namespace fairlead::cli
