#include "runtime/models/model_host.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "runtime/models/model_connection.h"
#include "runtime/models/model_gpu.h"
#include "runtime/unix_listener.h"

namespace fairlead {
namespace {

using Wait = boost::asio::posix::stream_descriptor;
constexpr int kBacklog = 64;
constexpr std::size_t kMaxProcesses = 64;  // connected, of one instance; more are closed at once
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

}  // namespace

// The socket of one instance, and its processes that are connected.
class ModelHost::Instance {
 public:
  Instance(ModelHost& host, Gpu& gpu, const ModelUser& user)
      : host_(host),
        gpu_(gpu),
        id_(user.instance),
        path_(fmt::format("{}/{}.models.sock", host.options_.socket_dir, id_.value())),
        listener_(host.io_),
        accept_pause_(host.io_) {}
  ~Instance() { ::unlink(path_.c_str()); }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  Result<std::string> open() {
    Result<UniqueFd> listener = listen_on_unix(path_, SOCK_SEQPACKET, kBacklog);
    if (!listener) return fail(listener.error());
    listener_.assign(listener->release());
    wait_accept();
    return path_;
  }
  Gpu& gpu() { return gpu_; }
  bool answer(HolderId holder, const ModelAnswer& answer, const ModelConnection::Blocks& blocks) {
    const auto found = connections_.find(holder);
    if (found == connections_.end()) return false;
    found->second->send(answer, blocks);
    return true;
  }

 private:
  void wait_accept() {
    listener_.async_wait(Wait::wait_read, life_.on_success([this] { accept_all(); }));
  }

  void accept_all() {
    while (accepts_.take(monotonic_now())) {
      UniqueFd socket(::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)) return wait_accept();
      if (!socket) break;  // no descriptor is left; later
      if (connections_.size() < kMaxProcesses) admit(std::move(socket));
    }
    accept_pause_.expires_after(kAcceptPause);
    accept_pause_.async_wait(life_.on_success([this] { accept_all(); }));
  }

  void admit(UniqueFd socket) {
    const HolderId holder(++host_.last_holder_);
    gpu_.store().add_holder(holder, id_);
    ModelConnection::Events events{
        .request = [this, holder](const ModelRequest& request) { on_request(holder, request); },
        .closed = [this, holder](const std::string& why) { on_closed(holder, why); }};
    auto connection = std::make_unique<ModelConnection>(host_.io_, std::move(socket), requests_, std::move(events));
    ModelConnection& started = *connection;
    connections_[holder] = std::move(connection);
    started.start();
  }

  void on_request(HolderId holder, const ModelRequest& request) {
    ModelActions actions;
    ModelStore& store = gpu_.store();
    switch (request.kind) {
      case MODEL_OPEN: {
        ModelOpen open{.number = request.number,
                       .id = request.id,
                       .bytes = request.bytes,
                       .digest = std::nullopt,
                       .wait = (request.flags & MODEL_WAIT) != 0};
        if ((request.flags & MODEL_HAS_DIGEST) != 0) open.digest = std::to_array(request.digest);
        store.open(monotonic_now(), holder, open, actions);
        break;
      }
      case MODEL_SEAL: store.seal(holder, request.number, TensorId(request.tensor), actions); break;
      case MODEL_CLOSE: store.close(monotonic_now(), holder, TensorId(request.tensor), actions); break;
    }
    gpu_.carry_out(actions);
  }

  void on_closed(HolderId holder, const std::string& why) {
    if (!why.empty() && !std::exchange(complained_, true)) {
      spdlog::warn("instance {}: {}; its connection is closed", id_.value(), why);
    }
    const auto found = connections_.find(holder);
    if (found == connections_.end()) return;
    // It is on the stack.
    boost::asio::post(host_.io_, [connection = std::shared_ptr<ModelConnection>(std::move(found->second))] {});
    connections_.erase(found);
    ModelActions actions;
    gpu_.store().holder_gone(monotonic_now(), holder, actions);
    gpu_.carry_out(actions);
  }

  ModelHost& host_;
  Gpu& gpu_;
  const InstanceId id_;
  const std::string path_;
  boost::asio::posix::stream_descriptor listener_;
  boost::asio::steady_timer accept_pause_;
  RateLimit accepts_{100, 64};
  RateLimit requests_{ModelConnection::kRequestsPerSecond,
                      ModelConnection::kRequestsPerSecond / 2};  // of all its processes
  std::map<HolderId, std::unique_ptr<ModelConnection>> connections_;
  bool complained_ = false;
  Lifetime life_;
};

ModelHost::ModelHost(boost::asio::io_context& io, ModelHostOptions options, ModelEvents events)
    : io_(io), options_(std::move(options)), events_(std::move(events)) {}

ModelHost::~ModelHost() = default;

Result<std::string> ModelHost::add(ModelTerms terms) {
  const InstanceId id = terms.user.instance;
  std::unique_ptr<Gpu>& gpu = gpus_[terms.gpu];
  if (!gpu) {
    const auto answer = [this](HolderId holder, const ModelAnswer& said, const ModelConnection::Blocks& blocks) {
      for (auto& [instance, user] : instances_) {
        if (user->answer(holder, said, blocks)) return;
      }
    };
    gpu = std::make_unique<Gpu>(Gpu::Context{io_, options_, events_, last_room_, answer}, terms.gpu,
                                terms.device_memory, std::move(terms.environment));
  }
  auto instance = std::make_unique<Instance>(*this, *gpu, terms.user);
  Result<std::string> path = instance->open();
  if (!path) return path;
  gpu->store().add_instance(std::move(terms.user));
  instances_[id] = std::move(instance);
  return path;
}

void ModelHost::remove(InstanceId instance) {
  const auto found = instances_.find(instance);
  if (found == instances_.end()) return;
  Gpu& gpu = found->second->gpu();
  instances_.erase(found);
  ModelActions actions;
  gpu.store().instance_gone(monotonic_now(), instance, actions);
  gpu.carry_out(actions);
}

void ModelHost::scope_gone(const std::string& scope) {
  for (auto& [id, gpu] : gpus_) {
    ModelActions actions;
    gpu->store().scope_gone(scope, actions);
    gpu->carry_out(actions);
  }
}

void ModelHost::consent_changed(const std::string& scope, const std::set<std::string>& lends_to,
                                const std::set<std::string>& uses_from) {
  for (auto& [id, gpu] : gpus_) gpu->store().consent_changed(scope, lends_to, uses_from);
}

void ModelHost::grant_room(std::uint64_t request, bool granted) {
  for (auto& [id, gpu] : gpus_) {
    if (gpu->grant_room(request, granted)) return;
  }
}

void ModelHost::evict(GpuId id, Bytes bytes, std::function<void(Bytes)> done) {
  const auto found = gpus_.find(id);
  if (found == gpus_.end()) return boost::asio::post(io_, [done = std::move(done)] { done(Bytes(0)); });
  found->second->evict(static_cast<std::uint64_t>(bytes.count()), std::move(done));
}

std::vector<ModelHost::View> ModelHost::views() const {
  std::vector<View> views;
  for (const auto& [id, gpu] : gpus_) views.push_back(gpu->view());
  return views;
}

}  // namespace fairlead
