#include "model/ip_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "model/registry_rules.h"

namespace fairlead {
namespace {

constexpr std::array<unsigned char, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::array<unsigned char, 12> kTranslated{0, 0x64, 0xff, 0x9b};
constexpr int kMappedBits = 96;

IpAddress mapped(const void* ipv4) {
  IpAddress address;
  std::copy(kMapped.begin(), kMapped.end(), address.bytes.begin());
  std::memcpy(address.bytes.data() + kMapped.size(), ipv4, 4);
  return address;
}

bool begins_with(const IpAddress& address, const std::array<unsigned char, 12>& prefix) {
  return std::equal(prefix.begin(), prefix.end(), address.bytes.begin());
}

// Whether both begin with the same bits.
bool agree(const IpAddress& one, const IpAddress& other, int bits) {
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (!std::equal(one.bytes.begin(), one.bytes.begin() + whole, other.bytes.begin())) return false;
  if (bits % 8 == 0) return true;
  return (one.bytes[whole] ^ other.bytes[whole]) >> (8 - bits % 8) == 0;
}

bool has_bits_behind(const IpAddress& address, int bits) {
  for (int bit = bits; bit < 128; ++bit) {
    if ((address.bytes[static_cast<std::size_t>(bit / 8)] >> (7 - bit % 8) & 1) != 0) return true;
  }
  return false;
}

}  // namespace

bool IpAddress::is_v4() const {
  return begins_with(*this, kMapped);
}

std::string IpAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  const void* const ipv4 = bytes.data() + kMapped.size();
  ::inet_ntop(is_v4() ? AF_INET : AF_INET6, is_v4() ? ipv4 : bytes.data(), buffer.data(), buffer.size());
  return buffer.data();
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  const std::string plain(text);
  if (plain.size() != std::strlen(plain.c_str())) return std::nullopt;
  in_addr ipv4{};
  if (::inet_pton(AF_INET, plain.c_str(), &ipv4) == 1) return mapped(&ipv4);
  IpAddress address;
  if (::inet_pton(AF_INET6, plain.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

std::optional<IpAddress> IpAddress::of(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, &address, sizeof ipv4);
    return mapped(&ipv4.sin_addr);
  }
  if (address.sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 ipv6{};
  std::memcpy(&ipv6, &address, sizeof ipv6);
  IpAddress result;
  std::memcpy(result.bytes.data(), &ipv6.sin6_addr, result.bytes.size());
  return result;
}

IpAddress behind_translation(const IpAddress& address) {
  return begins_with(address, kTranslated) ? mapped(address.bytes.data() + kTranslated.size()) : address;
}

bool is_global(const IpAddress& address) {
  sockaddr_in6 ipv6{};
  ipv6.sin6_family = AF_INET6;
  std::memcpy(&ipv6.sin6_addr, address.bytes.data(), address.bytes.size());
  return is_global(reinterpret_cast<const sockaddr&>(ipv6));
}

// A block of IPv6 has no IPv4 in it, however wide it is: "::/0" must not be a way to write "10.0.0.0/8".
bool AddressBlock::contains(const IpAddress& address) const {
  return (bits >= kMappedBits && first.is_v4()) == address.is_v4() && agree(first, address, bits);
}

std::string AddressBlock::text() const {
  if (bits == 128) return first.text();
  return fmt::format("{}/{}", first.text(), first.is_v4() ? bits - kMappedBits : bits);
}

std::optional<AddressBlock> AddressBlock::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto first = IpAddress::parse(text.substr(0, slash));
  if (!first) return std::nullopt;
  AddressBlock block{*first, 128};
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    // By how it is written: "::ffff:0:0/95" is no block of IPv4.
    const bool is_written_v4 = text.find(':') == std::string_view::npos;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), block.bits);
    if (error != std::errc() || end != digits.data() + digits.size() || block.bits < 0) return std::nullopt;
    if (block.bits > (is_written_v4 ? 32 : 128)) return std::nullopt;
    if (is_written_v4) block.bits += kMappedBits;
    if (first->is_v4() && block.bits < kMappedBits) return std::nullopt;
  }
  if (has_bits_behind(block.first, block.bits)) return std::nullopt;
  return block;
}

}  // namespace fairlead
