#include "softgpu/ptx/native/assembler.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>

#include "softgpu/ptx/native/code_memory.h"

namespace softgpu::ptx::native {
namespace {

constexpr std::size_t kPage = 4096;

// Which pages of a stack are in use after `code` ran on it, the highest first.
std::vector<bool> touched_pages(const std::uint8_t* code, std::size_t stack_pages) {
  const std::size_t bytes = stack_pages * kPage;
  void* stack = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(stack, MAP_FAILED);
  madvise(stack, bytes, MADV_NOHUGEPAGE);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  EXPECT_EQ(pthread_attr_setstack(&attributes, stack, bytes), 0);
  pthread_t thread{};
  void* (*run)(void*) = [](void* entry) -> void* {
    reinterpret_cast<void (*)()>(entry)();
    return nullptr;
  };
  EXPECT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::uint8_t*>(code)), 0);
  pthread_join(thread, nullptr);
  std::vector<unsigned char> resident(stack_pages);
  EXPECT_EQ(mincore(stack, bytes, resident.data()), 0);
  munmap(stack, bytes);
  return {resident.rbegin(), resident.rend()};
}

TEST(Assembler, ReservedStackIsTouchedPageByPage) {
  constexpr std::size_t kReserved = 64;
  Assembler assembler;
  assembler.reserve_stack(kReserved * kPage + 40);
  assembler.op(Integer::kAdd, rsp, kReserved * kPage + 40);
  assembler.ret();
  CodeMemory memory;
  const std::vector<std::uint8_t> code = assembler.finish();
  const std::uint8_t* entry = memory.store(code);
  ASSERT_NE(entry, nullptr);
  const std::vector<bool> touched = touched_pages(entry, 4 * kReserved);
  EXPECT_EQ(std::count(touched.begin(), touched.begin() + kReserved, false), 0);
  EXPECT_FALSE(touched.back());  // the stack is larger, so there was something to see
}

}  // namespace
}  // namespace softgpu::ptx::native
