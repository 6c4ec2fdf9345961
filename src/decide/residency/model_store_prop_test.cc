// Programs that open, seal, close, die in any order, versions that go, servers that end: each open has one answer at most (and
// one at the end, where its process lives), nobody gets blocks that are not sealed or not his, budgets hold, nothing is left.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/rng.h"
#include "decide/residency/model_store.h"

namespace fairlead {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class World {
 public:
  explicit World(std::uint64_t seed) : rng_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      step();
      check();
    }
    finish();
  }

 private:
  static constexpr std::uint64_t kMemory = 40 * kMiB, kTenant = 24 * kMiB;
  struct Program {
    std::string tenant, scope;
    std::set<std::string> lends, uses;
    std::set<std::uint64_t> unanswered;
    std::set<TensorId> filling, holding;
  };

  std::uint64_t below(std::uint64_t count) { return rng_.below(count); }
  std::uint64_t any(const std::map<std::uint64_t, Program>& programs) {
    return std::next(programs.begin(), static_cast<std::ptrdiff_t>(below(programs.size())))->first;
  }

  void start() {
    const std::uint64_t n = ++last_;
    Program& program = programs_[n];
    program.tenant = std::string(1, static_cast<char>('a' + below(3)));
    program.scope = program.tenant + std::to_string(below(2));
    if (below(2) == 0) program.lends.insert(below(2) == 0 ? "@all" : "b");
    if (below(2) == 0) program.uses.insert("a");
    terms_[program.scope] = {program.lends, program.uses};
    store_.add_instance({InstanceId(n), program.tenant, program.scope, program.lends, program.uses});
    store_.add_holder(HolderId(n), InstanceId(n));
  }

  void step() {
    ModelActions out;
    now_ += std::chrono::milliseconds(1);
    if (programs_.size() < 2 || (programs_.size() < 12 && below(6) == 0)) return start();
    const std::uint64_t n = any(programs_);
    Program& program = programs_.at(n);
    switch (below(13)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        ModelOpen request{.number = ++number_,
                          .id = std::string(1, static_cast<char>('p' + below(4))),
                          .bytes = below(3) * 4 * kMiB,
                          .digest = std::nullopt,
                          .wait = below(2) == 0};
        if (below(2) == 0) request.digest = content(below(3));
        program.unanswered.insert(request.number);
        store_.open(now_, HolderId(n), request, out);
        break;
      }
      case 4:
      case 5:
        if (program.filling.empty()) return;
        program.unanswered.insert(++number_);
        store_.seal(HolderId(n), number_, *program.filling.begin(), out);
        program.filling.erase(program.filling.begin());
        break;
      case 6: {  // what it has, or what is another's
        const TensorId tensor = program.holding.empty() ? TensorId(1 + below(50)) : *program.holding.begin();
        program.holding.erase(tensor);
        program.filling.erase(tensor);
        store_.close(now_, HolderId(n), tensor, out);
        break;
      }
      case 7:
        if (below(3) != 0) return;
        programs_.erase(n);
        store_.holder_gone(now_, HolderId(n), out);
        carry_out(out);
        out.clear();
        store_.instance_gone(now_, InstanceId(n), out);
        break;
      case 8:
        if (below(4) == 0) store_.scope_gone(program.scope, out), terms_.erase(program.scope);
        break;
      case 11:
        if (!terms_.contains(program.scope)) break;
        terms_[program.scope] = {below(2) == 0 ? std::set<std::string>() : std::set<std::string>{"@all"},
                                 below(2) == 0 ? std::set<std::string>() : std::set<std::string>{"a"}};
        store_.consent_changed(program.scope, terms_[program.scope].first, terms_[program.scope].second);
        break;
      case 9:
        if (below(20) == 0) lose_server(out);
        break;
      case 10: store_.evict(below(16) * kMiB, out); break;
      default: return serve();
    }
    carry_out(out);
  }

  void lose_server(ModelActions& out) {
    store_.server_lost("lost", out);
    creating_.clear();
    hashing_.clear();
    memory_.clear();
    for (auto& [n, program] : programs_) program.filling.clear(), program.holding.clear();
  }

  // One thing that the server was told, in any order.
  void serve() {
    ModelActions out;
    if (!creating_.empty() && below(2) == 0) {
      const TensorId tensor = take(creating_);
      const bool full = below(8) == 0;
      if (full) memory_.erase(tensor);
      store_.created(tensor, full ? std::optional(ModelFailure{ModelRefusal::kNoRoom, "full"}) : std::nullopt, out);
    } else if (!hashing_.empty()) {
      const TensorId tensor = take(hashing_);
      if (!contents_.contains(tensor) || below(10) == 0) contents_[tensor] = below(3);  // one in ten was written to
      store_.hashed(now_, tensor, content(contents_[tensor]), out);
    }
    carry_out(out);
  }
  TensorId take(std::set<TensorId>& set) {
    const TensorId tensor = *std::next(set.begin(), static_cast<std::ptrdiff_t>(below(set.size())));
    set.erase(tensor);
    return tensor;
  }
  static ModelDigest content(std::uint64_t which) {
    ModelDigest digest{};
    digest[0] = static_cast<std::uint8_t>(which);
    return digest;
  }

  void carry_out(const ModelActions& actions) {
    for (const ModelAction& action : actions) std::visit([this](const auto& a) { act(a); }, action);
  }
  void act(const CreateTensor& a) {
    EXPECT_TRUE(memory_.insert(a.tensor).second);
    creating_.insert(a.tensor);
  }
  void act(const HashTensor& a) { hashing_.insert(a.tensor); }
  void act(const DropTensor& a) {
    memory_.erase(a.tensor);
    creating_.erase(a.tensor);
    hashing_.erase(a.tensor);
    owner_.erase(a.tensor);
    for (auto& [n, program] : programs_) program.filling.erase(a.tensor), program.holding.erase(a.tensor);
  }
  void act(const GiveTensor& a) {
    answered(a.holder, a.number);
    EXPECT_TRUE(memory_.contains(a.tensor)) << "blocks that are not there";
    EXPECT_TRUE(store_.may_map(a.holder, a.tensor) || a.to_fill);
    const auto found = programs_.find(a.holder.value());
    if (found == programs_.end()) return;
    Program& program = found->second;
    if (a.to_fill) {
      owner_[a.tensor] = program;
      program.filling.insert(a.tensor);
      return;
    }
    EXPECT_EQ(store_.state(a.tensor), ModelStore::State::kSealed);
    const Program& owner = owner_.at(a.tensor);
    const bool takes = terms_.contains(program.scope) && terms_.at(program.scope).second.contains(owner.tenant);
    const bool both = takes && lends(owner.tenant, program.tenant);
    EXPECT_TRUE(owner.tenant == program.tenant || both) << owner.tenant << " for " << program.tenant;
    program.holding.insert(a.tensor);
  }
  // Whether any version of the owner's does, as it is said now.
  bool lends(const std::string& owner, const std::string& tenant) const {
    for (const auto& [scope, terms] : terms_) {
      if (scope.substr(0, 1) == owner && (terms.first.contains(tenant) || terms.first.contains("@all"))) return true;
    }
    return false;
  }
  void act(const RefuseModel& a) { answered(a.holder, a.number); }
  void answered(HolderId holder, std::uint64_t number) {
    const auto found = programs_.find(holder.value());
    ASSERT_NE(found, programs_.end()) << "an answer to who is gone";
    EXPECT_EQ(found->second.unanswered.erase(number), 1U) << "a second answer, or to another";
  }

  void check() {
    EXPECT_LE(store_.use().bytes, kMemory);
    const ModelStoreUse use = store_.use();
    for (const auto& [tenant, bytes] : use.by_tenant) EXPECT_LE(bytes, kTenant) << tenant;
    for (const auto& [n, program] : programs_) {
      for (const TensorId tensor : program.holding) EXPECT_TRUE(store_.may_map(HolderId(n), tensor));
    }
  }

  void finish() {
    while (!creating_.empty() || !hashing_.empty()) serve();
    for (auto& [n, program] : programs_) {  // what waits for a filler waits until it goes
      ModelActions out;
      for (const TensorId tensor : std::set<TensorId>(program.filling)) store_.close(now_, HolderId(n), tensor, out);
      carry_out(out);
    }
    while (!creating_.empty() || !hashing_.empty()) serve();
    for (const auto& [n, program] : programs_) EXPECT_TRUE(program.unanswered.empty()) << "no answer";
    std::set<std::string> scopes;
    while (!programs_.empty()) {
      const std::uint64_t n = programs_.begin()->first;
      scopes.insert(programs_.begin()->second.scope);
      programs_.erase(n);
      ModelActions out;
      store_.instance_gone(now_, InstanceId(n), out);
      carry_out(out);
    }
    for (const char* const scope : {"a0", "a1", "b0", "b1", "c0", "c1"}) {
      ModelActions out;
      store_.scope_gone(scope, out);
      carry_out(out);
    }
    EXPECT_EQ(store_.use().bytes, 0U) << "left behind";
    EXPECT_TRUE(memory_.empty()) << "the server keeps something";
  }

  ModelStore store_{{.memory = kMemory, .tenant_memory = kTenant, .tenant_tensors = 8, .waiting = 4}};
  Rng rng_;
  Instant now_{};
  std::uint64_t last_ = 0, number_ = 0;
  std::map<std::uint64_t, Program> programs_;
  std::map<TensorId, Program> owner_;
  std::map<std::string, std::pair<std::set<std::string>, std::set<std::string>>> terms_;  // by scope: lends, uses
  std::set<TensorId> memory_, creating_, hashing_;
  std::map<TensorId, std::uint64_t> contents_;
};

TEST(ModelStoreProperties, AnyOrderOfEvents) {
  for (std::uint64_t seed = 1; seed <= 300 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    World(seed).run(400);
  }
}

}  // namespace
}  // namespace fairlead
