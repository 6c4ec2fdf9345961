// An address of the internet as 16 bytes, IPv4 in its mapped form, and blocks of such addresses. One form for what is one place: a
// rule about 10.0.0.1 holds for ::ffff:10.0.0.1 and for 64:ff9b::10.0.0.1, which a translator (RFC 6052) sends there.
//
// Pure; thread-safe.
#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace fairlead {

struct IpAddress {
  std::array<unsigned char, 16> bytes{};

  bool is_v4() const;
  std::string text() const;  // "10.0.0.1", "fd00::1"
  auto operator<=>(const IpAddress&) const = default;

  // "10.0.0.1", "fd00::1", "::ffff:10.0.0.1"; none of the older forms (10.1, 0x0a000001).
  static std::optional<IpAddress> parse(std::string_view text);
  // nullopt: of another family.
  static std::optional<IpAddress> of(const sockaddr& address);
};

// Where packets to it end: the IPv4 address behind RFC 6052's prefix, else itself.
IpAddress behind_translation(const IpAddress& address);

// As is_global() of registry_rules.h says.
bool is_global(const IpAddress& address);

struct AddressBlock {
  IpAddress first;
  int bits = 128;  // of the 16 bytes, so of an IPv4 block at least 96

  bool contains(const IpAddress& address) const;
  bool contains(const AddressBlock& other) const { return other.bits >= bits && contains(other.first); }
  std::string text() const;  // "10.0.0.0/8", "10.0.0.1"
  bool operator==(const AddressBlock&) const = default;

  // An address, or ADDRESS/BITS without bits set behind them.
  static std::optional<AddressBlock> parse(std::string_view text);
};

}  // namespace fairlead
