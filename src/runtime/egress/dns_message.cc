#include "runtime/egress/dns_message.h"

#include <algorithm>
#include <cctype>

namespace fairlead {
namespace {

constexpr std::size_t kHeaderBytes = 12, kMostNameBytes = 255, kMostLabelBytes = 63;
constexpr unsigned kAnswerBit = 0x8000, kKindOfQuery = 0x7800, kWantsRecursion = 0x0100, kHasRecursion = 0x0080;
constexpr unsigned kInternet = 1;
constexpr std::string_view kNameOfQuestion("\xc0\x0c", 2);  // a pointer to byte 12

unsigned number16(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned>(static_cast<unsigned char>(bytes[at])) << 8 | static_cast<unsigned char>(bytes[at + 1]);
}

void put16(std::string& bytes, unsigned value) {
  bytes += static_cast<char>(value >> 8 & 0xff);
  bytes += static_cast<char>(value & 0xff);
}

// The name at `at`, which is moved behind it. Labels with other characters than a host's are none of ours to ask for: a dot within
// one would make another name of it. No pointers: a question has nothing to point to.
bool read_name(std::string_view message, std::size_t& at, std::string& name) {
  const std::size_t first = at;
  while (at < message.size()) {
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(message[at++]));
    if (length == 0) return true;
    if (length > kMostLabelBytes || length > message.size() - at || at + length - first > kMostNameBytes) return false;
    if (!name.empty()) name += '.';
    for (const char c : message.substr(at, length)) {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) == 0 && c != '-' && c != '_') return false;
      name += static_cast<char>(std::tolower(byte));
    }
    at += length;
  }
  return false;
}

bool fits(const std::string& answer, std::size_t more) {
  return answer.size() + more <= kMostDnsBytes;
}

}  // namespace

std::optional<DnsQuestion> read_dns_question(std::string_view message) {
  if (message.size() < kHeaderBytes || message.size() > kMostDnsBytes) return std::nullopt;
  const unsigned flags = number16(message, 2);
  if ((flags & (kAnswerBit | kKindOfQuery)) != 0 || number16(message, 4) != 1) return std::nullopt;
  DnsQuestion question;
  std::size_t at = kHeaderBytes;
  if (!read_name(message, at, question.name) || message.size() - at < 4) return std::nullopt;
  const unsigned kind = number16(message, at);
  if (number16(message, at + 2) == kInternet && (kind == 1 || kind == 28)) question.kind = static_cast<DnsKind>(kind);
  question.head = std::string(message.substr(0, at + 4));
  return question;
}

std::string dns_answer(const DnsQuestion& question, DnsVerdict verdict, const std::vector<IpAddress>& addresses) {
  const bool wants_v4 = question.kind == DnsKind::kAddress4;
  std::string records;
  unsigned count = 0;
  const std::size_t head = question.head.size();
  for (const IpAddress& address : addresses) {
    if (question.kind == DnsKind::kOther || address.is_v4() != wants_v4) continue;
    const std::size_t size = wants_v4 ? 4 : 16;
    if (count == kMostAnswers || !fits(records, head + kNameOfQuestion.size() + 10 + size)) break;
    records += kNameOfQuestion;
    put16(records, static_cast<unsigned>(question.kind));
    put16(records, kInternet);
    put16(records, kAnswerTtl >> 16);
    put16(records, kAnswerTtl & 0xffff);
    put16(records, static_cast<unsigned>(size));
    records.append(reinterpret_cast<const char*>(address.bytes.data()) + (16 - size), size);
    ++count;
  }
  std::string answer = question.head.substr(0, 2);
  const unsigned asked = number16(question.head, 2) & kWantsRecursion;
  put16(answer, kAnswerBit | asked | kHasRecursion | static_cast<unsigned>(verdict));
  put16(answer, 1);
  put16(answer, count);
  put16(answer, 0);
  put16(answer, 0);
  return answer + question.head.substr(kHeaderBytes) + records;
}

}  // namespace fairlead
