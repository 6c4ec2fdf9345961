#include "edge/native/objects.h"

#include <memory>
#include <utility>

#include "edge/error_document.h"
#include "edge/json_body.h"
#include "edge/native/byte_range.h"
#include "edge/native/object_upload.h"
#include "edge/native/tenant_header.h"
#include "edge/query.h"
#include "store/object_part.h"

namespace fairlead {

using nlohmann::json;

namespace {

constexpr std::string_view kBadValue = "InvalidParameterValueException";
// What is as large is written as it arrives; smaller ones need no second step to be sealed.
constexpr std::size_t kStreamedBytes = 256 << 10;
constexpr std::size_t kDefaultListed = 100;
constexpr std::size_t kMaxListed = 10'000;
constexpr double kMaxWaitSeconds = 900;
constexpr double kMaxLifetimeSeconds = 10.0 * 365 * 86400;

Result<std::optional<Duration>> lifetime_of(const net::Target& target) {
  const auto seconds = query_number<double>(target, "lifetime", 0, 0, kMaxLifetimeSeconds);
  if (!seconds) return fail(seconds.error());
  return *seconds > 0 ? std::optional(from_seconds(*seconds)) : std::nullopt;
}

std::string hex_of(std::string_view raw) {
  std::string text;
  for (const unsigned char byte : raw) text += fmt::format("{:02x}", byte);
  return text;
}

// Shared with callbacks, which may outlive the router.
class ObjectRoutes : public std::enable_shared_from_this<ObjectRoutes> {
 public:
  ObjectRoutes(ObjectStore& objects, ObjectAccess access) : objects_(objects), access_(std::move(access)) {}

  // Null for what is small, and for what put() refuses.
  std::shared_ptr<net::BodySink> sink_for(const RouteHead& head) const {
    const auto bytes = number_in<std::size_t>("Content-Length", head.request.header("Content-Length"), kStreamedBytes,
                                              kMaxHttpObjectBytes);
    const auto lifetime = lifetime_of(head.target);
    if (!bytes || !lifetime) return nullptr;
    ObjectName name{access_.tenant ? *access_.tenant : tenant_named_by(head.request, head.principal),
                    head.parameters.front().second};
    return ObjectUpload::begin(objects_, std::move(name), Bytes(static_cast<std::int64_t>(*bytes)), *lifetime);
  }

  void put(RouteCall call) const {
    if (const auto upload = std::static_pointer_cast<ObjectUpload>(call.exchange.request().take_sink())) {
      return upload->finish(answer_with_info(std::move(call), 201));
    }
    const auto lifetime = lifetime_of(call.target);
    if (!lifetime) return respond_error(std::move(call.exchange), lifetime.error());
    const std::size_t size = call.exchange.request().body().size();
    if (size > kMaxHttpObjectBytes) {
      return respond_error(
          std::move(call.exchange),
          Error{Errc::kTooLarge, fmt::format("the object has {} bytes, over HTTP at most {} are taken: "
                                             "write larger ones through POST ?create=BYTES",
                                             size, kMaxHttpObjectBytes)});
    }
    const ObjectName name = name_of(call);
    std::string bytes = call.exchange.request().take_body();
    objects_.put(name, std::move(bytes), *lifetime, answer_with_info(std::move(call), 201));
  }

  void get(RouteCall call) const {
    const bool is_head = call.exchange.request().method() == "HEAD";
    if (is_head || has_query(call.target, "info")) return describe(std::move(call), is_head);
    const auto wait = query_number<double>(call.target, "wait", 0, 0, kMaxWaitSeconds);
    if (!wait) return respond_error(std::move(call.exchange), wait.error());
    const ObjectName name = name_of(call);
    const std::string range(call.exchange.request().header("Range"));
    auto exchange = std::make_shared<net::HttpExchange>(std::move(call.exchange));  // shared: callbacks are copyable
    const auto open = [self = shared_from_this(), exchange, range, name, wait = from_seconds(*wait)] {
      self->objects_.open_object(name, wait, [self, exchange, range](const Result<OpenObject>& object) {
        if (!object) return respond_error(std::move(*exchange), object.error());
        self->send(*exchange, *object, range);
      });
    };
    const auto refuse_large = [exchange, range](const Result<ObjectInfo>& info) {
      if (!info || !range.empty() || info->bytes <= Bytes(kMaxHttpObjectBytes)) return false;
      respond_error(std::move(*exchange), too_large_to_send(*info));
      return true;
    };
    if (const auto here = objects_.info(name)) return refuse_large(here) ? void() : open();
    // Before another node's is copied.
    objects_.locate(name, [open, refuse_large](const Result<ObjectInfo>& info) {
      if (!refuse_large(info)) open();
    });
  }

  void post(RouteCall call) const {
    if (!call.exchange.request().peer_is_local() || !access_.content_dir.empty()) {
      return respond_error(std::move(call.exchange),
                           Error{Errc::kInvalidArgument,
                                 "objects are created by mapping by clients on the node's own "
                                 "machine only, outside of sandboxes: use PUT"});
    }
    if (has_query(call.target, "seal")) {
      const ObjectName name = name_of(call);
      return objects_.seal(name, answer_with_info(std::move(call), 200));
    }
    const auto bytes = query_number<std::int64_t>(call.target, "create", -1, 0, std::int64_t{1} << 50);
    const auto lifetime = lifetime_of(call.target);
    if (!bytes) return respond_error(std::move(call.exchange), bytes.error());
    if (!lifetime) return respond_error(std::move(call.exchange), lifetime.error());
    if (*bytes < 0) {
      return respond_error(std::move(call.exchange),
                           Error{Errc::kInvalidArgument, "POST needs ?create=BYTES or ?seal in the query"});
    }
    const ObjectName name = name_of(call);
    auto exchange = std::make_shared<net::HttpExchange>(std::move(call.exchange));
    objects_.create(name, Bytes(*bytes), *lifetime,
                    [self = shared_from_this(), name, exchange](const Result<UniqueFd>& memory) {
                      if (!memory) return respond_error(std::move(*exchange), memory.error());
                      respond_json(std::move(*exchange), 201, self->json_of(*self->objects_.info(name), true));
                    });
  }

  void remove(RouteCall call) const {
    const ObjectName name = name_of(call);
    auto exchange = std::make_shared<net::HttpExchange>(std::move(call.exchange));
    objects_.remove_everywhere(name, [exchange](const Status& removed) {
      if (!removed) return respond_error(std::move(*exchange), removed.error());
      exchange->respond({.status = 204});
    });
  }

  void list(RouteCall call) const {
    const auto limit = query_number<std::size_t>(call.target, "limit", kDefaultListed, 1, kMaxListed);
    if (!limit) return respond_error(std::move(call.exchange), limit.error());
    const std::string prefix(call.target.query_value("prefix"));
    const std::string after(call.target.query_value("after"));
    const bool is_local = call.exchange.request().peer_is_local();
    json listed = json::array();
    for (const ObjectInfo& info : objects_.list(tenant_of(call), prefix, after, *limit)) {
      listed.push_back(json_of(info, is_local));
    }
    json body{{"objects", std::move(listed)}};
    if (body["objects"].size() == *limit) body["next_after"] = body["objects"].back()["key"];
    respond_json(std::move(call.exchange), 200, body);
  }

 private:
  void send(net::HttpExchange& exchange, const OpenObject& object, std::string_view header) const {
    const auto total = static_cast<std::uint64_t>(object.info.bytes.count());
    const auto range = byte_range(header, total, kMaxHttpObjectBytes);
    if (!range) return respond_error(std::move(exchange), {416, kBadValue, range.error().message});
    if (!*range && total > kMaxHttpObjectBytes) {
      return respond_error(std::move(exchange), too_large_to_send(object.info));
    }
    const ByteRange part = range->value_or(ByteRange{0, total});
    Result<std::string> bytes = read_part(object, part.first, part.bytes);
    if (!bytes) return respond_error(std::move(exchange), bytes.error());
    net::HttpResponse response{.headers = headers_of(object.info), .body = *std::move(bytes)};
    if (*range) {
      response.status = 206;
      const std::uint64_t last = part.first + part.bytes - 1;
      response.headers.push_back({"Content-Range", fmt::format("bytes {}-{}/{}", part.first, last, total)});
    }
    exchange.respond(std::move(response));
  }

  ObjectName name_of(RouteCall& call) const { return {tenant_of(call), call.parameter("key")}; }

  std::string tenant_of(RouteCall& call) const { return access_.tenant ? *access_.tenant : tenant_named_by(call); }

  void describe(RouteCall call, bool is_head) const {
    const ObjectName name = name_of(call);
    const bool is_local = call.exchange.request().peer_is_local();
    auto exchange = std::make_shared<net::HttpExchange>(std::move(call.exchange));
    objects_.locate(name, [self = shared_from_this(), exchange, is_local, is_head](const Result<ObjectInfo>& info) {
      if (!info) return respond_error(std::move(*exchange), info.error());
      if (!is_head) return respond_json(std::move(*exchange), 200, self->json_of(*info, is_local));
      exchange->respond({.status = 200, .headers = headers_of(*info)});
    });
  }

  ObjectStore::Callback<ObjectInfo> answer_with_info(RouteCall call, unsigned status) const {
    const bool is_local = call.exchange.request().peer_is_local();
    auto exchange = std::make_shared<net::HttpExchange>(std::move(call.exchange));
    return [self = shared_from_this(), exchange, is_local, status](const Result<ObjectInfo>& info) {
      if (!info) return respond_error(std::move(*exchange), info.error());
      respond_json(std::move(*exchange), status, self->json_of(*info, is_local));
    };
  }

  std::string path_for_client(const ObjectInfo& info) const {
    if (access_.content_dir.empty() || info.path.empty()) return info.path;
    return access_.content_dir + info.path.substr(info.path.rfind('/'));
  }

  json json_of(const ObjectInfo& info, bool is_local) const {
    json fields{{"key", info.name.key},          {"tenant", info.name.tenant},
                {"bytes", info.bytes.count()},   {"state", object_state_name(info.state)},
                {"created_ms", info.created_ms}, {"last_used_ms", info.last_used_ms}};
    if (!info.content.empty()) fields["content"] = hex_of(info.content);
    if (!info.failure.empty()) fields["failure"] = info.failure;
    if (!info.node.empty()) fields["node"] = info.node;
    if (info.expires_ms) fields["expires_ms"] = *info.expires_ms;
    if (is_local && !info.path.empty()) fields["path"] = path_for_client(info);
    return fields;
  }

  static std::vector<net::Header> headers_of(const ObjectInfo& info) {
    std::vector<net::Header> headers = {{"Content-Type", "application/octet-stream"},
                                        {"Accept-Ranges", "bytes"},
                                        {"X-Fairlead-Object-State", std::string(object_state_name(info.state))},
                                        {"X-Fairlead-Object-Bytes", std::to_string(info.bytes.count())},
                                        {"X-Fairlead-Object-Content", hex_of(info.content)}};
    if (!info.node.empty()) headers.push_back({"X-Fairlead-Object-Node", info.node});
    return headers;
  }

  static Error too_large_to_send(const ObjectInfo& info) {
    return {
        Errc::kTooLarge,
        fmt::format("object '{}' has {} bytes, over HTTP at most {} are sent at once: map the file that ?info names as "
                    "path, or ask for parts with the header Range",
                    info.name.key, info.bytes.count(), kMaxHttpObjectBytes)};
  }

  ObjectStore& objects_;
  const ObjectAccess access_;
};

}  // namespace

void add_object_routes(Routes& routes, ObjectStore& objects, const ObjectAccess& access) {
  const auto handlers = std::make_shared<ObjectRoutes>(objects, access);  // shared by the handlers
  using Handle = void (ObjectRoutes::*)(RouteCall) const;
  const auto add = [&](Permission permission, std::string_view method, std::string_view pattern, Handle handle,
                       RouteSink sink = {}) {
    routes.add(
        method, pattern, [handlers, handle](RouteCall call) { (*handlers.*handle)(std::move(call)); }, permission,
        std::move(sink));
  };
  add(Permission::kRead, "GET", "/v1/objects", &ObjectRoutes::list);
  add(Permission::kInvoke, "PUT", "/v1/objects/{key*}", &ObjectRoutes::put,
      [handlers](const RouteHead& head) { return handlers->sink_for(head); });
  add(Permission::kRead, "GET", "/v1/objects/{key*}", &ObjectRoutes::get);
  add(Permission::kInvoke, "POST", "/v1/objects/{key*}", &ObjectRoutes::post);
  add(Permission::kInvoke, "DELETE", "/v1/objects/{key*}", &ObjectRoutes::remove);
}

Edge object_edge(ObjectStore& objects, const ObjectAccess& access) {
  Edge edge{.name = "objects", .prefixes = {"/v1/objects"}, .errors = document_errors()};
  add_object_routes(edge.routes, objects, access);
  return edge;
}

}  // namespace fairlead
