#include "node/peers/peer_seal.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/check.h"
#include "base/digest.h"
#include "base/unique_fd.h"
#include "identity/hmac.h"

namespace fairlead {

Result<std::string> read_cluster_key(const std::string& path) {
  const UniqueFd file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // once: what is looked at is what is read
  struct stat status;
  if (!file || ::fstat(file.get(), &status) != 0) {
    return fail(Errc::kInvalidArgument, "--cluster-key: {}; make one with: openssl rand -hex 32 > FILE; chmod 600 FILE",
                errno_error(errno, path).message);
  }
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return fail(Errc::kInvalidArgument, "--cluster-key: '{}' belongs to user {}, who may change it: chown it", path,
                status.st_uid);
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail(Errc::kInvalidArgument,
                "--cluster-key: '{}' has mode {:o}, others of this machine may use it: chmod 600 it", path,
                static_cast<unsigned>(status.st_mode & 0777));
  }
  if (!S_ISREG(status.st_mode) || status.st_size > static_cast<off_t>(kMostClusterKeyBytes)) {
    return fail(Errc::kInvalidArgument, "--cluster-key: '{}' is no file of at most {} bytes", path,
                kMostClusterKeyBytes);
  }
  std::string text(kMostClusterKeyBytes, '\0');
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size < 0) return fail(Errc::kInvalidArgument, "--cluster-key: {}", errno_error(errno, path).message);
  text.resize(static_cast<std::size_t>(size));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.size() < kLeastClusterKeyBytes) {
    return fail(Errc::kInvalidArgument, "--cluster-key: '{}' has {} bytes, it must have {} to {}", path, text.size(),
                kLeastClusterKeyBytes, kMostClusterKeyBytes);
  }
  return text;
}

std::string random_token() {
  char bytes[16];
  FL_CHECK(::getrandom(bytes, sizeof bytes, 0) == sizeof bytes, "no random bytes: errno {}", errno);
  return to_hex({bytes, sizeof bytes});
}

// Each part with its size before it: no two lists of parts are one text.
std::string PeerSeal::seal(std::string_view purpose, std::initializer_list<std::string_view> parts) const {
  std::string text(purpose);
  for (const std::string_view part : parts)
    text.append("\n").append(std::to_string(part.size())).append(":").append(part);
  return to_hex(as_text(identity::hmac_sha256(key_, text)));
}

std::string PeerSeal::hello(std::string_view from, std::string_view nonce, std::string_view advertised) const {
  return seal("fairlead-peer-hello-1", {from, nonce, advertised});
}

std::string PeerSeal::welcome(const Welcome& welcome) const {
  return seal("fairlead-peer-welcome-1", {welcome.from, welcome.to, welcome.nonce, welcome.session});
}

std::string PeerSeal::request(std::string_view session, std::uint64_t number, std::string_view target,
                              std::string_view head) const {
  return seal("fairlead-peer-request-1", {session, std::to_string(number), target, head});
}

std::string PeerSessions::open(std::string peer) {
  if (sessions_.size() >= kMost) {
    sessions_.erase(by_use_.front());
    by_use_.pop_front();
  }
  std::string token = random_token();
  by_use_.push_back(token);
  sessions_.emplace(token, Session{std::move(peer), 0, std::prev(by_use_.end())});
  return token;
}

std::string_view PeerSessions::peer_of(std::string_view header) const {
  const auto session = sessions_.find(std::string(header.substr(0, header.find(' '))));
  return session == sessions_.end() ? std::string_view() : std::string_view(session->second.peer);
}

Result<std::string> PeerSessions::accept(std::string_view header, std::string_view target, std::string_view head) {
  const std::size_t first = header.find(' '), second = header.find(' ', first == header.npos ? first : first + 1);
  const std::string_view digits = second == header.npos ? "" : header.substr(first + 1, second - first - 1);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return fail(Errc::kUnauthenticated,
                "{} is missing or no session, number and seal: this path is for nodes of the cluster", kPeerHeader);
  }
  const auto found = sessions_.find(std::string(header.substr(0, first)));
  if (found == sessions_.end())
    return fail(Errc::kUnauthenticated, "{} names a session that is not there", kPeerHeader);
  Session& session = found->second;
  if (!identity::are_equal(header.substr(second + 1), seal_.request(found->first, number, target, head))) {
    return fail(Errc::kUnauthenticated, "{}: the seal is not that of the cluster's key over this request", kPeerHeader);
  }
  if (number <= session.last) {
    return fail(Errc::kConflict, "{}: request {} of this session was here already", kPeerHeader, number);
  }
  session.last = number;
  by_use_.splice(by_use_.end(), by_use_, session.used);
  return session.peer;
}

}  // namespace fairlead
