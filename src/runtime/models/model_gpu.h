// One GPU's part of ModelHost: its store, its server, the descriptors of its blocks.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "runtime/models/model_connection.h"
#include "runtime/models/model_host.h"
#include "runtime/models/server_link.h"

namespace fairlead {

class ModelHost::Gpu {
 public:
  // `answer` gives an answer to a process, if it is still there.
  using Answer = std::function<void(HolderId, const ModelAnswer&, const ModelConnection::Blocks&)>;
  struct Context {
    boost::asio::io_context& io;
    const ModelHostOptions& options;
    const ModelEvents& events;
    std::uint64_t& last_room;
    Answer answer;
  };
  Gpu(Context context, GpuId id, Bytes memory, std::map<std::string, std::string> environment);

  ModelStore& store() { return store_; }
  // Carries out what the store says. Call after every call of it that fills `actions`.
  void carry_out(const ModelActions& actions);
  void evict(std::uint64_t bytes, std::function<void(Bytes)> done);
  // Whether the request was of this GPU.
  bool grant_room(std::uint64_t request, bool granted);
  View view() const;

 private:
  struct Creating {
    model_server::Order order;
    std::vector<UniqueFd> blocks;
    bool asked_for_room = false;
  };
  struct Eviction {
    std::set<TensorId> dropping;  // of which the server has not said that it did
    Bytes freed{0};
    std::function<void(Bytes)> done;
  };
  void act(const CreateTensor& action);
  void act(const HashTensor& action);
  void act(const DropTensor& action);
  void act(const GiveTensor& action);
  void act(const RefuseModel& action);
  Status start_server();
  std::uint32_t number_of(const std::string& tenant) {
    return tenants_.try_emplace(tenant, static_cast<std::uint32_t>(tenants_.size() + 1)).first->second;
  }
  void on_report(const model_server::Report& report, std::vector<UniqueFd> descriptors);
  void on_full(TensorId tensor, const std::string& message);
  void on_gone(const std::string& reason);
  void end_idle_server();
  void dropped(TensorId tensor);
  void failed(TensorId tensor, ModelRefusal why, const std::string& message);

  const Context context_;
  const GpuId id_;
  const std::uint64_t memory_;
  const std::map<std::string, std::string> environment_;
  ModelStore store_;
  std::unique_ptr<ModelServerLink> server_;
  Instant ended_{};  // the last one that ended by itself
  std::uint64_t restarts_ = 0;
  std::map<TensorId, Creating> creating_;
  std::map<TensorId, ModelConnection::Blocks> blocks_;
  std::map<std::uint64_t, TensorId> room_requests_;
  std::map<std::string, std::uint32_t> tenants_;  // numbers, for the server's turns
  std::vector<Eviction> evictions_;
  Lifetime life_;
};

}  // namespace fairlead
