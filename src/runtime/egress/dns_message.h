// What a function's resolver asks and what it is told (RFC 1035): one question, of which addresses a name has. Answers are made
// here, from addresses alone; nothing that a name server sent reaches a function.
//
// Pure; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/ip_address.h"

namespace fairlead {

// Of a question, and of an answer: what RFC 1035 has without extensions.
inline constexpr std::size_t kMostDnsBytes = 512;
inline constexpr std::size_t kMostAnswers = 16;  // addresses
inline constexpr std::uint32_t kAnswerTtl = 60;  // seconds; the gate remembers for longer

enum class DnsKind : std::uint16_t { kAddress4 = 1, kAddress6 = 28, kOther = 0 };

struct DnsQuestion {
  std::string name;  // in lower case, without a last dot; "": the root
  DnsKind kind = DnsKind::kOther;
  std::string head;  // id, flags and the question itself, for the answer
};

// nullopt: it is no such question, and not answered at all.
std::optional<DnsQuestion> read_dns_question(std::string_view message);

enum class DnsVerdict : std::uint8_t { kFound = 0, kServerFailed = 2, kNoSuchName = 3 };
// At most kMostDnsBytes; addresses of the other family and those for which there is no room are left out.
std::string dns_answer(const DnsQuestion& question, DnsVerdict verdict, const std::vector<IpAddress>& addresses);

}  // namespace fairlead
