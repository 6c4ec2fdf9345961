#include "decide/residency/model_store.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fairlead {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;  // so that nothing overflows when it is rounded up

double mib_of(std::uint64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

bool is_id(const std::string& id) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  return !id.empty() && id.size() <= 255 && std::none_of(id.begin(), id.end(), is_control);
}

}  // namespace

void ModelStore::add_instance(ModelUser user) {
  const InstanceId id = user.instance;
  consents_.set(user.scope, {user.tenant, user.lends_to, user.uses_from});
  FL_CHECK(users_.emplace(id, User{std::move(user)}).second, "instance {} added twice", id.value());
}

void ModelStore::add_holder(HolderId holder, InstanceId instance) {
  FL_CHECK(users_.contains(instance), "a process of instance {}, which is not there", instance.value());
  FL_CHECK(holders_.emplace(holder, Holder{instance}).second, "holder {} added twice", holder.value());
}

// ---- requests

void ModelStore::open(Instant now, HolderId holder, const ModelOpen& request, ModelActions& out) {
  const User& user = user_of(holder);
  const auto refuse = [&](ModelRefusal why, std::string message) {
    out.emplace_back(std::in_place_type<RefuseModel>, holder, request.number, why, std::move(message));
  };
  if (!is_id(request.id)) {
    return refuse(ModelRefusal::kRefused, "the id of a tensor is 1 to 255 bytes without control characters");
  }
  if (request.bytes > kMostBytes) {
    return refuse(ModelRefusal::kRefused, fmt::format("{} bytes: a tensor has at most {}", request.bytes, kMostBytes));
  }
  const auto name = std::pair(user.scope, request.id);
  if (const auto named = names_.find(name);
      named != names_.end() && !tensors_.at(named->second).is_for(user, consents_)) {
    // Another tenant's, which this function took and takes no more.
    const auto found = tensors_.find(named->second);
    found->second.names.erase(name);
    names_.erase(named);
    drop_if_useless(found, out);
  }
  if (const auto named = names_.find(name); named != names_.end()) {
    const auto found = tensors_.find(named->second);
    Tensor& tensor = found->second;
    if (request.bytes != 0 && request.bytes != tensor.bytes) {
      return refuse(ModelRefusal::kRefused, fmt::format("tensor '{}' has {} bytes already, not {}: use another id",
                                                        request.id, tensor.bytes, request.bytes));
    }
    if (tensor.state != State::kSealed || tensor.checking) return wait(tensor, holder, request, out);
    if (request.digest && *request.digest != tensor.digest) {
      return refuse(ModelRefusal::kRefused,
                    fmt::format("tensor '{}' is there with another content: use another id", request.id));
    }
    ++counters_.shared;
    tensor.used = now;
    return give(holder, request.number, found, false, out);
  }
  if (request.digest) {
    const auto found = find_content(user, *request.digest, request.bytes);
    if (found != tensors_.end() && !user.is_of_gone) {
      if (found->second.checking && !request.wait) return wait(found->second, holder, request, out);
      ++counters_.by_content;
      found->second.used = now;
      const auto of_scope =
          std::distance(names_.lower_bound({user.scope, ""}), names_.lower_bound({user.scope + '\x01', ""}));
      if (static_cast<std::size_t>(of_scope) < options_.scope_names) {
        found->second.names.insert(name);
        names_[name] = found->first;
      }
      if (found->second.checking) return wait(found->second, holder, request, out);
      ++counters_.shared;
      return give(holder, request.number, found, false, out);
    }
  }
  if (request.bytes == 0) {
    return refuse(ModelRefusal::kAbsent, fmt::format("there is no tensor '{}': store it first", request.id));
  }
  create(now, holder, request, out);
}

// The same answer where there is none and where there is one that the asker may not have.
ModelStore::Tensors::iterator ModelStore::find_content(const ModelUser& user, const ModelDigest& digest,
                                                       std::uint64_t bytes) {
  return std::find_if(tensors_.begin(), tensors_.end(), [&](const auto& entry) {
    const Tensor& tensor = entry.second;
    return tensor.state == State::kSealed && tensor.digest == digest && (bytes == 0 || bytes == tensor.bytes) &&
           tensor.is_for(user, consents_);
  });
}

void ModelStore::wait(Tensor& tensor, HolderId holder, const ModelOpen& request, ModelActions& out) {
  if (!request.wait) {
    out.emplace_back(std::in_place_type<RefuseModel>, holder, request.number, ModelRefusal::kPending,
                     fmt::format("tensor '{}' is being filled", request.id));
    return;
  }
  if (tensor.filler == holder) {
    out.emplace_back(std::in_place_type<RefuseModel>, holder, request.number, ModelRefusal::kRefused,
                     fmt::format("tensor '{}' is this process's to fill: it would wait for itself", request.id));
    return;
  }
  std::size_t& waiting = holders_.at(holder).waiting;
  if (waiting >= options_.waiting) {
    out.emplace_back(std::in_place_type<RefuseModel>, holder, request.number, ModelRefusal::kRefused,
                     fmt::format("{} opens of this process wait already, at most {} may", waiting, options_.waiting));
    return;
  }
  ++waiting;
  tensor.waiters.push_back({holder, request});
}

std::optional<ModelFailure> ModelStore::Tensors::refusal(const ModelStoreOptions& options, const std::string& tenant,
                                                         const ModelOpen& request, std::uint64_t taken) const {
  std::size_t count = 0, at_server = 0;
  for (const auto& [id, tensor] : *this) {
    if (tensor.tenant != tenant) continue;
    ++count;
    at_server += tensor.is_at_server() ? 1 : 0;
  }
  if (at_server >= options.tenant_at_server) {
    return ModelFailure{
        ModelRefusal::kUnavailable,
        fmt::format("tensor '{}': {} tensors of tenant {} are being made or hashed, {} may be at a time: wait "
                    "for their answers, or store a model as one tensor",
                    request.id, at_server, tenant, options.tenant_at_server)};
  }
  if (count >= options.tenant_tensors) {
    return ModelFailure{
        ModelRefusal::kNoRoom,
        fmt::format("tensor '{}': tenant {} has {} tensors on this GPU, at most {}; store a model as one tensor",
                    request.id, tenant, count, options.tenant_tensors)};
  }
  if (taken > std::min(options.memory, options.tenant_memory)) {
    return ModelFailure{
        ModelRefusal::kNoRoom,
        fmt::format(
            "tensor '{}' takes {:.0f} MiB; models of a tenant may take {:.0f} MiB (--model-quota) of {:.0f} MiB "
            "(--model-memory)",
            request.id, mib_of(taken), mib_of(options.tenant_memory), mib_of(options.memory))};
  }
  return std::nullopt;
}

void ModelStore::create(Instant now, HolderId holder, const ModelOpen& request, ModelActions& out) {
  const User& user = user_of(holder);
  const std::uint64_t taken = (request.bytes + options_.granule - 1) / options_.granule * options_.granule;
  auto refusal = tensors_.refusal(options_, user.tenant, request, taken);
  if (user.is_of_gone) {
    refusal = {ModelRefusal::kRefused,
               fmt::format("tensor '{}': this version of the function was deleted or replaced", request.id)};
  }
  if (refusal) {
    out.emplace_back(std::in_place_type<RefuseModel>, holder, request.number, refusal->why, refusal->message);
    return;
  }
  if (const auto full = make_room(user.tenant, taken, out)) {
    out.emplace_back(std::in_place_type<RefuseModel>, holder, request.number, ModelRefusal::kNoRoom,
                     fmt::format("tensor '{}' takes {:.0f} MiB: {}", request.id, mib_of(taken), *full));
    return;
  }
  const TensorId id(++last_tensor_);
  Tensor& tensor = tensors_[id];
  tensor.bytes = request.bytes;
  tensor.taken = taken;
  tensor.tenant = user.tenant;
  tensor.filler = holder;
  tensor.number = request.number;
  tensor.used = now;
  tensor.names.emplace(user.scope, request.id);
  names_[{user.scope, request.id}] = id;
  out.push_back(CreateTensor{id, request.bytes, user.tenant});
}

// A tenant that is at its budget makes room of its own; where the device's budget is full, whoever was unused longest goes.
std::optional<std::string> ModelStore::make_room(const std::string& tenant, std::uint64_t taken, ModelActions& out) {
  const auto drop_oldest = [&](const std::string* of) {
    auto oldest = tensors_.end();
    for (auto it = tensors_.begin(); it != tensors_.end(); ++it) {
      if (!it->second.is_unused() || (of != nullptr && it->second.tenant != *of)) continue;
      if (!it->second.given.empty()) continue;  // dropped, it would linger: nothing is won
      if (oldest == tensors_.end() || it->second.used < oldest->second.used) oldest = it;
    }
    if (oldest == tensors_.end()) return false;
    ++counters_.evicted;
    drop(oldest, ModelRefusal::kAgain, "evicted", out);
    return true;
  };
  // Asked first whether it can succeed at all: who is refused has not cost others their models. Memory that is still mapped
  // by living instances is not freed by dropping.
  const auto reclaimable = [&](const std::string* of) {
    std::uint64_t sum = 0;
    for (const auto& [id, tensor] : tensors_) {
      if (tensor.is_unused() && tensor.given.empty() && (of == nullptr || tensor.tenant == *of)) sum += tensor.taken;
    }
    return sum;
  };
  if (tensors_.taken(&tenant) - reclaimable(&tenant) + taken > options_.tenant_memory) {
    return fmt::format("models of tenant {} hold {:.0f} of its {:.0f} MiB (--model-quota)", tenant,
                       mib_of(tensors_.taken(&tenant)), mib_of(options_.tenant_memory));
  }
  if (tensors_.taken(nullptr) - reclaimable(nullptr) + taken > options_.memory) {
    return fmt::format("models hold {:.0f} of their {:.0f} MiB on this GPU (--model-memory)",
                       mib_of(tensors_.taken(nullptr)), mib_of(options_.memory));
  }
  while (tensors_.taken(&tenant) + taken > options_.tenant_memory && drop_oldest(&tenant)) {
  }
  while (tensors_.taken(nullptr) + taken > options_.memory && drop_oldest(nullptr)) {
  }
  return std::nullopt;
}

void ModelStore::give(HolderId holder, std::uint64_t number, Tensors::iterator tensor, bool to_fill,
                      ModelActions& out) {
  tensor->second.given.insert(holders_.at(holder).instance);
  if (!to_fill) tensor->second.holders.insert(holder);
  out.push_back(GiveTensor{holder, number, tensor->first, tensor->second.bytes, to_fill, tensor->second.digest});
}

void ModelStore::seal(HolderId holder, std::uint64_t number, TensorId id, ModelActions& out) {
  const auto found = tensors_.find(id);
  // A foreign number is answered as one that never was.
  if (found == tensors_.end() || found->second.filler != holder || found->second.state != State::kFilling) {
    out.emplace_back(std::in_place_type<RefuseModel>, holder, number, ModelRefusal::kRefused,
                     fmt::format("tensor {} is not one that this process fills", id.value()));
    return;
  }
  found->second.state = State::kHashing;
  found->second.number = number;
  out.push_back(HashTensor{id, found->second.tenant});
}

void ModelStore::close(Instant now, HolderId holder, TensorId id, ModelActions& out) {
  const auto found = tensors_.find(id);
  if (found == tensors_.end()) return;
  Tensor& tensor = found->second;
  if (tensor.holders.contains(holder)) {
    return let_go(now, holder, found, out);
  }
  // One that is being made or hashed ends when the server has answered.
  if (tensor.filler == holder && tensor.state == State::kFilling) {
    drop(found, ModelRefusal::kAgain, "who filled the tensor gave up: open it again", out);
  }
}

void ModelStore::holder_gone(Instant now, HolderId holder, ModelActions& out) {
  std::vector<TensorId> touched;
  for (auto& [id, tensor] : tensors_) {
    std::erase_if(tensor.waiters, [&](const Waiter& waiter) { return waiter.holder == holder; });
    if (tensor.holders.contains(holder)) touched.push_back(id);
    if (tensor.filler != holder) continue;
    if (tensor.state == State::kFilling) touched.push_back(id);
    tensor.filler = HolderId(0);  // whose answer nobody waits for
  }
  for (const TensorId id : touched) {
    const auto found = tensors_.find(id);
    if (found == tensors_.end()) continue;
    if (found->second.holders.contains(holder)) {
      let_go(now, holder, found, out);
    } else {
      drop(found, ModelRefusal::kAgain, "who filled the tensor ended: open it again", out);
    }
  }
  holders_.erase(holder);
}

void ModelStore::instance_gone(Instant now, InstanceId instance, ModelActions& out) {
  std::vector<HolderId> left;
  for (const auto& [id, holder] : holders_) {
    if (holder.instance == instance) left.push_back(id);
  }
  for (const HolderId id : left) holder_gone(now, id, out);
  const auto user = users_.find(instance);
  if (user == users_.end()) return;
  users_.erase(user);
  for (auto it = tensors_.begin(); it != tensors_.end();) {
    Tensor& tensor = it->second;
    tensor.given.erase(instance);
    const bool is_over = tensor.state == State::kLingering && tensor.given.empty();
    it = is_over ? tensors_.erase(it) : std::next(it);
  }
}

void ModelStore::scope_gone(const std::string& scope, ModelActions& out) {
  // Those that are there, not the version: it may be deployed again while they run.
  for (auto& [id, user] : users_) user.is_of_gone |= user.scope == scope;
  consents_.forget(scope);
  std::vector<TensorId> named;
  for (auto it = names_.lower_bound({scope, ""}); it != names_.end() && it->first.first == scope;
       it = names_.erase(it)) {
    tensors_.at(it->second).names.erase(it->first);
    named.push_back(it->second);
  }
  for (const TensorId id : named) {
    if (const auto found = tensors_.find(id); found != tensors_.end()) drop_if_useless(found, out);
  }
}

// ---- the server

void ModelStore::created(TensorId id, const std::optional<ModelFailure>& failure, ModelActions& out) {
  const auto found = tensors_.find(id);
  if (found == tensors_.end() || found->second.state != State::kCreating) return;
  Tensor& tensor = found->second;
  if (tensor.filler == HolderId(0))
    return drop(found, ModelRefusal::kAgain, "who asked for it ended: open it again", out);
  if (failure) {
    out.emplace_back(std::in_place_type<RefuseModel>, tensor.filler, tensor.number, failure->why, failure->message);
    return drop(found, failure->why, failure->message, out);
  }
  tensor.state = State::kFilling;
  give(tensor.filler, tensor.number, found, true, out);
}

bool ModelStore::hashed(Instant now, TensorId id, const Result<ModelDigest>& digest, ModelActions& out) {
  const auto found = tensors_.find(id);
  if (found == tensors_.end()) return false;
  Tensor& tensor = found->second;
  if (tensor.checking) return checked(found, digest, out);
  if (tensor.state != State::kHashing) return false;
  const HolderId filler = std::exchange(tensor.filler, HolderId(0));
  if (!digest || filler == HolderId(0)) {
    const std::string why = digest ? "who filled the tensor ended: open it again" : digest.error().message;
    if (filler != HolderId(0))
      out.emplace_back(std::in_place_type<RefuseModel>, filler, tensor.number, ModelRefusal::kAgain, why);
    drop(found, ModelRefusal::kAgain, why, out);
    return false;
  }
  const auto same = find_content(user_of(filler), *digest, tensor.bytes);
  if (same != tensors_.end() && !same->second.checking) {
    // The older one takes over the names and those who wait.
    ++counters_.by_content;
    same->second.used = now;
    for (const auto& name : std::exchange(tensor.names, {})) {
      names_[name] = same->first;
      same->second.names.insert(name);
    }
    give(filler, tensor.number, same, false, out);
    answer_waiters(found, same, out);
    drop(found, ModelRefusal::kAgain, "", out);
    return false;
  }
  tensor.state = State::kSealed;
  tensor.digest = *digest;
  tensor.used = now;
  ++counters_.stored;
  give(filler, tensor.number, found, false, out);
  answer_waiters(found, found, out);
  return false;
}

bool ModelStore::checked(Tensors::iterator found, const Result<ModelDigest>& digest, ModelActions& out) {
  Tensor& tensor = found->second;
  tensor.checking = false;
  if (digest && *digest == tensor.digest) {
    answer_waiters(found, found, out);
    drop_if_useless(found, out);
    return false;
  }
  ++counters_.spoiled;
  drop(found, ModelRefusal::kAgain,
       digest ? "a program that had the tensor wrote to it: open it again, it is stored anew" : digest.error().message,
       out);
  return true;
}

void ModelStore::let_go(Instant now, HolderId holder, Tensors::iterator found, ModelActions& out) {
  Tensor& tensor = found->second;
  tensor.holders.erase(holder);
  tensor.used = now;
  if (!tensor.holders.empty()) return;
  if (tensor.names.empty()) return drop_if_useless(found, out);
  tensor.checking = true;
  out.push_back(HashTensor{found->first, tensor.tenant});
}

void ModelStore::answer_waiters(Tensors::iterator tensor, Tensors::iterator instead, ModelActions& out) {
  for (const Waiter& waiter : std::exchange(tensor->second.waiters, {})) {
    --holders_.at(waiter.holder).waiting;
    if (!instead->second.is_for(user_of(waiter.holder), consents_)) {
      out.emplace_back(std::in_place_type<RefuseModel>, waiter.holder, waiter.request.number, ModelRefusal::kAgain,
                       "another tenant's copy was chosen: open it again");
      continue;
    }
    if (waiter.request.digest && *waiter.request.digest != instead->second.digest) {
      out.emplace_back(std::in_place_type<RefuseModel>, waiter.holder, waiter.request.number, ModelRefusal::kRefused,
                       fmt::format("tensor '{}' is there with another content: use another id", waiter.request.id));
      continue;
    }
    ++counters_.shared;
    give(waiter.holder, waiter.request.number, instead, false, out);
  }
}

void ModelStore::server_lost(const std::string& reason, ModelActions& out) {
  std::vector<TensorId> all;
  for (const auto& [id, tensor] : tensors_) {
    if (tensor.state != State::kLingering) all.push_back(id);
  }
  for (const TensorId id : all) {
    const auto found = tensors_.find(id);
    const Tensor& tensor = found->second;
    const bool waits = tensor.state == State::kCreating || tensor.state == State::kHashing;
    if (waits && tensor.filler != HolderId(0)) {
      out.emplace_back(std::in_place_type<RefuseModel>, tensor.filler, tensor.number, ModelRefusal::kAgain, reason);
    }
    drop(found, ModelRefusal::kAgain, reason, out);
  }
}

// ---- the end of a tensor

void ModelStore::drop(Tensors::iterator found, ModelRefusal why, const std::string& message, ModelActions& out) {
  Tensor& tensor = found->second;
  for (const Waiter& waiter : std::exchange(tensor.waiters, {})) {
    --holders_.at(waiter.holder).waiting;
    out.emplace_back(std::in_place_type<RefuseModel>, waiter.holder, waiter.request.number, why, message);
  }
  for (const auto& name : tensor.names) names_.erase(name);
  tensor.names.clear();
  tensor.holders.clear();
  tensor.checking = false;
  tensor.filler = HolderId(0);
  tensor.state = State::kLingering;
  out.push_back(DropTensor{found->first});
  if (tensor.given.empty()) tensors_.erase(found);
}

void ModelStore::drop_if_useless(Tensors::iterator tensor, ModelActions& out) {
  if (tensor->second.is_unused() && tensor->second.names.empty()) drop(tensor, ModelRefusal::kAgain, "", out);
}

std::uint64_t ModelStore::evict(std::uint64_t bytes, ModelActions& out) {
  std::vector<std::pair<Instant, TensorId>> unused;
  for (const auto& [id, tensor] : tensors_) {
    if (tensor.is_unused()) unused.emplace_back(tensor.used, id);
  }
  std::sort(unused.begin(), unused.end());
  std::uint64_t freed = 0;
  for (const auto& [used, id] : unused) {
    if (freed >= bytes) break;
    const auto found = tensors_.find(id);
    freed += found->second.taken;
    ++counters_.evicted;
    drop(found, ModelRefusal::kAgain, "evicted", out);
  }
  return freed;
}

// ---- what is known

std::uint64_t ModelStore::Tensors::taken(const std::string* tenant) const {
  std::uint64_t sum = 0;
  for (const auto& [id, tensor] : *this) {
    if (tenant == nullptr || tensor.tenant == *tenant) sum += tensor.taken;
  }
  return sum;
}

ModelStoreUse ModelStore::use() const {
  ModelStoreUse use = counters_;
  for (const auto& [id, tensor] : tensors_) {
    use.bytes += tensor.taken;
    use.by_tenant[tensor.tenant] += tensor.taken;
    use.holders += tensor.holders.size();
    if (tensor.is_unused()) use.unused += tensor.taken;
    if (tensor.state == State::kLingering) use.lingering += tensor.taken;
    if (tensor.state != State::kSealed) continue;
    ++use.tensors;
    std::set<InstanceId> instances;
    for (const HolderId holder : tensor.holders) instances.insert(holders_.at(holder).instance);
    if (!instances.empty()) use.saved += tensor.taken * (instances.size() - 1);
  }
  return use;
}

std::optional<ModelStore::State> ModelStore::state(TensorId id) const {
  const auto found = tensors_.find(id);
  if (found == tensors_.end()) return std::nullopt;
  return found->second.state;
}

std::optional<InstanceId> ModelStore::filler(TensorId id) const {
  const auto found = tensors_.find(id);
  if (found == tensors_.end() || found->second.filler == HolderId(0)) return std::nullopt;
  return holders_.at(found->second.filler).instance;
}

bool ModelStore::may_map(HolderId holder, TensorId id) const {
  const auto found = tensors_.find(id);
  if (found == tensors_.end()) return false;
  const Tensor& tensor = found->second;
  if (tensor.state == State::kFilling) return tensor.filler == holder;
  return tensor.state == State::kSealed && tensor.holders.contains(holder);
}

}  // namespace fairlead
