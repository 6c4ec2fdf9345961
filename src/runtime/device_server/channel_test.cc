#include "runtime/device_server/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

namespace fairlead {
namespace {

// Two ends of a connection.
struct Ends {
  SocketPair pair = make_seqpacket_pair().value();
  DeviceChannel near{std::move(pair.first)};
  DeviceChannel far{std::move(pair.second)};

  // What arrives at the far end, or the error in place of a frame.
  std::string receive() {
    std::string frame;
    std::vector<UniqueFd> descriptors;
    int error = EAGAIN;
    while ((error = far.receive(frame, descriptors)) == EAGAIN && near.has_unsent()) near.flush();
    return error == 0 ? frame + "+" + std::to_string(descriptors.size()) : "error " + std::to_string(error);
  }
};

// Runs `body` in a process that can open no further descriptor, because a test needs some to report.
bool without_descriptors(const std::function<bool()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const rlimit none{static_cast<rlim_t>(::open("/dev/null", O_RDONLY)), 64};
    ::setrlimit(RLIMIT_NOFILE, &none);
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string large_frame() {
  std::string frame;
  for (int i = 0; frame.size() < 5 * kMaxMessageBytes + 7; ++i) frame += std::to_string(i);
  return frame;
}

TEST(DeviceChannel, CarriesFramesOfAnySizeInOrder) {
  Ends ends;
  ends.near.send("small");
  ends.near.send(large_frame());
  ends.near.send("last");
  EXPECT_EQ(ends.receive(), "small+0");
  EXPECT_EQ(ends.receive(), large_frame() + "+0");
  EXPECT_EQ(ends.receive(), "last+0");
}

TEST(DeviceChannel, LargeFrameWithoutDescriptorsLeftTravelsInParts) {
  Ends ends;
  EXPECT_TRUE(without_descriptors([&] {
    ends.near.send(large_frame());
    ends.near.send("next");
    return ends.receive() == large_frame() + "+0" && ends.receive() == "next+0";
  })) << "the process aborted, or the frame was changed";
}

TEST(DeviceChannel, DescriptorsThatCannotBeKeptEndTheConnection) {
  Ends ends;
  EXPECT_TRUE(without_descriptors([&] {
    while (!ends.near.has_unsent()) ends.near.send(std::string(kMaxMessageBytes / 2, 'x'));
    const int standard_input[] = {0};
    ends.near.send("with a descriptor", standard_input);
    std::string last;
    while (last.find("error") == std::string::npos) last = ends.receive();
    return last == "error " + std::to_string(ECONNRESET);
  }));
}

// ---- what the other end may not make this one do. It is a device server that does as a stranger's code says.

struct HostileEnd {
  SocketPair pair = make_seqpacket_pair().value();
  int socket = pair.first.get();
  DeviceChannel node{std::move(pair.second), {.bytes = 1 << 20, .descriptors = 2}};
  std::string frame;
  std::vector<UniqueFd> descriptors;

  void say(std::string_view packet, std::span<const int> with = {}) {
    EXPECT_EQ(0, send_message(socket, packet, with, MSG_DONTWAIT));
  }
  int receive() { return node.receive(frame, descriptors); }
};

TEST(DeviceChannel, AFileThatSaysToBeEndlessIsRefused) {
  HostileEnd end;
  const UniqueFd file(::memfd_create("hole", MFD_CLOEXEC));
  ASSERT_EQ(0, ::ftruncate(file.get(), off_t{1} << 50));
  const int descriptor[] = {file.get()};
  end.say("f", descriptor);
  EXPECT_EQ(end.receive(), EBADMSG);
}

TEST(DeviceChannel, WhatIsNoFileIsNotRead) {
  HostileEnd end;
  int pipe[2];
  ASSERT_EQ(0, ::pipe(pipe));
  const UniqueFd reader(pipe[0]), writer(pipe[1]);
  const int descriptor[] = {reader.get()};
  end.say("f", descriptor);
  EXPECT_EQ(end.receive(), EBADMSG);
}

TEST(DeviceChannel, PartsWithoutEndAreLeftOffAtTheBound) {
  HostileEnd end;
  const std::string part = "p" + std::string(kMaxMessageBytes / 2, 'x');
  int error = EAGAIN;
  for (int i = 0; i < 100 && error == EAGAIN; ++i) {
    end.say(part);
    error = end.receive();
  }
  EXPECT_EQ(error, EMSGSIZE);
}

TEST(DeviceChannel, DescriptorsWithoutEndAreLeftOffAtTheBound) {
  HostileEnd end;
  const int descriptor[] = {0};
  for (int i = 0; i < 2; ++i) {
    end.say("a", descriptor);
    EXPECT_EQ(end.receive(), EAGAIN);
  }
  end.say("a", descriptor);
  EXPECT_EQ(end.receive(), EMSGSIZE);
}

TEST(DeviceChannel, PacketsThatAreNoFrameAreTakenInTurns) {
  HostileEnd end;
  for (int i = 0; i < DeviceChannel::kPacketsAtOnce + 1; ++i) end.say("p");
  end.say("iwhole");
  EXPECT_EQ(end.receive(), EAGAIN) << "others have their turn";
  EXPECT_EQ(end.receive(), 0);
  EXPECT_EQ(end.frame, "whole");
}

}  // namespace
}  // namespace fairlead
