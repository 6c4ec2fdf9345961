#include "node/object_sockets.h"

#include <filesystem>

#include "edge/edge.h"
#include "edge/error_document.h"
#include "edge/native/objects.h"
#include "edge/router.h"
#include "runtime/unix_listener.h"

namespace fairlead {
namespace {

constexpr const char* kSandboxDir = "/run/fairlead/objects";
constexpr int kBacklog = 128;
constexpr std::size_t kConnections = 256;            // of a tenant's functions; the one that is idle longest makes room
constexpr std::size_t kBudgetBytes = 256 << 20;      // of all tenants; one may have as much as is left free
static_assert(kBudgetBytes / 2 > kMaxRequestBytes);  // the largest object that is answered

}  // namespace

struct ObjectSockets::Door {
  std::string socket_path;
  std::string content_dir;
  Router router{document_errors()};
  std::unique_ptr<net::HttpServer> server;
};

ObjectSockets::ObjectSockets(boost::asio::io_context& io, ObjectStore& objects, std::string dir)
    : io_(io), objects_(objects), dir_(std::move(dir)), budget_(std::make_shared<ByteBudget>(kBudgetBytes)) {}

ObjectSockets::~ObjectSockets() = default;

Status ObjectSockets::offer(const std::string& tenant, InstanceSpec& spec) {
  const Result<Door*> door = door_of(tenant);
  if (!door) return fail(door.error());
  spec.binds.push_back({(*door)->socket_path, std::string(kSandboxDir) + "/socket", true});
  spec.binds.push_back({(*door)->content_dir, std::string(kSandboxDir) + "/content", false});
  spec.environment["FAIRLEAD_OBJECTS"] = kSandboxDir;
  return {};
}

Result<ObjectSockets::Door*> ObjectSockets::door_of(const std::string& tenant) {
  std::unique_ptr<Door>& known = doors_[tenant];
  if (known) return known.get();
  auto door = std::make_unique<Door>();
  Result<std::string> content_dir = objects_.content_dir(tenant);
  if (!content_dir) return fail(content_dir.error());
  door->content_dir = *std::move(content_dir);
  std::error_code error;
  std::filesystem::create_directories(dir_, error);
  if (error) return fail(errno_error(error.value(), "create folder " + dir_));
  door->socket_path = fmt::format("{}/objects-{}.sock", dir_, tenant);
  auto listener = listen_on_unix(door->socket_path, SOCK_STREAM, kBacklog);
  if (!listener) return fail(listener.error());
  const std::string seen_at = std::string(kSandboxDir) + "/content";
  if (Status added = door->router.add(object_edge(objects_, {.tenant = tenant, .content_dir = seen_at})); !added) {
    return fail(added.error());
  }
  door->server = std::make_unique<net::HttpServer>(
      io_, net::HttpLimits{.body_bytes = kMaxRequestBytes, .connections = kConnections},
      [router = &door->router](net::HttpExchange exchange) { router->dispatch(std::move(exchange)); },
      [router = &door->router](net::HttpRequest& head) { return router->sink_for(head); },
      net::RequestMemory{
          .bytes = kBudgetBytes, .holder = [tenant](net::HttpRequest&) { return tenant; }, .shared = budget_});
  if (Status adopted = door->server->adopt_listener(listener->release()); !adopted) return fail(adopted.error());
  known = std::move(door);
  return known.get();
}

}  // namespace fairlead
