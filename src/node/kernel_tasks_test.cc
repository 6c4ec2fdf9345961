#include "node/kernel_tasks.h"

#include <gtest/gtest.h>

#include <fstream>

#include "store/test_folder.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;

// Bundles as strangers make them.
class KernelTasksTest : public testing::Test {
 protected:
  std::string message() {
    const auto task = read_kernel_task(folder_.path());
    return task ? "" : task.error().message;
  }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }

  store::TestFolder folder_;
};

TEST_F(KernelTasksTest, AFolderOfTheTasksNameIsNoTask) {
  fs::create_directory(folder_ / "task.json");
  EXPECT_NE(message(), "");
}

TEST_F(KernelTasksTest, AModuleThatIsAFolderIsNamed) {
  fs::create_directory(folder_ / "kernels.ptx");
  write("task.json", R"({"buffers": {"y": {"role": "output", "type": "f32", "shape": [1]}},
                         "kernels": [{"module": "kernels.ptx", "kernel": "f", "grid": [1], "block": [1], "arguments": [{"buffer": "y"}]}]})");
  EXPECT_NE(message().find("kernels.ptx"), std::string::npos) << message();
}

TEST_F(KernelTasksTest, ABootstrapMakesItAProgram) {
  write("task.json", "{}");
  EXPECT_TRUE(is_kernel_task(folder_.path()));
  write("bootstrap", "");
  EXPECT_FALSE(is_kernel_task(folder_.path()));
}

}  // namespace
}  // namespace fairlead
