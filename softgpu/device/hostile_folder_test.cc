// A state folder in which somebody else writes: links, FIFOs and folders in the place of files, locks that are never given
// up, slots taken by the hundred, words changed behind their reader's back. Nothing outside the folder may be touched,
// nothing may wait for ever, and the folder's owner may not be led out of its tables.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "softgpu/device/device_testing.h"
#include "softgpu/device/files.h"
#include "softgpu/device/shared_events.h"

namespace softgpu {
namespace {

namespace fs = std::filesystem;
using testing::Child;
using ::testing::HasSubstr;
using testing::kSmall;
using testing::open_client;
using testing::TemporaryHome;

constexpr uid_t kMember = 65530;
constexpr unsigned kPatienceSeconds = 60;  // a process that waits for ever ends by SIGALRM

// Opens everything that a client and a monitor open; the error, or empty.
std::string open_everything() {
  const auto machine = open_machine();
  if (!machine) return machine.error();
  auto clients = Clients::open(*machine);
  if (!clients) return clients.error();
  const auto self = clients->join();
  if (!self) return self.error();
  const auto device = Device::open(*machine, *clients, *self, 0);
  return device ? "" : device.error();
}

// The same in a process of its own, of user `id` where it is not 0.
std::string open_everything_elsewhere(uid_t id = 0) {
  int report[2];
  if (::pipe(report) != 0) std::abort();
  const int pid = ::fork();
  if (pid == 0) {
    ::alarm(kPatienceSeconds);
    if (id != 0 && (::setgid(id) != 0 || ::setuid(id) != 0)) ::_exit(1);
    const std::string error = open_everything();
    ::_exit(::write(report[1], error.data(), error.size()) == static_cast<ssize_t>(error.size()) ? 0 : 1);
  }
  ::close(report[1]);
  std::string error(4096, '\0');
  const ssize_t count = ::read(report[0], error.data(), error.size());
  ::close(report[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  error.resize(status == 0 && count > 0 ? static_cast<std::size_t>(count) : 0);
  return status == 0 ? error : "did not end by itself";
}

// Runs `body` in a process of its own, as a test that maps tables has to: a process can guard only so many mappings.
bool elsewhere(const std::function<bool()>& body) {
  const int pid = ::fork();
  if (pid == 0) ::_exit(body() ? 0 : 1);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0;
}

// Opens the machine as its owner's monitor does, which makes and shares its files.
bool watch_machine() {
  return elsewhere([] { return testing::Observer().view->damage().empty(); });
}

constexpr const char* kFiles[] = {"machine",     "clients",         "slots",         "shares",
                                  "share_locks", "device0.control", "device0.memory"};

class HostileFile : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_EQ(open_everything_elsewhere(), "");
    path_ = home_.path() + "/" + GetParam();
    fs::rename(path_, home_.path() + "/intact");
  }
  const TemporaryHome outside_;  // only a folder: the home is the one that is made last
  const TemporaryHome home_{kSmall};
  std::string path_;
};

// Who followed it would create, truncate or write whatever it names.
TEST_P(HostileFile, LinkIsNotFollowed) {
  const std::string target = outside_.path() + "/target";
  fs::create_symlink(target, path_);
  EXPECT_THAT(open_everything_elsewhere(), HasSubstr("is a link; run `softgpu reset`"));
  EXPECT_FALSE(fs::exists(target));
  fs::rename(home_.path() + "/intact", target);
  EXPECT_THAT(open_everything_elsewhere(), HasSubstr("is a link; run `softgpu reset`"));
}

TEST_P(HostileFile, FifoSocketAndFolderAreRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0666), 0);
  EXPECT_THAT(open_everything_elsewhere(), HasSubstr("is no regular file; run `softgpu reset`"));
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_THAT(open_everything_elsewhere(), HasSubstr("is no regular file; run `softgpu reset`"));
  fs::remove(path_);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, sizeof address.sun_path - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(open_everything_elsewhere(), HasSubstr("is no regular file; run `softgpu reset`"));
  ::close(socket);
}

// Whoever may write a file may also make it longer.
TEST_P(HostileFile, WhatIsAddedAtTheEndHarmsNobody) {
  if (GetParam() == std::string("machine")) GTEST_SKIP() << "a text, and its owner's alone";
  fs::rename(home_.path() + "/intact", path_);
  fs::resize_file(path_, fs::file_size(path_) + (std::uintmax_t{1} << 40));
  EXPECT_EQ(open_everything_elsewhere(), "");
}

TEST_P(HostileFile, OfAnotherUserIsNotUsedByRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  fs::rename(home_.path() + "/intact", path_);
  ASSERT_EQ(::chown(path_.c_str(), kMember, kMember), 0);
  EXPECT_THAT(open_everything_elsewhere(), HasSubstr("belongs to user 65530"));
}

INSTANTIATE_TEST_SUITE_P(Files, HostileFile, ::testing::ValuesIn(kFiles));

TEST(HostileFolder, EndlessDescriptionIsRefused) {
  const TemporaryHome home(kSmall);
  ASSERT_EQ(open_everything_elsewhere(), "");
  fs::resize_file(home.path() + "/machine", std::uintmax_t{1} << 40);  // sparse
  EXPECT_THAT(open_everything_elsewhere(), HasSubstr("has more than 1048576 bytes; run `softgpu reset`"));
}

TEST(HostileFolder, LockThatIsKeptDelaysAndStopsNobody) {
  const TemporaryHome home(kSmall);
  const int kept = ::open(home.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(kept, LOCK_EX), 0);
  ::testing::internal::CaptureStderr();
  { const FolderLock lock(home.path(), 1); }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("going on without the lock"));
  ::close(kept);
}

// A page table is as long as the part says, whatever its head says since it was opened.
TEST(HostileFolder, CountsChangedBehindAReaderLeadNowhere) {
  const TemporaryHome home(kSmall);
  EXPECT_TRUE(elsewhere([] {
    const testing::Client& client = open_client();
    const auto view = DeviceView::open(client.machine, *client.clients, 0).value();
    const std::uint64_t total = view->total_bytes();
    bool right = view->damage().empty();
    view->control().page_count = std::uint64_t{1} << 40;
    view->control().places_used.store(UINT64_MAX);
    view->control().activity_count.store(UINT32_MAX);
    right = right && view->use().total == 0 && view->total_bytes() == total && !view->damage().empty();
    return right && client.device->find_pages(client.self, 0, std::uint64_t{1} << 50).empty();
  }));
}

// What stops programs that start now is damage to those that watch, whichever table it is in.
TEST(HostileFolder, EveryTablesHeadIsWatched) {
  for (const char* table : {"clients", "shares", "device0.control"}) {
    const TemporaryHome home(kSmall);
    EXPECT_TRUE(elsewhere([&] {
      const testing::Observer observer;
      if (!observer.view->damage().empty()) return false;
      const int file = ::open((home.path() + "/" + table).c_str(), O_RDWR | O_CLOEXEC);
      const std::uint64_t other = 1;
      const bool written = ::pwrite(file, &other, sizeof other, 0) == sizeof other;
      ::close(file);
      return written && !open_everything_elsewhere().empty() && !observer.view->damage().empty();
    })) << table;
  }
}

// Who has no descriptor left must not say that the device is lost: whoever watches it takes its work away.
TEST(HostileFolder, WhoHasNoDescriptorLeftSeesNoDamage) {
  const TemporaryHome home(kSmall);
  ASSERT_EQ(open_everything_elsewhere(), "");
  const Machine machine = open_machine().value();
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string damage = SharedEvents::damage(machine);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(damage, "");
}

TEST(HostileFolder, DamageOfTheEventsIsSeenWithoutAMapping) {
  const TemporaryHome home(kSmall);
  ASSERT_EQ(open_everything_elsewhere(), "");
  const Machine machine = open_machine().value();
  EXPECT_EQ(SharedEvents::damage(machine), "");
  const std::string events = home.path() + "/events";
  fs::resize_file(events, fs::file_size(events) - 1);
  EXPECT_THAT(SharedEvents::damage(machine), HasSubstr("cut short"));
  fs::resize_file(events, 0);
  fs::resize_file(events, 1 << 20);
  EXPECT_THAT(SharedEvents::damage(machine), HasSubstr("damaged"));
}

TEST(HostileFolder, ImpossibleWordsAreDamage) {
  const std::vector<std::function<void(Control&)>> changes = {
      [](Control& control) { control.magic = 0; },
      [](Control& control) { control.hung.store(7); },
      [](Control& control) { control.lost.store(7); },
      [](Control& control) { control.turn_holder.store(0x3FF); },
      [](Control& control) { control.lock.store(0x3FF); },
      [](Control& control) { control.places_used.store(UINT64_MAX); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const TemporaryHome home(kSmall);
    EXPECT_TRUE(elsewhere([&] {
      const testing::Observer observer;
      if (!observer.view->damage().empty()) return false;
      changes[i](observer.view->control());
      return !observer.view->damage().empty();
    })) << i;
  }
}

// A folder that root shares with a group.
class GroupFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make it";
    ASSERT_EQ(::chown(home_.path().c_str(), 0, kMember), 0);
    ASSERT_EQ(::chmod(home_.path().c_str(), 02710), 0);
  }
  const TemporaryHome home_{kSmall};
};

TEST_F(GroupFolder, MembersUseWhatItsOwnerMadeAndChangeNoName) {
  EXPECT_THAT(open_everything_elsewhere(kMember), HasSubstr("Permission denied"));  // they make no machine
  ASSERT_TRUE(watch_machine());
  EXPECT_EQ(open_everything_elsewhere(kMember), "");
  for (const fs::directory_entry& entry : fs::directory_iterator(home_.path())) {
    struct stat info = {};
    ASSERT_EQ(::lstat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, 0U) << entry.path();
    EXPECT_EQ(info.st_gid, kMember) << entry.path();
    EXPECT_EQ(info.st_mode & 0777, entry.path().filename() == "machine" ? 0640U : 0660U) << entry.path();
  }
  EXPECT_TRUE(elsewhere([this] {
    if (::setgid(kMember) != 0 || ::setuid(kMember) != 0) return false;
    const std::string machine = home_.path() + "/machine";
    const std::string other = home_.path() + "/other";
    return ::unlink(machine.c_str()) != 0 && ::rename(machine.c_str(), other.c_str()) != 0 &&
           ::mkfifo(other.c_str(), 0666) != 0 && ::symlink("/etc", other.c_str()) != 0 &&
           ::open(other.c_str(), O_RDWR | O_CREAT, 0666) < 0 && ::open(machine.c_str(), O_RDWR) < 0 &&
           ::open(home_.path().c_str(), O_RDONLY | O_DIRECTORY) < 0;
  })) << "a member of the group changed a name, wrote the description or can lock the folder";
}

// What another tool of the owner made before the folder was shared.
TEST_F(GroupFolder, FilesOfBeforeAreShared) {
  ASSERT_TRUE(watch_machine());
  for (const fs::directory_entry& entry : fs::directory_iterator(home_.path())) {
    ASSERT_EQ(::chown(entry.path().c_str(), 0, 0), 0);
    ASSERT_EQ(::chmod(entry.path().c_str(), 0600), 0);
  }
  EXPECT_NE(open_everything_elsewhere(kMember), "");
  ASSERT_TRUE(watch_machine());
  EXPECT_EQ(open_everything_elsewhere(kMember), "");
}

TEST_F(GroupFolder, OneContainerTakesItsPartOfTheSlots) {
  ASSERT_TRUE(watch_machine());
  std::vector<std::unique_ptr<Child>> members;
  for (std::uint32_t i = 0; i < Clients::kMostOfContainer; ++i) {
    members.push_back(std::make_unique<Child>([] {
      if (::setgid(kMember) != 0 || ::setuid(kMember) != 0) ::_exit(1);
      if (!Clients::open(open_machine().value()).value().join()) ::_exit(1);
    }));
    ASSERT_TRUE(members.back()->ran()) << i;
  }
  EXPECT_THAT(open_everything_elsewhere(kMember), HasSubstr("this container has 64 client processes"));
  EXPECT_EQ(open_everything_elsewhere(), "") << "the owner is not bound by it";
  members.pop_back();
  EXPECT_EQ(open_everything_elsewhere(kMember), "");
}

}  // namespace
}  // namespace softgpu
