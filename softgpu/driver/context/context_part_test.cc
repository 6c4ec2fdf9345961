#include "softgpu/driver/context/context_part.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

// Stands for a context, of which parts keep the address only.
struct CUctx_st {
  std::string closed;
  softgpu::ContextParts* parts = nullptr;
};

namespace softgpu {
namespace {

template <ContextPart::Kind kind, char name>
class NamedPart final : public ContextPart {
 public:
  static constexpr Kind kKind = kind;
  explicit NamedPart(CUctx_st& context) : context_(context) {}
  void close() override { context_.closed += name; }

 private:
  CUctx_st& context_;
};

using Heap = NamedPart<ContextPart::Kind::kKernelHeap, 'h'>;
using Managed = NamedPart<ContextPart::Kind::kManagedMemory, 'm'>;
using Modules = NamedPart<ContextPart::Kind::kModules, 'c'>;
using Captures = NamedPart<ContextPart::Kind::kCaptures, 'g'>;

TEST(ContextParts, AreMadeOnceAndOnlyWhenAskedFor) {
  CUctx_st context;
  ContextParts parts(context);
  parts.close();
  EXPECT_EQ(context.closed, "");
  Modules& first = parts.get<Modules>();
  EXPECT_EQ(&first, &parts.get<Modules>());
  EXPECT_NE(static_cast<ContextPart*>(&first), &parts.get<Heap>());
}

// Modules are unloaded before managed memory goes, and the kernels' heap last, in whatever order they were made.
TEST(ContextParts, AreClosedFromTheTop) {
  CUctx_st context;
  ContextParts parts(context);
  parts.get<Managed>();
  parts.get<Captures>();
  parts.get<Heap>();
  parts.get<Modules>();
  parts.close();
  EXPECT_EQ(context.closed, "gcmh");
}

TEST(ContextParts, StayForTheNextActivation) {
  CUctx_st context;
  ContextParts parts(context);
  Modules& first = parts.get<Modules>();
  parts.close();
  EXPECT_EQ(&first, &parts.get<Modules>());
  parts.close();
  EXPECT_EQ(context.closed, "cc");
}

// While a part is being made, another is made and put in: the first one gives way.
class OvertakenPart final : public ContextPart {
 public:
  static constexpr Kind kKind = Kind::kAccess;
  explicit OvertakenPart(CUctx_st& context) {
    context.closed += 'n';
    if (context.closed.size() == 1) first_in = &context.parts->get<OvertakenPart>();
  }
  void close() override {}
  static inline OvertakenPart* first_in = nullptr;
};

TEST(ContextParts, OfTwoThatAreMadeAtATimeTheFirstThatIsPutInStays) {
  CUctx_st context;
  ContextParts parts(context);
  context.parts = &parts;
  OvertakenPart& got = parts.get<OvertakenPart>();
  EXPECT_EQ(context.closed, "nn");
  EXPECT_EQ(&got, OvertakenPart::first_in);
  EXPECT_EQ(&got, &parts.get<OvertakenPart>());
}

TEST(ContextParts, ThreadsThatAskAtATimeGetTheSame) {
  for (int round = 0; round < 200; ++round) {
    CUctx_st context;
    ContextParts parts(context);
    std::vector<Modules*> got(4);
    {
      std::vector<std::jthread> threads;
      for (Modules*& mine : got) threads.emplace_back([&parts, &mine] { mine = &parts.get<Modules>(); });
    }
    for (const Modules* mine : got) EXPECT_EQ(mine, got.front());
  }
}

}  // namespace
}  // namespace softgpu
