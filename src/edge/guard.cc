#include "edge/guard.h"

#include <utility>

#include "base/digest.h"
#include "edge/session_cookie.h"
#include "model/tenant.h"
#include "net/http_listener.h"

namespace fairlead {
namespace {

// What is larger is hashed on another thread: a package of 64 MiB takes tenths of a second.
constexpr std::size_t kHashAtOnceBytes = 256 << 10;
constexpr std::size_t kMostAuditedPath = 512;
constexpr const char* kTenantHeader = "X-Fairlead-Tenant";

bool has_signature(net::HttpRequest& request) {
  return request.header("Authorization").starts_with(identity::kSigv4Scheme);
}

std::string hash_of(std::string_view body) {
  return to_hex(as_text(sha256(body)));
}

// A request whose body is held here, and whose answer is written down where it changes something.
class AdmittedExchange final : public net::HttpExchange::Impl, public net::HttpRequest {
 public:
  explicit AdmittedExchange(net::HttpExchange inner) : inner_(std::move(inner)) {}

  void hold(std::shared_ptr<std::string> body) { body_ = std::move(body); }
  void write_down(AuditEntry entry, std::function<void(const AuditEntry&)> audit) {
    entry_ = std::move(entry);
    audit_ = std::move(audit);
  }

  std::string_view method() const override { return request_.method(); }
  std::string_view target() const override { return request_.target(); }
  std::string_view header(std::string_view name) const override { return request_.header(name); }
  std::vector<net::Header> all_headers() const override { return request_.all_headers(); }
  std::string_view body() const override { return body_ ? std::string_view(*body_) : request_.body(); }
  std::string take_body() override { return body_ ? std::move(*body_) : request_.take_body(); }
  std::shared_ptr<net::BodySink> take_sink() override { return request_.take_sink(); }
  bool peer_is_local() const override { return request_.peer_is_local(); }
  std::string peer_address() const override { return request_.peer_address(); }
  std::optional<std::uint32_t> peer_uid() const override { return request_.peer_uid(); }
  std::optional<std::uint32_t> caller_uid() const override { return request_.caller_uid(); }

  net::HttpRequest& request() override { return *this; }
  void respond(net::HttpResponse response) override {
    note(response.status);
    inner_.respond(std::move(response));
  }
  void on_disconnect(std::function<void()> callback) override { inner_.on_disconnect(std::move(callback)); }
  void abandon() override {
    note(500);
    inner_ = {};
  }

 private:
  void note(unsigned status) {
    if (!audit_) return;
    entry_.status = status;
    audit_(entry_);
  }

  net::HttpExchange inner_;
  net::HttpRequest& request_ = inner_.request();
  std::shared_ptr<std::string> body_;
  AuditEntry entry_;
  std::function<void(const AuditEntry&)> audit_;
};

AuditEntry audit_entry(net::HttpRequest& request, const Principal& who) {
  const std::string_view target = request.target();
  return {.who = who.name,
          .tenant = who.tenant,
          .method = std::string(request.method()),
          .path = std::string(target.substr(0, std::min(target.find('?'), kMostAuditedPath)))};
}

// A key of one tenant need not name it, and may name no other.
Status check_tenant_header(net::HttpRequest& request, const Principal& who) {
  const std::string_view named = request.header(kTenantHeader);
  if (named.empty() || who.sees(named)) return {};
  return fail(Errc::kForbidden, "{} is '{}'; {} is a key of tenant '{}'", kTenantHeader,
              named.substr(0, kMaxTenantLength), who.name, *who.tenant);
}

// A browser sends the password that it was once told with every page's requests to this node. Pages have no business with it, but name
// themselves: changes by Origin, and what an <img> asks for by Sec-Fetch-Site, which is "none" where a person typed the address.
Status check_no_web_page(std::string_view authorization, const net::HttpRequest& request) {
  const std::string_view origin = request.header("Origin"), site = request.header("Sec-Fetch-Site");
  if (!identity::is_basic(authorization) || (origin.empty() && (site.empty() || site == "none"))) return {};
  return fail(Errc::kForbidden,
              "a page of {} sent this: web pages may not use a node with a password; give them an API key as a bearer "
              "token",
              origin.empty() ? site.substr(0, 128) : origin.substr(0, 128));
}

}  // namespace

std::optional<Principal> Guard::admit_head(net::HttpRequest& head, Permission wanted) {
  if (has_signature(head)) return std::nullopt;
  auto who = identify(head, [] { return std::string(); });
  if (!who || !permit(*who, wanted) || !check_tenant_header(head, *who)) return std::nullopt;
  return *std::move(who);
}

Result<std::string> Guard::holder_of(net::HttpRequest& head) {
  const auto tenant_of = [&head](const std::optional<std::string>& tenant) {
    if (tenant) return *tenant;
    std::string named(head.header(kTenantHeader).substr(0, kMaxTenantLength));
    return named.empty() ? std::string(kDefaultTenant) : named;
  };
  if (has_signature(head)) {
    const auto parts = identity::parse_sigv4(head.header("Authorization"));
    if (!parts && !options_.is_open) return fail(parts.error());
    if (const identity::ApiKey* key = parts ? keyring_.find(parts->key_id) : nullptr) return tenant_of(key->tenant);
    if (!options_.is_open) return fail(Errc::kUnauthenticated, "the access key that this request names is not known");
  }
  const auto who = identify(head, [] { return std::string(); });
  if (!who) return fail(who.error());
  return tenant_of(who->tenant);
}

Result<Principal> Guard::admit(net::HttpExchange& exchange, Permission wanted) {
  if (wanted == Permission::kAnyone) return Principal{.name = "anyone"};
  net::HttpRequest& request = exchange.request();
  return decide(exchange, wanted, identify(request, [&request] { return hash_of(request.body()); }), nullptr);
}

bool Guard::takes_long(net::HttpRequest& request) {
  return request.body().size() > kHashAtOnceBytes && has_signature(request);
}

void Guard::admit_later(net::HttpExchange exchange, Permission wanted, const Next& next) {
  net::HttpRequest& request = exchange.request();
  // Shared by the job and what follows it: std::function wants copies.
  const auto body = std::make_shared<std::string>(request.take_body());
  const auto held = std::make_shared<net::HttpExchange>(std::move(exchange));
  const auto go_on = [this, held, wanted, body, next](const std::string& digest) {
    Result<Principal> who = decide(*held, wanted, identify(held->request(), [&digest] { return digest; }), body);
    next(std::move(*held), std::move(who));
  };
  // Whose budget of bytes: that of the key that the request names, before anybody knows whether it is theirs.
  const auto parts = identity::parse_sigv4(request.header("Authorization"));
  const identity::ApiKey* key = parts ? keyring_.find(parts->key_id) : nullptr;
  if (key == nullptr) return go_on("");
  const Status accepted = ports_.elsewhere(
      key->tenant.value_or(kDefaultTenant), Bytes(std::ssize(*body)),
      [body, go_on]() -> std::function<void()> { return [go_on, digest = hash_of(*body)] { go_on(digest); }; });
  if (!accepted) next(std::move(*held), fail(accepted.error()));
}

Result<Principal> Guard::decide(net::HttpExchange& exchange, Permission wanted, Result<Principal> who,
                                std::shared_ptr<std::string> body) {
  if (!who) return who;
  net::HttpRequest& request = exchange.request();
  const bool is_written_down = ports_.audit && is_change(wanted, request.method());
  AuditEntry entry = is_written_down ? audit_entry(request, *who) : AuditEntry{};
  Status allowed = permit(*who, wanted);
  if (allowed) allowed = check_tenant_header(request, *who);
  if (!allowed) {
    entry.status = 403;
    if (is_written_down) ports_.audit(entry);
    return fail(allowed.error());
  }
  if (!is_written_down && !body) return who;
  auto admitted = std::make_shared<AdmittedExchange>(std::move(exchange));
  if (body) admitted->hold(std::move(body));
  if (is_written_down) admitted->write_down(std::move(entry), ports_.audit);
  exchange = net::HttpExchange(std::move(admitted));
  return who;
}

Result<Principal> Guard::identify(net::HttpRequest& request, const std::function<std::string()>& payload_sha256) {
  const std::string_view authorization = request.header("Authorization");
  // The console's scripts send no password; a browser that knows one adds it, and then the cookie counts as if it had not.
  const bool is_console = !request.header(kConsoleHeader).empty() && identity::is_basic(authorization);
  if (authorization.empty() || is_console) return by_session(request);
  if (Status own = check_no_web_page(authorization, request); !own) return fail(own.error());
  const identity::SignedRequest signed_request{
      .method = request.method(),
      .target = request.target(),
      .header = [&request](std::string_view name) { return request.header(name); },
      .payload_sha256 = payload_sha256};
  auto who = keyring_.authenticate(authorization, signed_request, ports_.wall_clock_ms());
  // AWS clients cannot leave out their credentials: an open node has no use for those that are none of its own.
  if (!who && options_.is_open) return without_credential(request);
  return who;
}

// A session that is over is no reason to keep out who would come in without one.
Result<Principal> Guard::by_session(net::HttpRequest& request) const {
  const std::string_view session = session_of(request);
  if (session.empty()) return without_credential(request);
  if (Status own = check_sent_by_console(request); !own) return fail(own.error());
  auto who = keyring_.by_session(session, ports_.wall_clock_ms());
  if (who) return who;
  auto other = without_credential(request);
  return other ? other : who;
}

Result<Principal> Guard::without_credential(net::HttpRequest& request) const {
  if (const auto uid = request.peer_uid(); uid && (*uid == 0 || *uid == options_.operator_uid)) {
    return Principal{.name = fmt::format("uid {}", *uid), .role = Role::kOperator};
  }
  if (!options_.is_open || !request.peer_is_local()) {
    return fail(
        Errc::kUnauthenticated,
        "this needs a credential: an API key as 'Authorization: Bearer ID.SECRET', or as AWS access key and secret. "
        "'fairlead tenant add NAME' on the node's machine makes one");
  }
  if (const std::string_view origin = request.header("Origin"); !origin.empty()) {
    return fail(Errc::kForbidden, "Origin is '{}': web pages may not use a node that is open; give them an API key",
                origin.substr(0, 128));
  }
  // A browser always names the host; a client that does not is none.
  const std::string_view host = request.header("Host");
  if (!host.empty() && !net::is_loopback_host(host) && !request.peer_uid()) {
    return fail(Errc::kForbidden, "Host is '{}': a node that is open answers to localhost and loopback addresses alone",
                host.substr(0, 128));
  }
  return Principal{.name = "anyone on this machine", .role = Role::kOperator};
}

}  // namespace fairlead
