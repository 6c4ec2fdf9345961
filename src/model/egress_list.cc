#include "model/egress_list.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "model/tenant.h"

namespace fairlead {
namespace {

constexpr std::string_view kAll = "all", kNone = "none", kBelow = "*.";
constexpr std::size_t kMostNameBytes = 253, kMostLabelBytes = 63;

std::vector<AddressBlock> blocks(std::initializer_list<const char*> texts) {
  std::vector<AddressBlock> parsed;
  for (const char* text : texts) parsed.push_back(AddressBlock::parse(text).value());
  return parsed;
}

const std::vector<AddressBlock>& never_reached() {
  static const std::vector<AddressBlock> kBlocks =
      blocks({"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "168.63.129.16", "100.100.100.200", "224.0.0.0/4",
              "240.0.0.0/4", "::/128", "::1", "fe80::/10", "ff00::/8", "fd00:ec2::254", "fd20:ce::254"});
  return kBlocks;
}

bool is_never_reached(const AddressBlock& block) {
  return std::any_of(never_reached().begin(), never_reached().end(),
                     [&](const AddressBlock& never) { return never.contains(block); });
}

// RFC 1123, and '_', which some names in the DNS have. The last label begins with a letter: "127.1" and "0x7f.1" are what some
// programs take for addresses.
bool is_host_name(std::string_view name) {
  if (name.empty() || name.size() > kMostNameBytes) return false;
  std::string_view label;
  while (true) {
    const std::size_t dot = name.find('.');
    label = name.substr(0, dot);
    const bool is_label = !label.empty() && label.size() <= kMostLabelBytes && label.front() != '-' &&
                          std::all_of(label.begin(), label.end(),
                                      [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
    if (!is_label) return false;
    if (dot == std::string_view::npos) break;
    name.remove_prefix(dot + 1);
  }
  return std::isalpha(static_cast<unsigned char>(label.front())) != 0;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

// What stands before and behind the colon of a port; an IPv6 address with a port is in brackets.
struct Parts {
  std::string_view place;
  std::string_view port;  // "": none was said
  bool is_port_said = false;
};
Parts split(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos || (end + 1 < text.size() && text[end + 1] != ':')) return {};
    const bool has_port = end + 1 < text.size();
    return {text.substr(1, end - 1), has_port ? text.substr(end + 2) : std::string_view(), has_port};
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos) return {text, {}, false};
  return {text.substr(0, colon), text.substr(colon + 1), true};
}

bool read_port(const Parts& parts, std::uint16_t& port) {
  if (!parts.is_port_said) return true;
  const auto [end, error] = std::from_chars(parts.port.data(), parts.port.data() + parts.port.size(), port);
  return error == std::errc() && end == parts.port.data() + parts.port.size() && port != 0;
}

Result<EgressEntry> read_entry(std::string_view text) {
  const auto is_none = [&] {
    return fail(Errc::kInvalidArgument,
                "'{}' is no destination: it must be all, NAME, *.DOMAIN, ADDRESS or ADDRESS/BITS, each with :PORT or "
                "without, such as pypi.org:443, 10.1.0.0/16 or [fd00::1]:443; or none alone",
                text.substr(0, kMostNameBytes));
  };
  const Parts parts = split(text);
  EgressEntry entry;
  if (!read_port(parts, entry.port)) return is_none();
  if (const auto block = AddressBlock::parse(parts.place)) {
    if (is_never_reached(*block)) {
      return fail(Errc::kInvalidArgument,
                  "'{}' is an address that no function reaches: loopback, link-local, multicast, of no host, or one at "
                  "which a cloud tells machines their secrets; take it out of the list",
                  text);
    }
    entry.kind = EgressEntry::Kind::kBlock;
    entry.block = *block;
    return entry;
  }
  std::string name = lower(parts.place);
  if (name == kAll) return entry;
  entry.kind = name.starts_with(kBelow) ? EgressEntry::Kind::kBelow : EgressEntry::Kind::kName;
  if (entry.kind == EgressEntry::Kind::kBelow) name.erase(0, kBelow.size());
  if (name.size() > 1 && name.ends_with('.')) name.pop_back();
  // No host has a name that is a word of the list's: "all." would be written as "all".
  const bool is_word = entry.kind == EgressEntry::Kind::kName && (name == kNone || name == kAll);
  if (!is_host_name(name) || is_word) return is_none();
  entry.name = std::move(name);
  return entry;
}

bool is_separator(char c) {
  return c == ',' || c == ' ' || c == '\t' || c == '\n';
}

// Whether every address of the block is public: what is not lies in a block of its own, so that a public block has public ends,
// and holds the first address of each that is not.
bool is_global(const AddressBlock& block) {
  static const std::vector<AddressBlock> kWithin =
      blocks({"10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
              "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
              "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"});
  // 224.0.0.0/3 and what is not in 2000::/3 hold first addresses that are not public; a wider block begins outside, too.
  if (!is_global(block.first)) return false;
  return std::none_of(kWithin.begin(), kWithin.end(), [&](const AddressBlock& inner) { return block.contains(inner); });
}

}  // namespace

bool is_never_reached(const IpAddress& address) {
  const IpAddress end = behind_translation(address);
  return is_never_reached(AddressBlock{end, 128});
}

bool EgressEntry::has_name(std::string_view wanted) const {
  if (kind == Kind::kName) return wanted == name;
  if (kind != Kind::kBelow || wanted.size() < name.size() + 2) return false;
  return wanted.ends_with(name) && wanted[wanted.size() - name.size() - 1] == '.';
}

bool EgressEntry::covers(const EgressEntry& other) const {
  if (port != 0 && port != other.port) return false;
  switch (other.kind) {
    case Kind::kAll: return kind == Kind::kAll;
    case Kind::kName: return kind == Kind::kAll || has_name(other.name);
    case Kind::kBelow:
      return kind == Kind::kAll || (kind == Kind::kBelow && (name == other.name || has_name(other.name)));
    case Kind::kBlock:
      return (kind == Kind::kAll && is_global(other.block)) || (kind == Kind::kBlock && block.contains(other.block));
  }
  return false;
}

std::string EgressEntry::text() const {
  const bool needs_brackets = kind == Kind::kBlock && port != 0 && block.text().find(':') != std::string::npos;
  std::string place = kind == Kind::kAll ? std::string(kAll) : kind == Kind::kBlock ? block.text() : name;
  if (kind == Kind::kBelow) place.insert(0, kBelow);
  if (needs_brackets) place = "[" + place + "]";
  return port == 0 ? place : fmt::format("{}:{}", place, port);
}

Result<EgressList> EgressList::parse(std::string_view text) {
  if (text.size() > kMaxEgressText) {
    return fail(Errc::kInvalidArgument, "a list of destinations has {} bytes; it must have {} at most", text.size(),
                kMaxEgressText);
  }
  EgressList list;
  bool says_none = false;
  std::size_t count = 0;
  while (true) {
    while (!text.empty() && is_separator(text.front())) text.remove_prefix(1);
    if (text.empty()) break;
    const auto end = std::find_if(text.begin(), text.end(), is_separator);
    const std::string_view word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    text.remove_prefix(word.size());
    ++count;
    if (lower(word) == kNone) {
      says_none = true;
      continue;
    }
    Result<EgressEntry> entry = read_entry(word);
    if (!entry) return fail(entry.error());
    list.entries_.push_back(*std::move(entry));
  }
  if (count == 0 || count > kMaxEgressEntries) {
    return fail(Errc::kInvalidArgument, "a list of destinations has {} entries; it must have 1 to {}, or be none",
                count, kMaxEgressEntries);
  }
  if (says_none && count > 1) {
    return fail(Errc::kInvalidArgument, "'none' stands alone in a list of destinations; this one has {} entries",
                count);
  }
  return list;
}

std::string EgressList::text() const {
  std::string text;
  for (const EgressEntry& entry : entries_) text += (text.empty() ? "" : ",") + entry.text();
  return text.empty() ? std::string(kNone) : text;
}

bool EgressList::has_name(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const EgressEntry& entry) {
    return entry.kind == EgressEntry::Kind::kAll || entry.has_name(name);
  });
}

bool EgressList::has_named(std::string_view name, std::uint16_t port) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const EgressEntry& entry) { return entry.has_port(port) && entry.has_name(name); });
}

bool EgressList::has_block_of(const IpAddress& address, std::uint16_t port) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const EgressEntry& entry) {
    return entry.kind == EgressEntry::Kind::kBlock && entry.has_port(port) && entry.block.contains(address);
  });
}

bool EgressList::has_all(std::uint16_t port) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const EgressEntry& entry) {
    return entry.kind == EgressEntry::Kind::kAll && entry.has_port(port);
  });
}

const EgressEntry* EgressList::beyond(const EgressList& other) const {
  for (const EgressEntry& wanted : other.entries_) {
    const bool is_covered =
        std::any_of(entries_.begin(), entries_.end(), [&](const EgressEntry& entry) { return entry.covers(wanted); });
    if (!is_covered) return &wanted;
  }
  return nullptr;
}

Result<EgressGrant> parse_egress_grant(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return fail(Errc::kInvalidArgument, "'{}' gives nobody anything; it must be TENANT=none, TENANT=all or TENANT=LIST",
                text.substr(0, kMostNameBytes));
  }
  EgressGrant grant{.tenant = text.substr(0, equals), .list = {}};
  if (Status valid = validate_tenant(grant.tenant); !valid) return fail(valid.error());
  Result<EgressList> list = EgressList::parse(std::string_view(text).substr(equals + 1));
  if (!list) return fail(list.error());
  grant.list = *std::move(list);
  return grant;
}

Result<EgressTerms> egress_of(const std::vector<EgressGrant>& grants, const std::map<std::string, std::string>& tags) {
  EgressTerms terms;
  const auto tag = tags.find(kEgressTag);
  if (tag == tags.end()) return terms;
  Result<EgressList> asked = EgressList::parse(tag->second);
  if (!asked) return fail(asked.error().code, "tag {}: {}", kEgressTag, asked.error().message);
  if (asked->is_none()) return terms;
  terms.asked = *std::move(asked);
  const std::string tenant = tenant_of(tags);
  const auto grant =
      std::find_if(grants.begin(), grants.end(), [&](const EgressGrant& entry) { return entry.tenant == tenant; });
  if (grant != grants.end()) terms.granted = grant->list;
  if (const EgressEntry* const wanted = terms.granted.beyond(terms.asked)) {
    return fail(Errc::kInvalidArgument,
                "tag {} asks for '{}'; tenant {} may reach at most: {}; the operator gives more with "
                "serve --egress {}=LIST",
                kEgressTag, wanted->text(), tenant, terms.granted.text(), tenant);
  }
  return terms;
}

}  // namespace fairlead
