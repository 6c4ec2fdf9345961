// libFuzzer: any bytes are a question for a name, or none; any text is a list of destinations, or refused with an error. What is
// taken is read again as the same, and no list lets anybody reach what nobody reaches.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "runtime/egress/dns_message.h"
#include "runtime/egress/egress_gate.h"

namespace fairlead {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read_question(std::string_view bytes) {
  const auto question = read_dns_question(bytes);
  if (!question) return;
  require(question->name.size() < 256 && question->name.find('\0') == std::string::npos);
  const std::vector<IpAddress> many(40, IpAddress::parse("8.8.8.8").value());
  const std::string answer = dns_answer(*question, DnsVerdict::kFound, many);
  require(answer.size() <= kMostDnsBytes && answer.substr(0, 2) == bytes.substr(0, 2));
}

void read_list(std::string_view text) {
  const auto list = EgressList::parse(text);
  if (!list) return require(!list.error().message.empty());
  require(EgressList::parse(list->text()).value() == *list);
  require(list->beyond(*list) == nullptr);
  EgressGate gate({*list, *list});
  IpAddress address;
  std::copy_n(text.begin(), std::min(text.size(), address.bytes.size()), address.bytes.begin());
  for (const char* never : {"127.0.0.1", "::1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::169.254.169.254"}) {
    require(!gate.refusal(IpAddress::parse(never).value(), 80, false, Instant()).empty());
  }
  require(!gate.refusal(address, 80, true, Instant()).empty());
}

}  // namespace
}  // namespace fairlead

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  fairlead::read_question(bytes);
  fairlead::read_list(bytes);
  return 0;
}
