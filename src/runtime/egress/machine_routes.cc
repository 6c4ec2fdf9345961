#include "runtime/egress/machine_routes.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace fairlead {
namespace {

struct RouteRequest {
  nlmsghdr header{};
  rtmsg route{};
  std::array<char, 32> attributes{};
};

}  // namespace

Result<MachineRoutes> MachineRoutes::open() {
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return fail(errno_error(errno, "a socket for routes"));
  return MachineRoutes(std::move(socket));
}

RouteKind MachineRoutes::to(const IpAddress& address) {
  const std::size_t size = address.is_v4() ? 4 : 16;
  RouteRequest request;
  request.header.nlmsg_len = NLMSG_LENGTH(sizeof(rtmsg)) + RTA_SPACE(size);
  request.header.nlmsg_type = RTM_GETROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.header.nlmsg_seq = ++sequence_;
  request.route.rtm_family = address.is_v4() ? AF_INET : AF_INET6;
  request.route.rtm_dst_len = static_cast<unsigned char>(size * 8);
  rtattr attribute{};
  attribute.rta_type = RTA_DST;
  attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(size));
  std::memcpy(request.attributes.data(), &attribute, sizeof attribute);
  std::memcpy(request.attributes.data() + RTA_LENGTH(0), address.bytes.data() + (16 - size), size);
  if (::send(socket_.get(), &request, request.header.nlmsg_len, 0) < 0) return RouteKind::kNone;
  // Answers come before send() returns. One of an earlier question, whose turn was interrupted, is passed over.
  while (true) {
    alignas(nlmsghdr) std::array<char, 8192> buffer{};
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(rtmsg)))) return RouteKind::kNone;
    nlmsghdr header{};
    std::memcpy(&header, buffer.data(), sizeof header);
    if (header.nlmsg_seq != sequence_) continue;
    if (header.nlmsg_type != RTM_NEWROUTE) return RouteKind::kNone;
    rtmsg route{};
    std::memcpy(&route, buffer.data() + NLMSG_HDRLEN, sizeof route);
    switch (route.rtm_type) {
      case RTN_UNICAST: return RouteKind::kElsewhere;
      case RTN_LOCAL:
      case RTN_ANYCAST: return RouteKind::kThisMachine;
      default: return RouteKind::kNone;
    }
  }
}

}  // namespace fairlead
