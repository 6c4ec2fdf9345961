// The examples of docs/how-to/kernel-tasks.md: each of its json blocks is read by what it is an example for.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "wire/kernel_task_codec.h"

namespace fairlead::wire {
namespace {

using nlohmann::json;

std::vector<std::string> blocks(const std::string& language) {
  std::ifstream page(KERNEL_TASKS_PAGE);
  EXPECT_TRUE(page) << KERNEL_TASKS_PAGE;
  std::vector<std::string> found;
  bool is_inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line == "```" + language && !is_inside) {
      is_inside = true;
      found.emplace_back();
    } else if (line == "```") {
      is_inside = false;
    } else if (is_inside) {
      found.back() += line + "\n";
    }
  }
  return found;
}

KernelTask first_task() {
  auto task = kernel_task_from_json(blocks("json").at(0));
  EXPECT_TRUE(task) << task.error().message;
  for (KernelModule& module : task->modules) module.sha256.assign(32, 'd');
  return *task;
}

// What saxpy.ptx of the page declares; the cuda tests read it there.
const KernelSignature kSaxpy{
    .name = "saxpy", .parameters = {{0, 4}, {4, 4}, {8, 8}, {16, 8}, {24, 8}}, .max_threads = 256};

TEST(KernelTasksPage, ItsTaskIsValid) {
  const Status status = validate_task(first_task(), {{kSaxpy}}, {.memory = gib(80)});
  EXPECT_TRUE(status) << status.error().message;
}

TEST(KernelTasksPage, ItsRequestHoldsATaskAndACallOfIt) {
  const auto request = kernel_task_request_from_json(blocks("json").at(4));
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(validate_request(*request));
  const auto task = kernel_task_from_json(request->task);
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ(task->modules.at(0).name, request->files.at(0).name);
  const auto call = kernel_task_call_from_json(*task, request->call);
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_TRUE(validate_call(*task, *call));
}

TEST(KernelTasksPage, EveryJsonBlockIsACallTheTaskTheAnswerOrTheRequest) {
  KernelTask pair = first_task();  // the second call brings two numbers
  pair.buffers[1].bytes = Bytes(8);
  pair.buffers[1].shape = {2};
  std::size_t calls = 0;
  for (const std::string& block : blocks("json")) {
    const json document = json::parse(block);
    if (!document.contains("inputs")) continue;
    const KernelTask& task = document["inputs"]["x"].contains("key") ? first_task() : pair;
    const auto call = kernel_task_call_from_json(task, block);
    ASSERT_TRUE(call) << call.error().message;
    const Status status = validate_call(task, *call);
    EXPECT_TRUE(status) << status.error().message;
    ++calls;
  }
  EXPECT_EQ(calls + 3, blocks("json").size());  // and the task, the answer and the request
}

TEST(KernelTasksPage, ItsAnswerIsWhatIsAnswered) {
  KernelTaskAnswer answer{.outputs = {{.buffer = 2, .key = "results/17"}}};
  answer.phases = {.kernel_run = Duration(41200),
                   .kernel_init = Duration(0),
                   .device_malloc = Duration(0),
                   .device_copy = Duration(12500),
                   .data_layer = Duration(3000),
                   .overhead = Duration(9750)};
  EXPECT_EQ(json::parse(kernel_task_answer_to_json(first_task(), answer)), json::parse(blocks("json").at(2)));
}

TEST(KernelTasksPage, ItsBytesAreTheCalls) {
  const auto call = kernel_task_call_from_json(first_task(), blocks("json").at(1));
  ASSERT_TRUE(call);
  std::string text;
  for (const char byte : encode(*call)) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  std::string shown = blocks("hex").at(0);
  std::erase_if(shown, [](char c) { return c == ' ' || c == '\n'; });
  EXPECT_EQ(text, shown);
  EXPECT_EQ(text.size(), 2 * 39U);
}

}  // namespace
}  // namespace fairlead::wire
