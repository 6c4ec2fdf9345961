#include "shim/page.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <thread>
#include <vector>

namespace fairlead::shim {
namespace {

// A page as the node makes it.
class NodePage {
 public:
  explicit NodePage(std::uint32_t version = wire::kShimVersion) : descriptor_(::memfd_create("page", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(descriptor_, 4096), 0);
    void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    page_ = new (memory) wire::ShimPage;
    page_->version = version;
  }
  ~NodePage() {
    ::munmap(page_, 4096);
    ::close(descriptor_);
  }
  NodePage(const NodePage&) = delete;
  NodePage& operator=(const NodePage&) = delete;
  int descriptor() const { return descriptor_; }
  wire::ShimPage* operator->() const { return page_; }

 private:
  int descriptor_;
  wire::ShimPage* page_;
};

class Page : public ::testing::Test {
 protected:
  void SetUp() override { begin_page(); }
};

TEST_F(Page, CountersMoveToTheNodesPageAndTheCapIsTheNodes) {
  page().held.store(5);
  page().launches.store(7);
  NodePage node;
  node->memory_cap.store(100);
  ASSERT_TRUE(adopt_page(node.descriptor()));
  EXPECT_EQ(node->held.load(), 5U);
  EXPECT_EQ(node->launches.load(), 7U);
  EXPECT_EQ(page().memory_cap.load(), 100U);
  page().held.fetch_add(1);
  EXPECT_EQ(node->held.load(), 6U);
}

TEST_F(Page, NothingIsLostWhileThreadsCount) {
  constexpr int kThreads = 4, kSteps = 20000, kPages = 50;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([] {
      for (int n = 0; n < kSteps; ++n) page().held.fetch_add(3);
    });
  }
  std::vector<NodePage> pages(kPages);
  for (const NodePage& node : pages) ASSERT_TRUE(adopt_page(node.descriptor()));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(page().held.load(), 3U * kThreads * kSteps);
}

TEST_F(Page, APageOfAnotherVersionIsRefused) {
  const NodePage node(wire::kShimVersion + 1);
  page().held.store(5);
  EXPECT_FALSE(adopt_page(node.descriptor()));
  EXPECT_FALSE(adopt_page(-1));
  EXPECT_EQ(page().held.load(), 5U);
}

TEST_F(Page, AChildOfAForkStartsAtNothing) {
  page().held.store(5);
  NodePage node;
  ASSERT_TRUE(adopt_page(node.descriptor()));
  begin_page();
  EXPECT_EQ(page().held.load(), 0U);
  page().held.fetch_add(1);
  EXPECT_EQ(node->held.load(), 5U);
}

}  // namespace
}  // namespace fairlead::shim
