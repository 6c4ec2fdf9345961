// Which models are on a GPU, once each, and who holds them: a state machine over tensors that programs store and get by id
// (FaST-GShare section 3.5). It copies nothing and has no clock; the node carries its orders out (runtime/models).
//
//   creating ──created──> filling ──seal──> hashing ──hashed──> sealed ──evicted, name gone──> lingering ──> forgotten
//
// Example: three instances of one function open "vit". The first is told to fill 2 GiB, the others wait. It seals; the
// server hashes what really lies there, and all three are given the same blocks: 2 GiB on the device, not 6. A second
// function of the tenant stores the same bytes as "base": the hash is the same, so its blocks are dropped and it is given
// the first ones. When nobody holds it, it stays until room is needed, or until the last function that named it is gone.
//
// Who may have what: an id is of one version of one function (a *scope*), so no other function's ids can be guessed. By
// content a tensor is found by functions of the tenant that stored it, and by another tenant's only while both agree: a
// function of the owner that names it lends to that tenant (or "@all"), and the asker's takes of the owner (model_consents.h).
// Consent that is taken back counts from the next open on; who has the tensor keeps it until it closes. Nobody is told that a
// tensor exists which it may not have.
//
// The server works for all tenants in turn (model_server/tenant_turns.h), and a tenant has a bounded number of tensors with it.
//
// Not every driver can map memory read only, and a program can always ask for more. So when the last holder of a tensor has
// left, the server hashes it again; opens wait meanwhile. One whose bytes are not what was sealed was *spoiled*, and goes.
//
// What memory costs: a tensor counts once for the device and once for its owner's budget. Blocks that a living instance was
// ever given count until that instance is gone, whatever it says, because it may still have them mapped: so nobody gets past
// the budget by storing, closing and keeping the mapping.
//
// Threads: not thread-safe. Determinism: ties break by TensorId.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "decide/residency/model_consents.h"

namespace fairlead {

using TensorId = Id<struct ModelTensorTag>;        // never used again
using HolderId = Id<struct ModelHolderTag>;        // a process of an instance
using ModelDigest = std::array<std::uint8_t, 32>;  // of the content, as the server read it from the device

// Whom an instance is, as the node knows it.
struct ModelUser {
  InstanceId instance;
  std::string tenant;
  std::string scope;                // the version of its function
  std::set<std::string> lends_to;   // tenants that may have what it stores; "@all": all
  std::set<std::string> uses_from;  // tenants whose tensors it takes
};

struct ModelOpen {
  std::uint64_t number = 0;  // the asker's own
  std::string id;
  std::uint64_t bytes = 0;  // 0: get it if it is there
  std::optional<ModelDigest> digest;
  bool wait = false;
};

enum class ModelRefusal { kAbsent, kPending, kAgain, kRefused, kNoRoom, kUnavailable };
struct ModelFailure {
  ModelRefusal why;
  std::string message;
};

// Orders to the model server, in this order.
struct CreateTensor {
  TensorId tensor;
  std::uint64_t bytes = 0;
  std::string tenant = {};  // whose turn of the server it takes
};
struct HashTensor {
  TensorId tensor;
  std::string tenant = {};
};
struct DropTensor {  // its memory is freed; the node forgets its descriptors
  TensorId tensor;
};
// Answers to programs.
struct GiveTensor {
  HolderId holder;
  std::uint64_t number = 0;
  TensorId tensor;
  std::uint64_t bytes = 0;
  bool to_fill = false;  // else sealed
  ModelDigest digest{};
};
struct RefuseModel {
  HolderId holder;
  std::uint64_t number = 0;
  ModelRefusal why = ModelRefusal::kRefused;
  std::string message;
};
using ModelAction = std::variant<CreateTensor, HashTensor, DropTensor, GiveTensor, RefuseModel>;
using ModelActions = std::vector<ModelAction>;

struct ModelStoreOptions {
  std::uint64_t memory = 0;         // on the device, of all tensors
  std::uint64_t tenant_memory = 0;  // of one tenant's
  std::size_t tenant_tensors = 256;
  std::size_t tenant_at_server = 64;  // of them being made or hashed
  std::size_t scope_names = 512;  // ids of one version of a function; what is found by content beyond them gets no name
  std::size_t waiting = 64;       // unanswered opens of one process
  std::uint64_t granule = 2 << 20;
};

struct ModelStoreUse {
  std::uint64_t bytes = 0;                         // on the device, as far as the store knows
  std::map<std::string, std::uint64_t> by_tenant;  // of it, by whose budget
  std::uint64_t unused = 0;                        // part of it: sealed and held by nobody
  std::uint64_t lingering = 0;                     // part of it: dropped, and perhaps still mapped by a living instance
  std::size_t tensors = 0;                         // sealed
  std::size_t holders = 0;                         // processes that hold a tensor, summed over tensors
  std::uint64_t saved = 0;  // that private copies would take on top: bytes x (instances that hold it - 1)
  std::uint64_t stored = 0, shared = 0, by_content = 0, evicted = 0,
                spoiled = 0;  // since the start: tensors sealed; opens answered with one
                              // that was there, part of them by content; dropped for room; found changed
};

class ModelStore {
 public:
  enum class State { kCreating, kFilling, kHashing, kSealed, kLingering };

  explicit ModelStore(const ModelStoreOptions& options) : options_(options) {}

  void add_instance(ModelUser user);
  void add_holder(HolderId holder, InstanceId instance);  // REQUIRES: the instance was added

  // Each answers the holder exactly once, now or later, unless it goes first. REQUIRES: the holder was added.
  void open(Instant now, HolderId holder, const ModelOpen& request, ModelActions& out);
  void seal(HolderId holder, std::uint64_t number, TensorId tensor, ModelActions& out);
  // It no longer uses the tensor; what it had not sealed is gone. No answer.
  void close(Instant now, HolderId holder, TensorId tensor, ModelActions& out);
  void holder_gone(Instant now, HolderId holder, ModelActions& out);
  // REQUIRES: its holders are gone.
  void instance_gone(Instant now, InstanceId instance, ModelActions& out);
  // The version of a function is no longer there. Instances of it that still run keep what they hold and store nothing new.
  void scope_gone(const std::string& scope, ModelActions& out);
  // Its tags say this now. Of those who have it open nothing is taken.
  void consent_changed(const std::string& scope, std::set<std::string> lends_to, std::set<std::string> uses_from) {
    consents_.change(scope, std::move(lends_to), std::move(uses_from));
  }

  // Of the server. Others than were asked for have no effect.
  void created(TensorId tensor, const std::optional<ModelFailure>& failure, ModelActions& out);
  // Whether it was found spoiled.
  bool hashed(Instant now, TensorId tensor, const Result<ModelDigest>& digest, ModelActions& out);
  // All memory is lost to the store: what programs have mapped stays theirs, and nothing of it is given out again.
  void server_lost(const std::string& reason, ModelActions& out);

  // Drops unused tensors, longest unused first, until `bytes` are free. Gives what it freed.
  std::uint64_t evict(std::uint64_t bytes, ModelActions& out);

  ModelStoreUse use() const;                          // O(tensors)
  bool is_empty() const { return tensors_.empty(); }  // nothing on the device is its
  std::optional<State> state(TensorId tensor) const;
  std::optional<InstanceId> filler(TensorId tensor) const;  // of one that is being made or filled
  // Whether the holder may have the descriptors: it fills it, or it is sealed and it holds it.
  bool may_map(HolderId holder, TensorId tensor) const;

 private:
  struct Waiter {
    HolderId holder;
    ModelOpen request;
  };
  struct Tensor {
    State state = State::kCreating;
    std::uint64_t bytes = 0;  // as asked
    std::uint64_t taken = 0;  // on the device
    std::string tenant;       // whose budget
    ModelDigest digest{};
    std::set<std::pair<std::string, std::string>> names;  // scope, id
    std::set<HolderId> holders;
    std::set<InstanceId> given;  // alive, and had its descriptors
    bool checking = false;       // sealed, and being hashed again: given to nobody
    HolderId filler;
    std::uint64_t number = 0;  // of the open, then of the seal, that waits for the server
    std::vector<Waiter> waiters;
    Instant used{};

    bool is_at_server() const { return state == State::kCreating || state == State::kHashing || checking; }
    bool is_for(const ModelUser& user, const ModelConsents& consents) const {
      return consents.may_share(tenant, names, user.tenant, user.scope);
    }
    bool is_unused() const { return state == State::kSealed && holders.empty() && waiters.empty(); }
  };
  struct Holder {
    InstanceId instance;
    std::size_t waiting = 0;
  };
  struct Tensors : std::map<TensorId, Tensor> {
    std::uint64_t taken(const std::string* tenant) const;  // null: all
    // Why the tenant may have no further one; not what it would displace.
    std::optional<ModelFailure> refusal(const ModelStoreOptions& options, const std::string& tenant,
                                        const ModelOpen& request, std::uint64_t taken) const;
  };
  struct User : ModelUser {
    bool is_of_gone = false;  // its version was deleted or replaced since it started
  };

  const User& user_of(HolderId holder) const { return users_.at(holders_.at(holder).instance); }
  Tensors::iterator find_content(const ModelUser& user, const ModelDigest& digest, std::uint64_t bytes);
  bool checked(Tensors::iterator tensor, const Result<ModelDigest>& digest, ModelActions& out);
  void let_go(Instant now, HolderId holder, Tensors::iterator tensor, ModelActions& out);
  void wait(Tensor& tensor, HolderId holder, const ModelOpen& request, ModelActions& out);
  void create(Instant now, HolderId holder, const ModelOpen& request, ModelActions& out);
  std::optional<std::string> make_room(const std::string& tenant, std::uint64_t taken, ModelActions& out);
  void give(HolderId holder, std::uint64_t number, Tensors::iterator tensor, bool to_fill, ModelActions& out);
  void answer_waiters(Tensors::iterator tensor, Tensors::iterator instead, ModelActions& out);
  void drop(Tensors::iterator tensor, ModelRefusal why, const std::string& message, ModelActions& out);
  void drop_if_useless(Tensors::iterator tensor, ModelActions& out);

  const ModelStoreOptions options_;
  std::map<InstanceId, User> users_;
  ModelConsents consents_;
  std::map<HolderId, Holder> holders_;
  Tensors tensors_;
  std::map<std::pair<std::string, std::string>, TensorId> names_;  // scope, id
  std::uint64_t last_tensor_ = 0;
  ModelStoreUse counters_;
};

}  // namespace fairlead
