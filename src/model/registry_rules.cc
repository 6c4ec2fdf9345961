#include "model/registry_rules.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

namespace fairlead {
namespace {

constexpr std::string_view kPublic = "public";
constexpr std::string_view kNone = "none";
constexpr std::string_view kBelow = "*.";
constexpr std::size_t kMostEntryBytes = 256;

struct Block4 {
  std::uint32_t address;
  int bits;
};
// Source: IANA IPv4 Special-Purpose Address Registry, and multicast.
constexpr Block4 kNotGlobal4[] = {
    {0x00000000, 8},   // this network
    {0x0a000000, 8},   // private
    {0x64400000, 10},  // shared
    {0x7f000000, 8},   // loopback
    {0xa9fe0000, 16},  // link-local, and what clouds tell their machines
    {0xac100000, 12},  // private
    {0xc0000000, 24},  // protocol assignments
    {0xc0000200, 24},  // documentation
    {0xc0586300, 24},  // 6to4 relays
    {0xc0a80000, 16},  // private
    {0xc6120000, 15},  // benchmarks
    {0xc6336400, 24},  // documentation
    {0xcb007100, 24},  // documentation
    {0xe0000000, 4},   // multicast
    {0xf0000000, 4},   // reserved, broadcast
};

bool is_global4(std::uint32_t address) {
  return std::none_of(std::begin(kNotGlobal4), std::end(kNotGlobal4),
                      [address](const Block4& block) { return (address ^ block.address) >> (32 - block.bits) == 0; });
}

std::uint32_t big_endian(const unsigned char* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

// Only 2000::/3 is given out; within it the special blocks are left out. NAT64 leads to an IPv4 address.
bool is_global6(const unsigned char* address) {
  constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  constexpr unsigned char kNat64[12] = {0, 0x64, 0xff, 0x9b};
  if (std::memcmp(address, kMapped, 12) == 0 || std::memcmp(address, kNat64, 12) == 0) {
    return is_global4(big_endian(address + 12));
  }
  const std::uint32_t first = big_endian(address);
  if (first >> 29 != 1) return false;
  const bool is_protocol = first >> 9 == 0x20010000 >> 9;  // 2001::/23: Teredo, benchmarks, ORCHID
  const bool is_documentation = first == 0x20010db8 || first >> 12 == 0x3fff0000 >> 12;
  const bool is_6to4 = first >> 16 == 0x2002;
  return !is_protocol && !is_documentation && !is_6to4;
}

// What needs no look-up: this machine's own name, and addresses.
bool is_plainly_local(const std::string& host) {
  in_addr ipv4{};
  in6_addr ipv6{};
  if (::inet_pton(AF_INET, host.c_str(), &ipv4) == 1) return !is_global4(ntohl(ipv4.s_addr));
  if (::inet_pton(AF_INET6, host.c_str(), &ipv6) == 1) return !is_global6(ipv6.s6_addr);
  return host == "localhost" || host.ends_with(".localhost");
}

bool is_host_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
}

}  // namespace

HostPort split_host_port(std::string_view text) {
  HostPort result;
  std::string_view host = text, port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return {std::string(text), 0};
    host = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && !rest.starts_with(':')) result.port = 0;
    if (rest.starts_with(':')) port = rest.substr(1);
    if (rest == ":") result.port = 0;
  } else if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.empty()) result.port = 0;
  }
  if (!port.empty()) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), result.port);
    if (error != std::errc() || end != port.data() + port.size()) result.port = 0;
  }
  // "host." is the same host.
  if (host.size() > 1 && host.ends_with('.')) host.remove_suffix(1);
  for (const char c : host) result.host += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string registry_of(std::string_view repository) {
  const std::size_t slash = repository.find('/');
  const std::string_view first = repository.substr(0, slash);
  const bool is_host = slash != std::string_view::npos &&
                       (first.find_first_of(".:") != std::string_view::npos || first == "localhost" ||
                        std::any_of(first.begin(), first.end(), [](unsigned char c) { return std::isupper(c) != 0; }));
  return is_host ? std::string(first) : "docker.io";
}

bool is_global(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, &address, sizeof ipv4);
    return is_global4(ntohl(ipv4.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 ipv6{};
  std::memcpy(&ipv6, &address, sizeof ipv6);
  return is_global6(ipv6.sin6_addr.s6_addr);
}

Result<RegistryRules> RegistryRules::parse(const std::vector<std::string>& entries) {
  RegistryRules rules;
  for (const std::string& entry : entries) {
    if (entry == kNone) continue;
    if (entry == kPublic) {
      rules.is_public_ = true;
      continue;
    }
    HostPort host = split_host_port(entry);
    std::string_view name = host.host;
    if (name.starts_with(kBelow)) name.remove_prefix(kBelow.size());
    const bool is_name = !name.empty() && entry.size() <= kMostEntryBytes && host.port != 0 &&
                         std::all_of(name.begin(), name.end(), is_host_character);
    if (!is_name) {
      return fail(Errc::kInvalidArgument, "'{}' is no registry: it must be public, none, HOST, HOST:PORT or *.DOMAIN",
                  entry.substr(0, kMostEntryBytes));
    }
    rules.hosts_.push_back(std::move(host));
  }
  return rules;
}

bool RegistryRules::allows(const HostPort& target) const {
  return names(target) || (is_public_ && target.port == kHttpsPort && !is_plainly_local(target.host));
}

RegistryRules RegistryRules::everything_public() {
  RegistryRules rules;
  rules.is_public_ = true;
  return rules;
}

bool RegistryRules::names(const HostPort& target) const {
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const HostPort& known) {
    if (known.port != target.port) return false;
    if (!known.host.starts_with(kBelow)) return known.host == target.host;
    return target.host.size() > known.host.size() - 1 && target.host.ends_with(known.host.substr(1));
  });
}

std::string RegistryRules::advice(const HostPort& target) {
  const std::string name = target.host.find(':') == std::string::npos ? target.host : "[" + target.host + "]";
  const std::string entry = target.port == kHttpsPort ? name : fmt::format("{}:{}", name, target.port);
  return fmt::format("to allow it the operator adds '{}' to the setting registries", entry);
}

}  // namespace fairlead
