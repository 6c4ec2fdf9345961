#include "softgpu/ptx/native/assembler.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <functional>

#include "softgpu/ptx/native/code_memory.h"
#include "softgpu/ptx/native/vector_code.h"

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

struct Encoding {
  const char* what;
  std::function<void(Assembler&)> write;
  std::vector<std::uint8_t> bytes;
};

void expect_encodings(const std::vector<Encoding>& encodings) {
  for (const Encoding& encoding : encodings) {
    Assembler assembler;
    encoding.write(assembler);
    EXPECT_EQ(assembler.finish(), encoding.bytes) << encoding.what;
  }
}

// As binutils reads them, and but for register to register, where there are two encodings, writes them.
TEST(Assembler, MovesAreEncodedAsTheManualSays) {
  using A = Assembler;
  expect_encodings({
      {"mov r9, r10", [](A& as) { as.move(r9, r10); }, {0x4d, 0x8b, 0xca}},
      {"mov rax, [rbx+8]",
       [](A& as) {
         as.load(rax, {rbx, 8});
       },
       {0x48, 0x8b, 0x43, 0x08}},
      {"mov r14, [rsp+256]",
       [](A& as) {
         as.load(r14, {rsp, 256});
       },
       {0x4c, 0x8b, 0xb4, 0x24, 0x00, 0x01, 0x00, 0x00}},
      {"mov ecx, [r12-128]",
       [](A& as) {
         as.load32(rcx, {r12, -128});
       },
       {0x41, 0x8b, 0x4c, 0x24, 0x80}},
      {"mov [r13], rdi",
       [](A& as) {
         as.store(Memory{r13, 0}, rdi);
       },
       {0x49, 0x89, 0x7d, 0x00}},
      {"mov [rbp+4], r15d",
       [](A& as) {
         as.store32({rbp, 4}, r15);
       },
       {0x44, 0x89, 0x7d, 0x04}},
      {"mov qword [rsp+24], -1",
       [](A& as) {
         as.store({rsp, 24}, -1);
       },
       {0x48, 0xc7, 0x44, 0x24, 0x18, 0xff, 0xff, 0xff, 0xff}},
      {"cmp byte [rdi+5], 0",
       [](A& as) {
         as.compare8({rdi, 5}, 0);
       },
       {0x80, 0x7f, 0x05, 0x00}},
      {"cmp qword [rsp+56], 1",
       [](A& as) {
         as.compare({rsp, 56}, 1);
       },
       {0x48, 0x83, 0x7c, 0x24, 0x38, 0x01}},
      {"mov r9d, 5", [](A& as) { as.move(r9, 5); }, {0x41, 0xb9, 0x05, 0x00, 0x00, 0x00}},
  });
}

TEST(Assembler, ArithmeticIsEncodedAsTheManualSays) {
  using A = Assembler;
  expect_encodings({
      {"sub r9, r8", [](A& as) { as.op(Integer::kSub, r9, r8); }, {0x4d, 0x2b, 0xc8}},
      {"or r10d, ecx", [](A& as) { as.op32(Integer::kOr, r10, rcx); }, {0x44, 0x0b, 0xd1}},
      {"cmp eax, r15d", [](A& as) { as.op32(Integer::kCmp, rax, r15); }, {0x41, 0x3b, 0xc7}},
      {"add rax, [rbx+16]",
       [](A& as) {
         as.op(Integer::kAdd, rax, Memory{rbx, 16});
       },
       {0x48, 0x03, 0x43, 0x10}},
      {"and eax, [rbp+64]",
       [](A& as) {
         as.op32(Integer::kAnd, rax, Memory{rbp, 64});
       },
       {0x23, 0x45, 0x40}},
      {"add r9, 1000", [](A& as) { as.op(Integer::kAdd, r9, 1000); }, {0x49, 0x81, 0xc1, 0xe8, 0x03, 0x00, 0x00}},
      {"sub ecx, 1000", [](A& as) { as.op32(Integer::kSub, rcx, 1000); }, {0x81, 0xe9, 0xe8, 0x03, 0x00, 0x00}},
      {"add [rbx+8], rcx",
       [](A& as) {
         as.add({rbx, 8}, rcx);
       },
       {0x48, 0x01, 0x4b, 0x08}},
      {"add qword [rbx+8], 1000",
       [](A& as) {
         as.add({rbx, 8}, 1000);
       },
       {0x48, 0x81, 0x43, 0x08, 0xe8, 0x03, 0x00, 0x00}},
      {"sub dword [rbx+8], 1000",
       [](A& as) {
         as.subtract32({rbx, 8}, 1000);
       },
       {0x81, 0x6b, 0x08, 0xe8, 0x03, 0x00, 0x00}},
      {"test r15d, 1000", [](A& as) { as.test32(r15, 1000); }, {0x41, 0xf7, 0xc7, 0xe8, 0x03, 0x00, 0x00}},
      {"shl r9d, 24", [](A& as) { as.shift_left32(r9, 24); }, {0x41, 0xc1, 0xe1, 0x18}},
      {"not eax", [](A& as) { as.not32(rax); }, {0xf7, 0xd0}},
      {"popcnt r12d, r15d", [](A& as) { as.population_count(r12, r15); }, {0xf3, 0x45, 0x0f, 0xb8, 0xe7}},
      {"imul rcx, r12, 1000", [](A& as) { as.multiply(rcx, r12, 1000); }, {0x49, 0x69, 0xcc, 0xe8, 0x03, 0x00, 0x00}},
  });
}

TEST(Assembler, CallsAreEncodedAsTheManualSays) {
  using A = Assembler;
  expect_encodings({
      {"push r12", [](A& as) { as.push(r12); }, {0x41, 0x54}},
      {"pop rbp", [](A& as) { as.pop(rbp); }, {0x5d}},
      {"mov rax, 0x123456789abc; call rax",
       [](A& as) { as.call(reinterpret_cast<const void*>(0x123456789abc)); },
       {0x48, 0xb8, 0xbc, 0x9a, 0x78, 0x56, 0x34, 0x12, 0x00, 0x00, 0xff, 0xd0}},
      {"mov eax, 5; jmp rax",
       [](A& as) { as.jump_to(reinterpret_cast<const void*>(5)); },
       {0xb8, 0x05, 0x00, 0x00, 0x00, 0xff, 0xe0}},
  });
}

TEST(Assembler, JumpsReachLabelsBeforeAndBehindThem) {
  Assembler assembler;
  const Assembler::Label before = assembler.label(), behind = assembler.label();
  assembler.bind(before);
  assembler.jump_if(Condition::kBelow, behind);
  assembler.jump(before);
  assembler.bind(behind);
  assembler.ret();
  const std::vector<std::uint8_t> expected = {0x0f, 0x82, 5, 0, 0, 0, 0xe9, 0xf5, 0xff, 0xff, 0xff, 0xc3};
  EXPECT_EQ(assembler.finish(), expected);
  EXPECT_EQ(assembler.size(), 0u);
}

TEST(Assembler, VectorInstructionsAreEncodedAsTheManualSays) {
  using V = VectorCode;
  constexpr VectorOpcode kAddFloats{1, 0, 0, 0x58}, kAddQuads{1, 1, 0, 0xd4}, kFused{2, 1, 0, 0xb8},
      kPermute{3, 1, 1, 0x00}, kBroadcast{2, 1, 0, 0x18};
  struct VectorEncoding {
    const char* what;
    std::function<void(V&)> write;
    std::vector<std::uint8_t> bytes;
  };
  const VectorEncoding encodings[] = {
      {"vaddps ymm1, ymm2, ymm3", [&](V& v) { v.op(kAddFloats, 1, 2, 3); }, {0xc5, 0xec, 0x58, 0xcb}},
      {"vaddps ymm9, ymm10, ymm11", [&](V& v) { v.op(kAddFloats, 9, 10, 11); }, {0xc4, 0x41, 0x2c, 0x58, 0xcb}},
      {"vaddps ymm9, ymm10, ymm3", [&](V& v) { v.op(kAddFloats, 9, 10, 3); }, {0xc5, 0x2c, 0x58, 0xcb}},
      {"vpaddq ymm12, ymm12, [rsp+32]",
       [&](V& v) {
         v.op(kAddQuads, 12, 12, Memory{rsp, 32});
       },
       {0xc5, 0x1d, 0xd4, 0x64, 0x24, 0x20}},
      {"vfmadd231ps ymm0, ymm12, [rbp+128]",
       [&](V& v) {
         v.op(kFused, 0, 12, Memory{rbp, 128});
       },
       {0xc4, 0xe2, 0x1d, 0xb8, 0x85, 0x80, 0x00, 0x00, 0x00}},
      {"vpermq ymm5, ymm12, 0xd8", [&](V& v) { v.op(kPermute, 5, 0, 12, 0xd8); }, {0xc4, 0xc3, 0xfd, 0x00, 0xec, 0xd8}},
      {"vbroadcastss ymm14, [r8]",
       [&](V& v) {
         v.op(kBroadcast, 14, 0, Memory{r8, 0});
       },
       {0xc4, 0x42, 0x7d, 0x18, 0x70, 0x00}},
      {"vmovups ymm13, [r13-32]",
       [](V& v) {
         v.load(13, {r13, -32});
       },
       {0xc4, 0x41, 0x7c, 0x10, 0x6d, 0xe0}},
      {"vmovups [rax+300], ymm4",
       [](V& v) {
         v.store({rax, 300}, 4);
       },
       {0xc5, 0xfc, 0x11, 0xa0, 0x2c, 0x01, 0x00, 0x00}},
      {"vmovaps ymm3, ymm15", [](V& v) { v.move(3, 15); }, {0xc4, 0xc1, 0x7c, 0x28, 0xdf}},
      {"nothing", [](V& v) { v.move(3, 3); }, {}},
      {"vmovaps ymm3, ymm15", [](V& v) { v.copy(3, 15); }, {0xc4, 0xc1, 0x7c, 0x28, 0xdf}},
      {"vmovmskps r9d, ymm14", [](V& v) { v.signs(r9, 14); }, {0xc4, 0x41, 0x7c, 0x50, 0xce}},
      {"vzeroupper", [](V& v) { v.zero_upper(); }, {0xc5, 0xf8, 0x77}},
  };
  for (const VectorEncoding& encoding : encodings) {
    CodeBuffer buffer;
    VectorCode code(buffer);
    encoding.write(code);
    EXPECT_EQ(buffer.finish(), encoding.bytes) << encoding.what;
  }
}

}  // namespace
}  // namespace softgpu::ptx::native
