#include "runtime/egress/name_service.h"

#include <sys/socket.h>

#include <array>
#include <cstring>

namespace fairlead {
namespace {

constexpr int kMostAtOnce = 32;  // questions, before others have their turn

constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(in_pktinfo)) + CMSG_SPACE(sizeof(in6_pktinfo));

template <typename Info>
void put_control(msghdr& message, int level, int type, const Info& info) {
  message.msg_controllen = CMSG_SPACE(sizeof info);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(sizeof info);
  std::memcpy(CMSG_DATA(header), &info, sizeof info);
}

DnsVerdict verdict_of(LookUp outcome) {
  switch (outcome) {
    case LookUp::kFound: return DnsVerdict::kFound;
    case LookUp::kNoSuchName: return DnsVerdict::kNoSuchName;
    case LookUp::kFailed: break;
  }
  return DnsVerdict::kServerFailed;
}

}  // namespace

void NameService::read_questions(int socket, Instant now) {
  for (int left = kMostAtOnce; left > 0 && read_question(socket, now); --left) {
  }
}

bool NameService::read_question(int socket, Instant) {
  std::array<char, kMostDnsBytes + 1> bytes{};  // one more than a question has: a longer one is none
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  Asker asker{.socket = socket};
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_name = &asker.from;
  message.msg_namelen = sizeof asker.from;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT);
  if (got < 0) return false;
  asker.from_size = message.msg_namelen;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_PKTINFO) {
      std::memcpy(&asker.at4, CMSG_DATA(header), sizeof asker.at4);
      asker.at4.ipi_spec_dst = asker.at4.ipi_addr;
    }
    if (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_PKTINFO) {
      std::memcpy(&asker.at6, CMSG_DATA(header), sizeof asker.at6);
    }
  }
  if (auto question = read_dns_question({bytes.data(), static_cast<std::size_t>(got)})) {
    take(asker, *std::move(question));
  }
  return true;
}

void NameService::take(const Asker& asker, DnsQuestion question) {
  if (!gate_.may_resolve(question.name)) return answer(asker, dns_answer(question, DnsVerdict::kNoSuchName, {}));
  if (question.kind == DnsKind::kOther) return answer(asker, dns_answer(question, DnsVerdict::kFound, {}));
  const std::uint64_t number = next_++;
  if (!resolver_.ask(number, question.name)) {
    return answer(asker, dns_answer(question, DnsVerdict::kServerFailed, {}));
  }
  waiting_.emplace(number, Waiting{asker, std::move(question)});
}

void NameService::answer_found(Instant now) {
  for (NameFound& found : resolver_.take()) {
    const auto waiting = waiting_.extract(found.question);
    if (!waiting) continue;
    // To where this machine has no way the function has none: it would wait, where the name's other addresses answer.
    std::erase_if(found.addresses, [this](const IpAddress& address) {
      return routes_.to(behind_translation(address)) == RouteKind::kThisMachine ||
             routes_.to(address) != RouteKind::kElsewhere;
    });
    const DnsQuestion& question = waiting.mapped().question;
    const auto addresses = gate_.learn(question.name, found.addresses, now);
    answer(waiting.mapped().asker, dns_answer(question, verdict_of(found.outcome), addresses));
  }
}

void NameService::answer(const Asker& asker, const std::string& bytes) {
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_name = const_cast<sockaddr_storage*>(&asker.from);
  message.msg_namelen = asker.from_size;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  if (asker.from.ss_family == AF_INET) {
    put_control(message, IPPROTO_IP, IP_PKTINFO, asker.at4);
  } else {
    put_control(message, IPPROTO_IPV6, IPV6_PKTINFO, asker.at6);
  }
  // An answer that does not go out is asked for again.
  (void)::sendmsg(asker.socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace fairlead
