// The built-in applications agree with the paper's Table 5.
#include "sim/pipelines/applications.h"

#include <gtest/gtest.h>

#include "decide/pipeline/mig_geometry.h"

namespace fairlead::sim {
namespace {

// The smallest type on which some cut of the function runs, all stages on slices of that type.
std::string least_cut(const PipelineModel& model) {
  for (std::size_t type = 0; type < model.types().size(); ++type) {
    for (const Partition& one : model.partitions()) {
      if (std::all_of(one.stages.begin(), one.stages.end(),
                      [&](const StageShape& stage) { return stage.fits(type); })) {
        return model.types()[type].name;
      }
    }
  }
  return "";
}

TEST(Applications, NeedTheSlicesOfTable5) {
  std::vector<SliceType> types;
  for (const SliceType& one : (*mig_geometry("a100-80"))->types()) {
    if (one.name != "1g2x" && one.name != "7g") types.push_back(one);
  }
  const std::pair<const char*, const char*> kTable[4][3] = {{{"1g", "1g"}, {"2g", "1g"}, {"3g", "2g"}},
                                                            {{"1g", "1g"}, {"2g", "1g"}, {"3g", "2g"}},
                                                            {{"1g", "1g"}, {"2g", "1g"}, {"3g", "2g"}},
                                                            {{"2g", "1g"}, {"3g", "1g"}, {"", "3g"}}};  // the paper: 4g
  const char* const kVariants[] = {"small", "medium", "large"};
  for (std::size_t variant = 0; variant < 3; ++variant) {
    const auto all = applications(kVariants[variant]);
    ASSERT_EQ(all.size(), 4u);
    for (std::size_t which = 0; which < 4; ++which) {
      EXPECT_FALSE(check_dag(all[which].dag));
      const PipelineModel model(all[which].dag, types);
      std::string alone;
      for (std::size_t type = 0; type < types.size() && alone.empty(); ++type) {
        if (model.alone(type)) alone = types[type].name;
      }
      EXPECT_EQ(alone, kTable[which][variant].first) << all[which].name;
      EXPECT_EQ(least_cut(model), kTable[which][variant].second) << all[which].name;
    }
  }
}

TEST(Applications, OneIsFoundByItsName) {
  EXPECT_EQ(application_named("app3-medium")->dag.components.size(), 5u);
  EXPECT_GT(application_named("app0-large")->dag.objective, Duration(0));
  EXPECT_NE(application_named("app9").error().message.find("app0-small"), std::string::npos);
}

TEST(Applications, RandomChainsAreDagsThatFitAndRepeat) {
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    for (const auto* variant : {"small", "medium", "large"}) {
      const Application one = random_chain(variant, seed);
      EXPECT_FALSE(check_dag(one.dag));
      EXPECT_EQ(one.dag, random_chain(variant, seed).dag);
    }
  }
}

}  // namespace
}  // namespace fairlead::sim
