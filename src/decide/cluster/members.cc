#include "decide/cluster/members.h"

#include "base/check.h"

namespace fairlead {

std::string_view member_state_name(MemberState state) {
  switch (state) {
    case MemberState::kAlive: return "alive";
    case MemberState::kSuspect: return "suspect";
    case MemberState::kDead: return "dead";
    case MemberState::kDraining: return "draining";
    case MemberState::kLeft: return "left";
  }
  return "";
}

Status validate(const MemberTimes& times) {
  const double period = to_ms(times.gossip_period), suspect = to_ms(times.suspect_after),
               dead = to_ms(times.dead_after);
  if (period < 1 || period > 60'000) {
    return fail(Errc::kInvalidArgument, "gossip period is {} ms, it must be 1 to 60000", period);
  }
  if (suspect < 2 * period) {
    return fail(Errc::kInvalidArgument,
                "suspect after is {} ms, it must be at least two gossip periods, {} ms: one report may be lost",
                suspect, 2 * period);
  }
  if (dead < suspect)
    return fail(Errc::kInvalidArgument, "dead after is {} ms, it must be at least suspect after, {} ms", dead, suspect);
  return {};
}

void Members::become(Member& member, MemberState state) {
  if (member.state == state) return;
  const bool took = member.state == MemberState::kAlive;
  member.state = state;
  if (took != (state == MemberState::kAlive)) ++epoch_;
}

void Members::add(Instant now, NodeId node) {
  FL_CHECK(node, "node 0 is none");
  if (knows(node)) return;
  if (members_.size() < node.value()) members_.resize(node.value());
  members_[node.value() - 1] = {.is_known = true, .heard_at = now};
  ++epoch_;
}

Heard Members::heard(Instant now, NodeId node, const Word& word) {
  Member* member = find(node);
  if (member == nullptr) return Heard::kOld;
  const bool is_over = member->state == MemberState::kDead || member->state == MemberState::kLeft;
  if (is_over && word.incarnation <= member->incarnation) {
    return word.incarnation == member->incarnation ? Heard::kThoughtDead : Heard::kOld;
  }
  if (word.incarnation < member->incarnation) return Heard::kOld;
  if (word.incarnation == member->incarnation && word.number <= member->number) return Heard::kOld;
  member->incarnation = word.incarnation;
  member->number = word.number;
  member->heard_at = now;
  member->is_draining = word.is_draining;
  become(*member, word.is_draining ? MemberState::kDraining : MemberState::kAlive);
  return Heard::kNews;
}

void Members::unreachable(Instant, NodeId node) {
  Member* member = find(node);
  if (member == nullptr) return;
  if (member->state == MemberState::kAlive || member->state == MemberState::kDraining)
    become(*member, MemberState::kSuspect);
}

void Members::rumoured_dead(Instant, NodeId node, std::uint64_t incarnation) {
  Member* member = find(node);
  if (member == nullptr || member->state != MemberState::kSuspect || incarnation != member->incarnation) return;
  become(*member, MemberState::kDead);
}

void Members::left(NodeId node, std::uint64_t incarnation) {
  Member* member = find(node);
  if (member == nullptr || incarnation < member->incarnation) return;
  member->incarnation = incarnation;
  become(*member, MemberState::kLeft);
}

std::vector<NodeId> Members::advance(Instant now) {
  std::vector<NodeId> changed;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (!member.is_known || member.state == MemberState::kDead || member.state == MemberState::kLeft) continue;
    const MemberState before = member.state;
    const Duration silent = now - member.heard_at;
    if (silent >= times_.dead_after) {
      become(member, MemberState::kDead);
    } else if (silent >= times_.suspect_after) {
      become(member, MemberState::kSuspect);
    }
    if (member.state != before) changed.emplace_back(i + 1);
  }
  return changed;
}

MemberState Members::state(NodeId node) const {
  FL_CHECK(knows(node), "node {} is not there", node.value());
  return members_[node.value() - 1].state;
}

std::uint64_t Members::incarnation(NodeId node) const {
  FL_CHECK(knows(node), "node {} is not there", node.value());
  return members_[node.value() - 1].incarnation;
}

bool Members::may_live(NodeId node) const {
  return knows(node) && (state(node) == MemberState::kAlive || state(node) == MemberState::kSuspect);
}

}  // namespace fairlead
