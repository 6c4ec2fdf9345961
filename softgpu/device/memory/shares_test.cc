// Memory held by descriptors, and pages that give way.
#include "softgpu/device/memory/shares.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "softgpu/device/device.h"
#include "softgpu/device/testing.h"

namespace softgpu {
namespace {

using testing::Child;
using testing::Environment;
using testing::TemporaryHome;

// 16 GiB / 64: 128 pages.
const Environment kSmall = {{"SOFTGPU_MEMORY_SCALE", "64"}};

// One process's view; never destroyed, because closing the slots file would end the process's membership.
struct View {
  Machine machine;
  std::optional<Clients> clients;
  std::unique_ptr<Device> device;
  Owner self;
};

View& open_view() {
  auto& view = *new View;
  view.machine = open_machine().value();
  view.clients = Clients::open(view.machine).value();
  view.self = view.clients->join().value();
  view.device = Device::open(view.machine, *view.clients, view.self, 0).value();
  return view;
}

std::uint64_t used(const Clients& clients, const Machine& machine) {
  return DeviceView::open(machine, clients, 0).value()->use().total;
}

void send_descriptor(int socket, int descriptor) {
  char byte = 'd';
  iovec data = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  EXPECT_EQ(::sendmsg(socket, &message, 0), 1);
}

int receive_descriptor(int socket) {
  char byte = 0;
  iovec data = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  EXPECT_EQ(::recvmsg(socket, &message, 0), 1);
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
  return descriptor;
}

// Makes a share of 3 pages and sends its descriptor.
void export_share(int socket) {
  View& view = open_view();
  Share share = view.clients->shares().create({ShareContent::Kind::kAllocation, 0, 3, view.self}).value();
  EXPECT_FALSE(view.device->claim_pages({PageEntry::Kind::kShared, {}, share.name(), 0}, 3).empty());
  send_descriptor(socket, share.duplicate());
  new Share(std::move(share));  // held until the process ends
}

// How many descriptors of the file this process has. Without allocation: for a child of a process with threads.
int descriptors_of(const struct stat& file) {
  int count = 0;
  for (int descriptor = 3; descriptor < 256; ++descriptor) {
    struct stat found = {};
    if (::fstat(descriptor, &found) == 0 && found.st_dev == file.st_dev && found.st_ino == file.st_ino) ++count;
  }
  return count;
}

// The exporter is killed with its descriptor in flight: the pages stay until the socket that holds it is closed.
TEST(Shares, LiveInFlightAfterTheirMakerIsKilled) {
  const TemporaryHome home(kSmall);
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  const Machine machine = open_machine().value();
  const Clients clients = Clients::open(machine).value();
  const std::uint64_t before = used(clients, machine);
  Child exporter([&] { export_share(sockets[1]); });
  ASSERT_TRUE(exporter.ran());
  exporter.kill();
  ::close(sockets[1]);
  EXPECT_EQ(used(clients, machine), before + 3);
  const int descriptor = receive_descriptor(sockets[0]);
  ::close(sockets[0]);
  {
    const auto share = clients.shares().import(descriptor);
    ASSERT_TRUE(share.has_value());
    EXPECT_EQ(share->content().page_count, 3U);
    ::close(descriptor);
    EXPECT_EQ(used(clients, machine), before + 3);
    EXPECT_TRUE(clients.shares().alive(share->name()));
  }
  EXPECT_EQ(used(clients, machine), before);
}

TEST(Shares, AChildOfForkHoldsNothing) {
  const TemporaryHome home(kSmall);
  const Machine machine = open_machine().value();
  const Clients clients = Clients::open(machine).value();
  Share share = clients.shares().create({ShareContent::Kind::kAllocation, 0, 1, {}}).value();
  const ShareName name = share.name();
  Child child([] {});
  share.close();
  EXPECT_FALSE(clients.shares().alive(name));
}

TEST(Shares, ANumberIsUsedAgainWithAnotherGeneration) {
  const TemporaryHome home(kSmall);
  const Machine machine = open_machine().value();
  const Clients clients = Clients::open(machine).value();
  ShareName first;
  for (unsigned i = 0; i <= kMaxShares; ++i) {
    const Share share = clients.shares().create({ShareContent::Kind::kPool, 0, 0, {}}).value();
    if (i == 0) first = share.name();
    if (i < kMaxShares) continue;
    EXPECT_EQ(share.name().slot, first.slot);
    EXPECT_EQ(share.name().generation, first.generation + 1);
    EXPECT_FALSE(clients.shares().alive(first));
  }
}

// 128 pages, 120 of them evictable: a claim of 20 takes the 12 oldest, and no more.
TEST(PagePool, TheOldestEvictablePagesGiveWay) {
  const TemporaryHome home(kSmall);
  Child child([] {
    View& view = open_view();
    PagePool& pool = view.device->pool();
    const PageEntry oldest = {PageEntry::Kind::kEvictable, view.self, {}, 1000};
    const auto evictable = view.device->claim_pages(oldest, 120);
    const auto taken = view.device->claim_pages({PageEntry::Kind::kPrivate, view.self, {}, kNoWindowPage}, 20);
    std::uint64_t left = 0;
    std::uint64_t claim = 0;
    for (const PageRun& run : evictable) {
      for (std::uint64_t page = run.first; page < run.first + run.count; ++page, ++claim) {
        const bool held = pool.holds(page, {PageEntry::Kind::kEvictable, view.self, {}, 1000 + claim});
        if (held != (claim >= 12)) ::_exit(1);
        left += held ? 1 : 0;
      }
    }
    if (taken.empty() || left != 108) ::_exit(1);
    // More than can be had takes nothing.
    if (!view.device->claim_pages({PageEntry::Kind::kPrivate, view.self, {}, kNoWindowPage}, 109).empty()) ::_exit(1);
    if (pool.use().total != 128) ::_exit(1);
  });
  EXPECT_TRUE(child.ran());
}

// A child that begins while another thread makes shares has none of them, at whatever instant.
TEST(Shares, AreNotInheritedByAChildOfFork) {
  const TemporaryHome home(kSmall);
  const Machine machine = open_machine().value();
  const Clients clients = Clients::open(machine).value();
  struct stat file = {};
  ASSERT_EQ(::stat(machine.path("share_locks").c_str(), &file), 0);
  const int before = descriptors_of(file);
  std::atomic<bool> stop{false};
  std::thread maker([&] {
    while (!stop) {
      const auto made = clients.shares().create({ShareContent::Kind::kAllocation, 0, 1, {1, 1}});
      EXPECT_TRUE(made);
    }
  });
  for (int i = 0; i < 200; ++i) {
    const int child = ::fork();
    if (child == 0) ::_exit(descriptors_of(file) - before);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  stop = true;
  maker.join();
}

}  // namespace
}  // namespace softgpu
