#include "runtime/models/model_gpu.h"

#include <boost/asio/post.hpp>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace fairlead {
namespace {

using model_server::Order;
using model_server::OrderKind;
using model_server::Report;
using model_server::ReportKind;

constexpr Duration kRestartPause = std::chrono::seconds(1);  // after one that ended by itself

std::uint32_t error_of(ModelRefusal why) {
  switch (why) {
    case ModelRefusal::kAbsent: return MODEL_ABSENT;
    case ModelRefusal::kPending: return MODEL_PENDING;
    case ModelRefusal::kAgain: return MODEL_AGAIN;
    case ModelRefusal::kRefused: return MODEL_REFUSED;
    case ModelRefusal::kNoRoom: return MODEL_NO_ROOM;
    case ModelRefusal::kUnavailable: return MODEL_UNAVAILABLE;
  }
  return MODEL_REFUSED;
}

ModelStoreOptions store_options(const ModelHostOptions& options, std::uint64_t memory) {
  ModelStoreOptions store;
  store.memory = memory;
  store.tenant_memory = memory / 100 * static_cast<std::uint64_t>(options.tenant_percent);
  store.granule = model_server::kGranuleBytes;
  return store;
}

}  // namespace

ModelHost::Gpu::Gpu(Context context, GpuId id, Bytes memory, std::map<std::string, std::string> environment)
    : context_(std::move(context)),
      id_(id),
      memory_(static_cast<std::uint64_t>(memory.count()) / 100 *
              static_cast<std::uint64_t>(context_.options.memory_percent)),
      environment_(std::move(environment)),
      store_(store_options(context_.options, memory_)) {}

void ModelHost::Gpu::carry_out(const ModelActions& actions) {
  for (const ModelAction& action : actions) std::visit([this](const auto& a) { act(a); }, action);
  end_idle_server();
}

void ModelHost::Gpu::act(const CreateTensor& action) {
  if (Status started = start_server(); !started) {
    // Later: the store is in the middle of an event.
    boost::asio::post(context_.io, life_.guarded([this, tensor = action.tensor, message = started.error().message] {
      failed(tensor, ModelRefusal::kUnavailable, message);
    }));
    return;
  }
  Order& order = creating_[action.tensor].order;
  order = {.kind = OrderKind::kCreate,
           .tensor = action.tensor.value(),
           .bytes = action.bytes,
           .tenant = number_of(action.tenant)};
  server_->send(order);
}

void ModelHost::Gpu::act(const HashTensor& action) {
  if (!server_) return;
  server_->send({.kind = OrderKind::kHash, .tensor = action.tensor.value(), .tenant = number_of(action.tenant)});
}

void ModelHost::Gpu::act(const DropTensor& action) {
  blocks_.erase(action.tensor);
  creating_.erase(action.tensor);
  std::erase_if(room_requests_, [&](const auto& entry) { return entry.second == action.tensor; });
  if (server_) server_->send({.kind = OrderKind::kDrop, .tensor = action.tensor.value()});
}

void ModelHost::Gpu::act(const GiveTensor& action) {
  const auto found = blocks_.find(action.tensor);
  if (found == blocks_.end()) return spdlog::error("models: tensor {} has no memory", action.tensor.value());
  ModelAnswer answer{};
  answer.version = MODEL_PROTOCOL;
  answer.kind = action.to_fill ? MODEL_FILL : MODEL_READY;
  answer.number = action.number;
  answer.tensor = action.tensor.value();
  answer.bytes = action.bytes;
  answer.blocks = static_cast<std::uint32_t>(found->second->size());
  std::memcpy(answer.digest, action.digest.data(), sizeof answer.digest);
  context_.answer(action.holder, answer, found->second);
}

void ModelHost::Gpu::act(const RefuseModel& action) {
  ModelAnswer answer{};
  answer.version = MODEL_PROTOCOL;
  answer.kind = MODEL_ERROR;
  answer.number = action.number;
  answer.error = error_of(action.why);
  action.message.copy(answer.message, sizeof answer.message - 1);
  context_.answer(action.holder, answer, {});
}

Status ModelHost::Gpu::start_server() {
  if (server_) return {};
  const Duration since = monotonic_now() - ended_;
  if (restarts_ > 0 && since < kRestartPause) {
    return fail(Errc::kUnavailable, "the model server of GPU {} ended {:.1f} s ago: try again in a second", id_.value(),
                to_ms(since) / 1000);
  }
  auto started = ModelServerLink::start(
      context_.io,
      {.words = context_.options.server, .environment = environment_, .launcher = context_.options.launcher},
      {.report = [this](const Report& report,
                        std::vector<UniqueFd> descriptors) { on_report(report, std::move(descriptors)); },
       .gone = [this](const std::string& reason) { on_gone(reason); }});
  if (!started) return fail(started.error());
  server_ = *std::move(started);
  spdlog::debug("model server of GPU {}: process {}", id_.value(), server_->pid());
  return {};
}

void ModelHost::Gpu::on_report(const Report& report, std::vector<UniqueFd> descriptors) {
  const TensorId tensor(report.tensor);
  if (report.version != model_server::kProtocolVersion) {
    spdlog::error(
        "the model server of GPU {} speaks version {} of their protocol, this node {}: they are of two releases; "
        "restart the node",
        id_.value(), report.version, model_server::kProtocolVersion);
    return failed(tensor, ModelRefusal::kUnavailable,
                  "the model server is of another release than the node: restart the node");
  }
  ModelActions actions;
  const auto creating = creating_.find(tensor);
  switch (report.kind) {
    case ReportKind::kBlocks:
      if (creating == creating_.end()) return;
      for (UniqueFd& descriptor : descriptors) creating->second.blocks.push_back(std::move(descriptor));
      return;
    case ReportKind::kCreated: {
      if (creating == creating_.end()) return;
      const std::size_t wanted = model_server::block_count(creating->second.order.bytes);
      // The kernel drops descriptors for which this process has no room.
      if (creating->second.blocks.size() != wanted) {
        return failed(tensor, ModelRefusal::kUnavailable,
                      "the node has no file descriptors left for the model's blocks");
      }
      blocks_[tensor] = std::make_shared<const std::vector<UniqueFd>>(std::move(creating->second.blocks));
      creating_.erase(creating);
      store_.created(tensor, std::nullopt, actions);
      break;
    }
    case ReportKind::kDropped: return dropped(tensor);
    case ReportKind::kFull: return on_full(tensor, report.message);
    case ReportKind::kFailed:
      if (creating != creating_.end()) return failed(tensor, ModelRefusal::kUnavailable, report.message);
      store_.hashed(monotonic_now(), tensor, fail(Errc::kInternal, "{}", report.message), actions);
      break;
    case ReportKind::kHashed: {
      if (store_.hashed(monotonic_now(), tensor, report.digest, actions)) {
        spdlog::error("models: a program wrote to tensor {} after it was sealed: it is dropped", tensor.value());
      }
      break;
    }
  }
  carry_out(actions);
}

// First models that nobody uses go; then the core is asked, as for an allocation that found the device full.
void ModelHost::Gpu::on_full(TensorId tensor, const std::string& message) {
  const auto found = creating_.find(tensor);
  if (found == creating_.end()) return;
  Creating& creating = found->second;
  creating.blocks.clear();
  ModelActions actions;
  if (store_.evict(model_server::rounded(creating.order.bytes), actions) > 0) {
    for (const ModelAction& action : actions) std::visit([this](const auto& a) { act(a); }, action);
    return server_->send(creating.order);
  }
  const auto filler = store_.filler(tensor);
  if (creating.asked_for_room || !filler || !context_.events.needs_room) {
    return failed(tensor, ModelRefusal::kNoRoom, message);
  }
  creating.asked_for_room = true;
  const std::uint64_t request = kRoomRequest | ++context_.last_room;
  room_requests_[request] = tensor;
  const Bytes bytes(static_cast<std::int64_t>(model_server::rounded(creating.order.bytes)));
  context_.events.needs_room(*filler, request, bytes);
}

bool ModelHost::Gpu::grant_room(std::uint64_t request, bool granted) {
  const auto found = room_requests_.find(request);
  if (found == room_requests_.end()) return false;
  const TensorId tensor = found->second;
  room_requests_.erase(found);
  const auto creating = creating_.find(tensor);
  if (creating == creating_.end() || !server_) return true;
  if (granted) {
    server_->send(creating->second.order);
  } else {
    failed(tensor, ModelRefusal::kNoRoom, "the device is full of what runs, and no room could be made for the model");
  }
  return true;
}

void ModelHost::Gpu::evict(std::uint64_t bytes, std::function<void(Bytes)> done) {
  Eviction eviction{.dropping = {}, .freed = Bytes(0), .done = std::move(done)};
  ModelActions actions;
  eviction.freed = Bytes(static_cast<std::int64_t>(store_.evict(bytes, actions)));
  for (const ModelAction& action : actions) {
    if (const auto* const drop = std::get_if<DropTensor>(&action); drop != nullptr && server_)
      eviction.dropping.insert(drop->tensor);
  }
  evictions_.push_back(std::move(eviction));
  carry_out(actions);
  boost::asio::post(context_.io, life_.guarded([this] {
    dropped(TensorId(0));  // where nothing was to be waited for
  }));
}

void ModelHost::Gpu::dropped(TensorId tensor) {
  std::vector<Eviction> over;
  for (Eviction& eviction : evictions_) {
    eviction.dropping.erase(tensor);
    if (eviction.dropping.empty()) over.push_back(std::move(eviction));
  }
  std::erase_if(evictions_, [](const Eviction& eviction) { return eviction.dropping.empty(); });
  for (const Eviction& eviction : over) eviction.done(eviction.freed);
}

void ModelHost::Gpu::failed(TensorId tensor, ModelRefusal why, const std::string& message) {
  creating_.erase(tensor);
  ModelActions actions;
  store_.created(tensor, ModelFailure{why, message}, actions);
  carry_out(actions);
}

void ModelHost::Gpu::on_gone(const std::string& reason) {
  ++restarts_;
  ended_ = monotonic_now();
  spdlog::error(
      "the model server of GPU {} ended ({}): what programs have open stays readable to them, what is opened from "
      "now on is stored anew",
      id_.value(), reason);
  // It may be on the stack.
  boost::asio::post(context_.io, [link = std::shared_ptr<ModelServerLink>(std::move(server_))] {});
  creating_.clear();
  room_requests_.clear();
  for (Eviction& eviction : evictions_) eviction.dropping.clear();
  boost::asio::post(context_.io, life_.guarded([this] { dropped(TensorId(0)); }));
  ModelActions actions;
  store_.server_lost(
      fmt::format("the model server of the GPU ended ({}): open the model again, it is stored anew", reason), actions);
  carry_out(actions);
}

// Its context takes memory, too.
void ModelHost::Gpu::end_idle_server() {
  if (!server_ || !store_.is_empty()) return;
  boost::asio::post(context_.io, [this, life = life_.watch()] {
    if (life.ended() || !server_ || !store_.is_empty()) return;
    server_.reset();
    for (Eviction& eviction : evictions_) eviction.dropping.clear();  // all of its memory is free
    dropped(TensorId(0));
  });
}

ModelHost::View ModelHost::Gpu::view() const {
  return {
      .gpu = id_, .pid = server_ ? server_->pid() : 0, .restarts = restarts_, .memory = memory_, .use = store_.use()};
}

}  // namespace fairlead
