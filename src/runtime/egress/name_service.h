// The name server that a function has: answers at every address of its network, port 53, with what its gate lets it know.
//
//   function ──"A pypi.org?"──> gate: may it? ──> the machine's resolver ──> gate: which of them? ──"151.101.0.223"──> function
//
// A name that the function's list does not have is NXDOMAIN, and nobody is asked for it.
//
// Does not block. Threads: of one thread, which is the gate's.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <map>
#include <vector>

#include "base/unique_fd.h"
#include "runtime/egress/dns_message.h"
#include "runtime/egress/egress_gate.h"
#include "runtime/egress/machine_routes.h"
#include "runtime/egress/name_resolver.h"

namespace fairlead {

class NameService {
 public:
  // `sockets`: UDP, each with IP_PKTINFO or IPV6_RECVPKTINFO.
  NameService(std::vector<UniqueFd> sockets, LookUpName look_up, EgressGate& gate, MachineRoutes& routes)
      : sockets_(std::move(sockets)), gate_(gate), routes_(routes), resolver_(std::move(look_up)) {}

  const std::vector<UniqueFd>& sockets() const { return sockets_; }
  int found() const { return resolver_.ready(); }

  void read_questions(int socket, Instant now);  // of one that can be read
  void answer_found(Instant now);                // when found() can be read

 private:
  struct Asker {
    int socket = -1;
    sockaddr_storage from{};
    socklen_t from_size = 0;
    in_pktinfo at4{};  // the address that was asked, which the answer comes from
    in6_pktinfo at6{};
  };
  struct Waiting {
    Asker asker;
    DnsQuestion question;
  };

  bool read_question(int socket, Instant now);
  void take(const Asker& asker, DnsQuestion question);
  static void answer(const Asker& asker, const std::string& bytes);

  std::vector<UniqueFd> sockets_;
  EgressGate& gate_;
  MachineRoutes& routes_;
  NameResolver resolver_;
  std::map<std::uint64_t, Waiting> waiting_;  // bounded by the resolver
  std::uint64_t next_ = 1;
};

}  // namespace fairlead
