// The order of random graphs against the definition: two kernels are ordered when they touch one buffer and one of them
// writes it, and whatever is ordered through others follows.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/kernel_task_testing.h"

namespace fairlead {
namespace {

using Access = BufferArgument::Access;
using Order = std::vector<std::vector<bool>>;  // [later][earlier]

bool writes(const BufferArgument& argument, const KernelTask& task) {
  if (argument.access != Access::kByRole) return argument.access != Access::kRead;
  const BufferRole role = task.buffers[argument.buffer].role;
  return role != BufferRole::kInput && role != BufferRole::kConstant;
}

bool conflict(const KernelTask& task, const KernelLaunch& a, const KernelLaunch& b) {
  for (const KernelArgument& x : a.arguments) {
    for (const KernelArgument& y : b.arguments) {
      const auto& left = std::get<BufferArgument>(x);
      const auto& right = std::get<BufferArgument>(y);
      if (left.buffer == right.buffer && (writes(left, task) || writes(right, task))) return true;
    }
  }
  return false;
}

void close(Order& order) {
  for (std::size_t middle = 0; middle < order.size(); ++middle) {
    for (std::size_t later = 0; later < order.size(); ++later) {
      for (std::size_t earlier = 0; earlier < order.size(); ++earlier) {
        if (order[later][middle] && order[middle][earlier]) order[later][earlier] = true;
      }
    }
  }
}

// All that must follow, without what follows from two others.
std::vector<std::vector<std::uint32_t>> naive_dependencies(const KernelTask& task) {
  const std::size_t count = task.kernels.size();
  Order order(count, std::vector<bool>(count));
  for (std::size_t later = 0; later < count; ++later) {
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      order[later][earlier] = conflict(task, task.kernels[later], task.kernels[earlier]);
    }
  }
  close(order);
  std::vector<std::vector<std::uint32_t>> result(count);
  for (std::size_t later = 0; later < count; ++later) {
    for (std::uint32_t earlier = 0; earlier < later; ++earlier) {
      bool through_another = false;
      for (std::size_t middle = 0; middle < count; ++middle) {
        through_another = through_another || (order[later][middle] && order[middle][earlier]);
      }
      if (order[later][earlier] && !through_another) result[later].push_back(earlier);
    }
  }
  return result;
}

BufferArgument random_argument(std::uint32_t buffers) {
  return {
      .buffer = *rc::gen::inRange<std::uint32_t>(0, buffers),
      .access = *rc::gen::element(Access::kByRole, Access::kRead, Access::kRead, Access::kWrite, Access::kReadWrite)};
}

KernelTask random_task() {
  KernelTask task;
  const auto buffers = *rc::gen::inRange<std::uint32_t>(1, 12);
  for (std::uint32_t i = 0; i < buffers; ++i) {
    const auto role = *rc::gen::element(BufferRole::kInput, BufferRole::kTemporary, BufferRole::kOutput);
    task.buffers.push_back(testing::buffer(std::to_string(i), role));
  }
  const auto kernels = *rc::gen::inRange<std::size_t>(0, 30);
  for (std::size_t i = 0; i < kernels; ++i) {
    KernelLaunch kernel{.kernel = "k"};
    const auto arguments = *rc::gen::inRange<std::size_t>(0, 4);
    for (std::size_t n = 0; n < arguments; ++n) kernel.arguments.emplace_back(random_argument(buffers));
    task.kernels.push_back(kernel);
  }
  return task;
}

TEST(KernelOrderProperty, IsTheReductionOfTheDefinition) {
  EXPECT_TRUE(rc::check([] {
    const KernelTask task = random_task();
    RC_ASSERT(dependencies(task) == naive_dependencies(task));
  }));
}

}  // namespace
}  // namespace fairlead
