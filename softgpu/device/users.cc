#include "softgpu/device/users.h"

#include <algorithm>

#include "softgpu/device/process_account.h"

// The words of a user: `busy_ns` is all the time that it computed, `busy_before_ns` what of it lies in the current window
// (the low half) and in the one before, `since_ns` when it began to compute, or kChanging while that moves into the other
// two, so that a reader counts nothing twice and misses nothing.
namespace softgpu {
namespace {

constexpr std::uint64_t kChanging = UINT64_MAX;
constexpr unsigned kHalfBits = 32;
constexpr std::uint64_t kHalf = (std::uint64_t{1} << kHalfBits) - 1;

constexpr std::uint64_t kWindowNs = 500'000'000;

// The parts of a time that ends now which lie in the current window and in the one before.
struct Part {
  std::uint64_t current = 0;
  std::uint64_t before = 0;
};
Part part_of(std::uint64_t since_ns, std::uint64_t now_ns) {
  if (since_ns == 0 || since_ns >= now_ns) return {};
  const std::uint64_t start = now_ns / kWindowNs * kWindowNs;
  const std::uint64_t before = since_ns < start ? start - std::max(since_ns, start - kWindowNs) : 0;
  return {now_ns - std::max(since_ns, start), before};
}

// What a user's words say of the window with this number and the one before.
Part known_part(const User& user, std::uint64_t window) {
  const std::uint64_t known = user.window.load();
  const std::uint64_t halves = user.busy_before_ns.load();
  if (known == window) return {halves & kHalf, halves >> kHalfBits};
  if (known + 1 == window) return {0, halves & kHalf};
  return {};
}

}  // namespace

// What the slot's last process left does not count.
void Users::add(Owner owner) {
  User& user = control_.users[owner.slot];
  user.owner.store(0);
  for (auto* word : {&user.since_ns, &user.window, &user.busy_ns, &user.busy_before_ns}) word->store(0);
  user.owner.store(owner.pack());
}

std::vector<Owner> Users::list() const {
  std::vector<Owner> users;
  for (const User& user : control_.users) {
    const std::uint32_t word = user.owner.load();
    if (word == 0) continue;
    const Owner owner = Owner::unpack(word);
    if (owner.slot < kMaxClients && clients_.alive(owner)) users.push_back(owner);
  }
  return users;
}

bool Users::others(Owner self) const {
  const std::vector<Owner> users = list();
  return std::any_of(users.begin(), users.end(), [&](Owner user) { return user != self; });
}

void Users::end(Owner owner, std::uint64_t now_ns) {
  User& user = control_.users[owner.slot];
  const std::uint64_t since = user.since_ns.exchange(kChanging);
  const Part part = part_of(since, now_ns);
  const std::uint64_t window = now_ns / kWindowNs;
  const Part known = known_part(user, window);
  if (since != 0 && since < now_ns) user.busy_ns.fetch_add(now_ns - since);
  const std::uint64_t before = std::min(kWindowNs, known.before + part.before);
  user.busy_before_ns.store(before << kHalfBits | (known.current + part.current));
  user.window.store(window);
  user.since_ns.store(0);
}

double Users::busy(Owner owner, std::uint64_t now_ns) const {
  const User& user = control_.users[owner.slot];
  const Part running = part_of(user.since_ns.load(), now_ns);
  const Part known = known_part(user, now_ns / kWindowNs);
  const std::uint64_t current = running.current + known.current;
  const std::uint64_t before = running.before + known.before;
  const double left = 1.0 - static_cast<double>(now_ns % kWindowNs) / kWindowNs;
  const double busy = static_cast<double>(current) + static_cast<double>(std::min(before, kWindowNs)) * left;
  return std::min(1.0, busy / kWindowNs);
}

// Who was killed in the middle of a change leaves it: then what is there is taken.
std::uint64_t computed_ns(const Control& control, Owner owner, std::uint64_t now_ns) {
  constexpr int kMostReads = 1000;
  const User& user = control.users[owner.slot];
  for (int read = 0; read < kMostReads; ++read) {
    const std::uint64_t since = user.since_ns.load();
    const std::uint64_t before = user.busy_ns.load();
    if (since == kChanging || user.since_ns.load() != since) continue;
    return before + (since != 0 && since < now_ns ? now_ns - since : 0);
  }
  return user.busy_ns.load();
}

}  // namespace softgpu
