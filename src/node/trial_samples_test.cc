#include "node/trial_samples.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "store/test_folder.h"

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TrialSamples : public testing::Test {
 protected:
  Result<std::vector<std::string>> read(const std::string& file) {
    return trial_samples({.name = "f", .code_path = folder / "code"}, {.file = file, .payloads = {}});
  }
  store::TestFolder folder;
};

TEST_F(TrialSamples, AreThoseOfTheTagOrOfAFileOfTheCode) {
  EXPECT_THAT(trial_samples({.name = "f"}, {.file = "", .payloads = {"1"}}).value(), ElementsAre("1"));
  folder.write("code/samples.json", R"([{"n": 1}, 2])");
  EXPECT_THAT(read("samples.json").value(), ElementsAre(R"({"n":1})", "2"));
}

// Code is a stranger's: what it links to is read by the node, and would be sent to the function.
TEST_F(TrialSamples, NothingButAFileOfTheCodeIsRead) {
  folder.write("secret.json", R"(["the node's own"])");
  folder.write("code/large.json", "[\"" + std::string(kMaxSamplesBytes, 'x') + "\"]");
  folder.write("code/no-list.json", "{}");
  std::filesystem::create_symlink(folder / "secret.json", folder / "code/link.json");
  std::filesystem::create_directory(folder / "code/folder");
  ASSERT_EQ(mkfifo((folder / "code/pipe").c_str(), 0600), 0);
  for (const char* name : {"link.json", "folder", "pipe", "missing.json"}) {
    EXPECT_THAT(read(name).error().message, HasSubstr("has no file of that name at its top")) << name;
  }
  EXPECT_THAT(read("large.json").error().message, HasSubstr("1048576 are the most"));
  EXPECT_THAT(read("no-list.json").error().message, HasSubstr("must be a JSON array"));
}

}  // namespace
}  // namespace fairlead
