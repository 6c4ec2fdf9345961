#include "runtime/egress_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/confinement.h"

namespace fairlead {
namespace {

constexpr std::uint16_t kRelayPort = 9002, kNamePort = 53;
constexpr int kBacklog = 128;
constexpr const char* kNftPlaces[] = {"/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"};
constexpr std::string_view kInstall = "install nftables (Debian and Ubuntu: apt-get install nftables)";
// Addresses that are nobody's: RFC 7600's dummy, and of RFC 6666's discard prefix. Without one of its own beside loopback a
// program's resolver asks for no address of that family.
constexpr const char* kOwn4 = "192.0.0.8";
constexpr const char* kOwn6 = "100::1";

// What is meant for the sandbox itself stays: its Runtime API, servers of the function's own.
constexpr std::string_view kRules4 = R"(table ip fairlead {
  chain arriving {
    type filter hook prerouting priority mangle;
    ip daddr != 127.0.0.0/8 meta l4proto tcp tproxy to :9002
  }
}
)";
constexpr std::string_view kRules6 = R"(table ip6 fairlead {
  chain arriving {
    type filter hook prerouting priority mangle;
    ip6 daddr != ::1 meta l4proto tcp tproxy to :9002
  }
}
)";

Status failed(const std::string& what) {
  return fail(errno_error(errno, what));
}

bool has_ipv6() {
  return ::access("/proc/self/net/if_inet6", F_OK) == 0;
}

bool set_on(int socket, int level, int option) {
  const int on = 1;
  return ::setsockopt(socket, level, option, &on, sizeof on) == 0;
}

// At every address of its family. Transparent: its connections and answers have the address that was asked for.
Result<UniqueFd> bind_everywhere(int family, int type, std::uint16_t port) {
  UniqueFd socket(::socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool is_v4 = family == AF_INET;
  bool is_set =
      socket && set_on(socket.get(), is_v4 ? IPPROTO_IP : IPPROTO_IPV6, is_v4 ? IP_TRANSPARENT : IPV6_TRANSPARENT);
  if (is_set && !is_v4) is_set = set_on(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY);
  if (is_set && type == SOCK_DGRAM) {
    is_set = set_on(socket.get(), is_v4 ? IPPROTO_IP : IPPROTO_IPV6, is_v4 ? IP_PKTINFO : IPV6_RECVPKTINFO);
  }
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  ipv4.sin_port = htons(port);
  sockaddr_in6 ipv6{};
  ipv6.sin6_family = AF_INET6;
  ipv6.sin6_port = htons(port);
  const auto* const address =
      is_v4 ? reinterpret_cast<const sockaddr*>(&ipv4) : reinterpret_cast<const sockaddr*>(&ipv6);
  const socklen_t size = is_v4 ? sizeof ipv4 : sizeof ipv6;
  if (!is_set || ::bind(socket.get(), address, size) != 0) {
    return fail(errno_error(errno, fmt::format("a socket for the way out at port {}", port)));
  }
  if (type == SOCK_STREAM && ::listen(socket.get(), kBacklog) != 0) {
    return fail(errno_error(errno, fmt::format("listen for the way out at port {}", port)));
  }
  return socket;
}

// ---- addresses and routes, by rtnetlink

class LinkRequest {
 public:
  LinkRequest(int type, int family) : family_(family) {
    header_.nlmsg_type = static_cast<unsigned short>(type);
    header_.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
  }

  template <typename Body>
  LinkRequest& body(const Body& body) {
    append(&body, sizeof body);
    return *this;
  }
  LinkRequest& attribute(unsigned short type, const void* value, std::size_t size) {
    const rtattr head{static_cast<unsigned short>(RTA_LENGTH(size)), type};
    append(&head, sizeof head);
    append(value, size);
    return *this;
  }
  LinkRequest& address(unsigned short type, const char* text) {
    std::array<unsigned char, 16> bytes{};
    ::inet_pton(family_, text, bytes.data());
    return attribute(type, bytes.data(), family_ == AF_INET ? 4 : 16);
  }

  Status send(const std::string& what) {
    const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    header_.nlmsg_len = static_cast<unsigned>(sizeof header_ + rest_.size());
    std::string message(reinterpret_cast<const char*>(&header_), sizeof header_);
    message += rest_;
    if (!socket || ::send(socket.get(), message.data(), message.size(), 0) < 0) return failed(what);
    struct {
      nlmsghdr header;
      nlmsgerr error;
      std::array<char, 1024> rest;
    } answer{};
    if (::recv(socket.get(), &answer, sizeof answer, 0) < 0) return failed(what);
    if (answer.header.nlmsg_type != NLMSG_ERROR) return fail(Errc::kIo, "{}: the kernel gave no answer", what);
    if (answer.error.error == 0) return {};
    return fail(errno_error(-answer.error.error, what));
  }

 private:
  void append(const void* bytes, std::size_t size) {
    rest_.append(static_cast<const char*>(bytes), size);
    rest_.append(NLMSG_ALIGN(size) - size, '\0');
  }

  const int family_;
  nlmsghdr header_{};
  std::string rest_;
};

Status give_own_address(int family, const char* address, unsigned loopback) {
  ifaddrmsg body{};
  body.ifa_family = static_cast<unsigned char>(family);
  body.ifa_prefixlen = family == AF_INET ? 32 : 128;
  body.ifa_flags = IFA_F_NODAD;
  body.ifa_index = loopback;
  return LinkRequest(RTM_NEWADDR, family)
      .body(body)
      .address(IFA_LOCAL, address)
      .address(IFA_ADDRESS, address)
      .send("give loopback an address");
}

// Every address is local, and what asks for no address of its own has this one.
Status make_all_local(int family, const char* own, unsigned loopback) {
  rtmsg body{};
  body.rtm_family = static_cast<unsigned char>(family);
  body.rtm_table = RT_TABLE_LOCAL;
  body.rtm_protocol = RTPROT_STATIC;
  body.rtm_scope = RT_SCOPE_HOST;
  body.rtm_type = RTN_LOCAL;
  return LinkRequest(RTM_NEWROUTE, family)
      .body(body)
      .address(RTA_PREFSRC, own)
      .attribute(RTA_OIF, &loopback, sizeof loopback)
      .send("make every address local");
}

Status lead_to_loopback(int family, const char* own) {
  const unsigned loopback = ::if_nametoindex("lo");
  if (auto status = give_own_address(family, own, loopback); !status) return status;
  return make_all_local(family, own, loopback);
}

// ---- nftables

const char* find_nft() {
  const auto* const found = std::find_if(std::begin(kNftPlaces), std::end(kNftPlaces),
                                         [](const char* path) { return ::access(path, X_OK) == 0; });
  return found == std::end(kNftPlaces) ? nullptr : *found;
}

std::string text_of(int file) {
  std::string text(1024, '\0');
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Status run_nft(const char* program, std::string_view rules) {
  const UniqueFd input(::memfd_create("rules", MFD_CLOEXEC)), output(::memfd_create("said", MFD_CLOEXEC));
  if (!input || !output) return failed("memfd_create for nft");
  if (::pwrite(input.get(), rules.data(), rules.size(), 0) != std::ssize(rules))
    return failed("write the rules for nft");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), 0);
  for (const int stream : {1, 2}) posix_spawn_file_actions_adddup2(&actions, output.get(), stream);
  char* arguments[] = {const_cast<char*>("nft"), const_cast<char*>("-f"), const_cast<char*>("-"), nullptr};
  char* environment[] = {nullptr};
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, program, &actions, nullptr, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail(Errc::kUnavailable, "{} does not start: {}", program, std::strerror(error));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(Errc::kUnavailable,
              "nft refuses the rules of a way out, for which the kernel needs nf_tables and nft_tproxy: {}",
              text_of(output.get()));
}

}  // namespace

Result<WayOutSockets> make_way_out_sockets() {
  WayOutSockets sockets;
  for (const int family : {AF_INET, AF_INET6}) {
    if (family == AF_INET6 && !has_ipv6()) break;
    Result<UniqueFd> connections = bind_everywhere(family, SOCK_STREAM, kRelayPort);
    if (!connections) return fail(connections.error());
    sockets.connections.push_back(*std::move(connections));
    Result<UniqueFd> questions = bind_everywhere(family, SOCK_DGRAM, kNamePort);
    if (!questions) return fail(questions.error());
    sockets.questions.push_back(*std::move(questions));
  }
  return sockets;
}

Status lay_way_out() {
  const char* const nft = find_nft();
  if (nft == nullptr) return fail(Errc::kUnavailable, "nft is missing: {}", kInstall);
  return run_nft(nft, fmt::format("{}{}", kRules4, has_ipv6() ? kRules6 : ""));
}

Status open_way_out() {
  // Where IPv6 is switched off there is no way out by it.
  if (has_ipv6()) (void)lead_to_loopback(AF_INET6, kOwn6);
  return lead_to_loopback(AF_INET, kOwn4);
}

std::string way_out_obstacle() {
  return find_nft() != nullptr ? "" : fmt::format("nft is missing: {}", kInstall);
}

std::string try_way_out() {
  if (std::string obstacle = way_out_obstacle(); !obstacle.empty()) return obstacle;
  int said[2];
  if (::pipe2(said, O_CLOEXEC) != 0) return "pipe: " + std::string(std::strerror(errno));
  UniqueFd reads(said[0]), writes(said[1]);
  const pid_t child = ::fork();
  if (child < 0) return "fork: " + std::string(std::strerror(errno));
  if (child == 0) {
    const auto attempt = []() -> Status {
      if (::unshare(CLONE_NEWNET | (::geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) return failed("a network of its own");
      if (auto status = bring_loopback_up(); !status) return status;
      if (auto sockets = make_way_out_sockets(); !sockets) return fail(sockets.error());
      if (auto status = lay_way_out(); !status) return status;
      return open_way_out();
    };
    const Status tried = attempt();
    const std::string why = tried ? "" : tried.error().message;
    (void)!::write(writes.get(), why.data(), std::min<std::size_t>(why.size(), 2048));
    ::_exit(0);
  }
  writes.reset();
  std::string why(2048, '\0');
  const ssize_t size = ::read(reads.get(), why.data(), why.size());
  why.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (why.empty() && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) return "the trial of a way out ended early";
  return why;
}

}  // namespace fairlead
