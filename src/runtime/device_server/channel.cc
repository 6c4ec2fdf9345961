#include "runtime/device_server/channel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace fairlead {
namespace {

constexpr char kInline = 'i';
constexpr char kInFile = 'f';
constexpr char kAhead = 'a';  // descriptors of the frame that follows
constexpr char kPart = 'p';   // bytes of a frame whose rest follows

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file, bytes.data(), bytes.size());
    if (wrote < 0 && errno != EINTR) return false;
    if (wrote > 0) bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

// A file of the other end's, which may be of any kind and as long as it says.
bool read_all(int file, std::size_t most_bytes, std::string& out) {
  struct stat info {};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if (info.st_size < 0 || std::cmp_greater(info.st_size, most_bytes)) return false;
  out.resize(static_cast<std::size_t>(info.st_size));
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(file, out.data() + done, out.size() - done, static_cast<off_t>(done));
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

void DeviceChannel::send(std::string_view frame, std::span<const int> descriptors) {
  std::string bytes;
  std::vector<int> all(descriptors.begin(), descriptors.end());
  UniqueFd file;
  if (frame.size() < kMaxMessageBytes) {
    bytes = kInline;
    bytes += frame;
  } else {
    file.reset(::memfd_create("fairlead-frame", MFD_CLOEXEC));
    if (!file || !write_all(file.get(), frame)) return send_in_parts(frame, descriptors);
    bytes = kInFile;
    all.insert(all.begin(), file.get());
  }
  std::span<const int> left = all;
  send_ahead(left);
  post(std::move(bytes), left);
}

// Leaves what fits the last packet.
void DeviceChannel::send_ahead(std::span<const int>& descriptors) {
  for (; descriptors.size() > kMaxMessageFds; descriptors = descriptors.subspan(kMaxMessageFds)) {
    post({kAhead}, descriptors.first(kMaxMessageFds));
  }
}

void DeviceChannel::send_in_parts(std::string_view frame, std::span<const int> descriptors) {
  constexpr std::size_t kMostOfPart = kMaxMessageBytes - 1;
  for (; frame.size() > kMostOfPart; frame.remove_prefix(kMostOfPart)) {
    post(kPart + std::string(frame.substr(0, kMostOfPart)), {});
  }
  send_ahead(descriptors);
  post(kInline + std::string(frame), descriptors);
}

void DeviceChannel::post(std::string bytes, std::span<const int> descriptors) {
  // The receiver would cut a longer one off, and take what is left for the whole frame.
  FL_CHECK(bytes.size() <= kMaxMessageBytes && descriptors.size() <= kMaxMessageFds, "{} bytes, {} descriptors",
           bytes.size(), descriptors.size());
  const std::vector<int> sent(descriptors.begin(), descriptors.end());
  if (unsent_.empty() && send_message(socket_.get(), bytes, sent, MSG_DONTWAIT) != EAGAIN) return;
  Packet& packet = unsent_.emplace_back(std::move(bytes));
  for (const int descriptor : sent) {
    if (!packet.descriptors.emplace_back(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0))) {
      ::shutdown(socket_.get(), SHUT_RDWR);
      return;
    }
  }
}

bool DeviceChannel::flush() {
  while (!unsent_.empty()) {
    std::vector<int> descriptors;
    for (const UniqueFd& descriptor : unsent_.front().descriptors) descriptors.push_back(descriptor.get());
    if (send_message(socket_.get(), unsent_.front().bytes, descriptors, MSG_DONTWAIT) == EAGAIN) return false;
    unsent_.pop_front();
  }
  return true;
}

// EINPROGRESS: it belongs to a frame whose rest follows.
int DeviceChannel::take_packet() {
  if (const int error = receive_message(socket_.get(), message_, MSG_DONTWAIT); error != 0) return error;
  if (message_.bytes.empty()) return ECONNRESET;
  std::move(message_.fds.begin(), message_.fds.end(), std::back_inserter(ahead_));
  if (ahead_.size() > limits_.descriptors || parts_.size() + message_.bytes.size() > limits_.bytes) return EMSGSIZE;
  if (message_.bytes[0] == kPart) parts_.append(message_.bytes, 1);
  return message_.bytes[0] == kAhead || message_.bytes[0] == kPart ? EINPROGRESS : 0;
}

int DeviceChannel::receive(std::string& frame, std::vector<UniqueFd>& descriptors) {
  int taken = EINPROGRESS;
  for (int packets = 0; taken == EINPROGRESS && packets < kPacketsAtOnce; ++packets) taken = take_packet();
  if (taken == EINPROGRESS) return EAGAIN;
  if (taken != 0) return taken;
  descriptors = std::exchange(ahead_, {});
  if (message_.bytes[0] == kInline) {
    frame = std::exchange(parts_, {});
    frame.append(message_.bytes, 1);
    return 0;
  }
  if (descriptors.empty() || !read_all(descriptors.front().get(), limits_.bytes, frame)) return EBADMSG;
  descriptors.erase(descriptors.begin());
  return 0;
}

}  // namespace fairlead
