// Against the software GPU's NVML, in a process of its own: the library keeps the state folder that it was loaded with. Planted and caught: an
// instance in use that loses its compute instance; what was there not made again; media profiles left out of the list.
#include "gpu/mig_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "abi/nvml.h"
#include "abi/nvml_mig.h"
#include "gpu/context.h"
#include "gpu/shared_library.h"

namespace fairlead {
namespace {

bool is_built() {
  return std::filesystem::exists(SOFTGPU_FOLDER "/libnvidia-ml.so.1");
}

// An A100 of 80 GB in MIG mode, without slices.
std::unique_ptr<MigControl> an_a100(const std::string& folder) {
  setenv("SOFTGPU_HOME", folder.c_str(), 1);
  setenv("SOFTGPU_PROFILE", "a100-80", 1);
  auto control = MigControl::load(SOFTGPU_FOLDER).value();
  const auto library = SharedLibrary::load(SOFTGPU_FOLDER, "libnvidia-ml.so.1", "").value();
  decltype(nvmlDeviceSetMigMode)* set_mode = nullptr;
  decltype(nvmlDeviceGetHandleByIndex_v2)* by_index = nullptr;
  nvmlDevice_t gpu = nullptr;
  nvmlReturn_t now = NVML_SUCCESS;
  const bool bound =
      library.bind(set_mode, "nvmlDeviceSetMigMode") && library.bind(by_index, "nvmlDeviceGetHandleByIndex_v2");
  if (!bound || by_index(0, &gpu) != NVML_SUCCESS) return nullptr;
  return set_mode(gpu, NVML_DEVICE_MIG_ENABLE, &now) == NVML_SUCCESS ? std::move(control) : nullptr;
}

MigPiece piece(const MigLayout& layout, const std::string& name, int start) {
  for (const MigLayout::Profile& one : layout.profiles) {
    if (one.name == name) return {.profile = one.id, .start = start, .memory_slices = one.memory_slices};
  }
  return {.profile = 999};
}

// "4g.40gb@0 1g.10gb@6": each with its compute instance.
std::string slices(const MigControl& control) {
  MigLayout layout = control.layouts().value().at(0);
  std::sort(layout.instances.begin(), layout.instances.end(),
            [](const auto& a, const auto& b) { return a.start < b.start; });
  std::string text;
  for (const MigLayout::Instance& one : layout.instances) {
    text += layout.profiles[one.profile].name + "@" + std::to_string(one.start) +
            (one.uuids.size() == 1 ? " " : "(empty) ");
  }
  return text;
}

MigEnd at(const MigControl& control, int start) {
  const MigLayout layout = control.layouts().value().at(0);
  for (const MigLayout::Instance& one : layout.instances) {
    if (one.start != start) continue;
    return {.id = one.id, .profile = layout.profiles[one.profile].id, .start = start, .uuid = one.uuids.at(0)};
  }
  return {.id = 999};
}

int failures = 0;
void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::cerr << "not so: " << what << "\n";
}

void cuts_and_undoes(const std::string& folder) {
  auto control = an_a100(folder);
  expect(control != nullptr, "MIG mode");
  const MigLayout empty = control->layouts().value().at(0);
  expect(empty.instances.empty() && empty.profiles.size() >= 6, "profiles");
  expect(control
             ->cut(empty.gpu_uuid, {},
                   {piece(empty, "4g.40gb", 0), piece(empty, "1g.10gb", 4), piece(empty, "1g.10gb", 5),
                    piece(empty, "1g.10gb", 6)})
             .has_value(),
         "the first cut");
  expect(slices(*control) == "4g.40gb@0 1g.10gb@4 1g.10gb@5 1g.10gb@6 ", slices(*control));
  expect(control->cut(empty.gpu_uuid, {at(*control, 4), at(*control, 5)}, {piece(empty, "2g.20gb", 4)}).has_value(),
         "two become one");
  expect(slices(*control) == "4g.40gb@0 2g.20gb@4 1g.10gb@6 ", slices(*control));
  // What cannot be made: everything is as it was.
  const auto over =
      control->cut(empty.gpu_uuid, {at(*control, 4)}, {piece(empty, "1g.10gb", 4), piece(empty, "3g.40gb", 4)});
  expect(!over, "4 to 7 are not free");
  expect(slices(*control) == "4g.40gb@0 2g.20gb@4 1g.10gb@6 ", slices(*control));
  expect(!control->cut(empty.gpu_uuid, {{.id = 77, .uuid = "MIG-77"}}, {}), "no such instance");
  MigEnd other = at(*control, 4);
  other.uuid = at(*control, 6).uuid;
  expect(!control->cut(empty.gpu_uuid, {other}, {}), "its id is another instance's by now");
  other = at(*control, 4);
  other.profile = piece(empty, "1g.20gb", 4).profile;
  expect(!control->cut(empty.gpu_uuid, {other}, {}), "it is of another profile by now");
  expect(slices(*control) == "4g.40gb@0 2g.20gb@4 1g.10gb@6 ", slices(*control));
  expect(!control->cut("GPU-of-nobody", {}, {}), "no such GPU");
  // Of two, the second is in use.
  const MigLayout now = control->layouts().value().at(0);
  for (const MigLayout::Instance& one : now.instances) {
    if (one.start == 6) setenv("CUDA_VISIBLE_DEVICES", one.uuids[0].c_str(), 1);
  }
  const auto context = CudaContext::open(SOFTGPU_FOLDER, 0);
  expect(context.has_value(), context ? "" : context.error().message);
  const auto used = control->cut(empty.gpu_uuid, {at(*control, 4), at(*control, 6)}, {});
  expect(!used, "it is in use");
  expect(slices(*control) == "4g.40gb@0 2g.20gb@4 1g.10gb@6 ", slices(*control));
}

TEST(MigControlDeathTest, CutsSlicesAnewAndLeavesThemAsTheyWereOnAnError) {
  if (!is_built()) GTEST_SKIP() << "softgpu is not built";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  char state[] = "/tmp/fairlead-softgpu-XXXXXX";
  ASSERT_NE(mkdtemp(state), nullptr);
  EXPECT_EXIT(
      {
        cuts_and_undoes(state);
        std::_Exit(failures == 0 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  std::filesystem::remove_all(state);
}

TEST(MigControl, WhereThereIsNoDriverItSaysSo) {
  const auto control = MigControl::load("/nonexistent");
  ASSERT_FALSE(control);
  EXPECT_THAT(control.error().message, testing::HasSubstr("/nonexistent/libnvidia-ml.so.1"));
}

}  // namespace
}  // namespace fairlead
