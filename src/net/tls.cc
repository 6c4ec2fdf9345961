#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace fairlead::net {
namespace {

constexpr auto kLookEvery = std::chrono::seconds(5);

// The oldest of the library's complaints, in its words. Empties the list: it is per thread, not per connection.
std::string complaint() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "the connection broke";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : fmt::format("error {:x}", code);
}

// ---- the socket as OpenSSL sees it. Its own writes with write(2), which raises SIGPIPE where the peer has gone.

int fd_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

int send_some(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = ::send(fd_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

int receive_some(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = ::recv(fd_of(bio), data, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (count == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(count);
}

long control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* socket_method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without SIGPIPE");
    BIO_meth_set_write(made, send_some);
    BIO_meth_set_read(made, receive_some);
    BIO_meth_set_ctrl(made, control);
    return made;
  }();
  return method;
}

// ---- contexts

std::shared_ptr<SSL_CTX> new_context(const SSL_METHOD* method) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(method), SSL_CTX_free);
  if (!context) return nullptr;
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // A peer that just closes cuts off nothing that HTTP does not notice by itself.
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  // Else one SSL_read goes on for as long as the peer sends records that hold no data: seconds, for some megabytes of key updates.
  SSL_CTX_clear_mode(context.get(), SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_read_ahead(context.get(), 1);
  return context;
}

Error bad_file(const char* what, const std::string& path) {
  return {Errc::kInvalidArgument, fmt::format("{} '{}': {}", what, path, complaint())};
}

Status use_certificate(SSL_CTX* context, const std::string& certificate, const std::string& key) {
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1) {
    return fail(bad_file("TLS certificate", certificate));
  }
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) return fail(bad_file("TLS key", key));
  return {};
}

Status ask_for_certificates(SSL_CTX* context, const std::string& client_ca) {
  if (client_ca.empty()) return {};
  if (SSL_CTX_load_verify_locations(context, client_ca.c_str(), nullptr) != 1) {
    return fail(bad_file("TLS authorities of clients", client_ca));
  }
  SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(client_ca.c_str()));
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

int choose_http2(SSL*, const unsigned char** chosen, unsigned char* chosen_size, const unsigned char* offered,
                 unsigned offered_size, void*) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, chosen_size, kHttp2, sizeof kHttp2, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

}  // namespace

// ---- TlsSession

TlsSession::TlsSession(ssl_st* ssl, int fd) : ssl_(ssl) {
  BIO* bio = BIO_new(socket_method());
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
}

TlsSession::~TlsSession() {
  SSL_free(ssl_);
}

TlsSession::Step TlsSession::step_after(int result) {
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_NONE: return Step::kDone;
    case SSL_ERROR_WANT_READ: return Step::kNeedsRead;
    case SSL_ERROR_WANT_WRITE: return Step::kNeedsWrite;
    case SSL_ERROR_ZERO_RETURN: return Step::kEnd;
    default: break;
  }
  is_plain_http_ = ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
  last_error_ = complaint();
  return Step::kFailed;
}

TlsSession::Step TlsSession::handshake() {
  ERR_clear_error();
  const Step step = step_after(SSL_do_handshake(ssl_));
  if (step == Step::kEnd) return Step::kFailed;
  if (step != Step::kFailed) return step;
  // What a certificate lacks says more than that its verification failed.
  if (const long verdict = SSL_get_verify_result(ssl_); verdict != X509_V_OK) {
    last_error_ += fmt::format(" ({})", X509_verify_cert_error_string(verdict));
  }
  return step;
}

TlsSession::Moved TlsSession::read(char* data, std::size_t size) {
  ERR_clear_error();
  const int count = SSL_read(ssl_, data, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
  if (count > 0) return {Step::kDone, static_cast<std::size_t>(count)};
  return {step_after(count), 0};
}

TlsSession::Moved TlsSession::write(std::string_view data) {
  if (data.empty()) return {Step::kDone, 0};
  ERR_clear_error();
  const int count = SSL_write(ssl_, data.data(), static_cast<int>(std::min<std::size_t>(data.size(), INT_MAX)));
  if (count > 0) return {Step::kDone, static_cast<std::size_t>(count)};
  return {step_after(count), 0};
}

bool TlsSession::has_input() const {
  return SSL_has_pending(ssl_) != 0;
}

void TlsSession::end_output() {
  ERR_clear_error();
  if (last_error_.empty()) SSL_shutdown(ssl_);
  ERR_clear_error();
}

// ---- TlsIdentity

TlsIdentity::~TlsIdentity() = default;

Result<std::shared_ptr<TlsIdentity>> TlsIdentity::load(TlsFiles files, TlsProtocol protocol) {
  std::shared_ptr<TlsIdentity> identity(new TlsIdentity(std::move(files), protocol));
  const MutexLock lock(identity->mutex_);
  identity->stamp_ = identity->stamp();
  auto context = identity->read();
  if (!context) return fail(context.error());
  identity->context_ = *std::move(context);
  return identity;
}

Result<std::shared_ptr<ssl_ctx_st>> TlsIdentity::read() const {
  ERR_clear_error();
  const auto context = new_context(TLS_server_method());
  if (!context) return fail(Errc::kInternal, "TLS: {}", complaint());
  if (Status shown = use_certificate(context.get(), files_.certificate, files_.key); !shown) return fail(shown.error());
  if (Status asked = ask_for_certificates(context.get(), files_.client_ca); !asked) return fail(asked.error());
  if (protocol_ == TlsProtocol::kHttp2) SSL_CTX_set_alpn_select_cb(context.get(), choose_http2, nullptr);
  static constexpr unsigned char kSessions[] = "fairlead";
  SSL_CTX_set_session_id_context(context.get(), kSessions, sizeof kSessions - 1);
  return context;
}

TlsIdentity::Stamp TlsIdentity::stamp() const {
  const auto changed = [](const std::string& path) -> long long {
    struct stat info {};
    if (path.empty() || ::stat(path.c_str(), &info) != 0) return 0;
    // The inode too: a file that is replaced may have the time of the one before.
    return info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec + static_cast<long long>(info.st_ino);
  };
  return {changed(files_.certificate), changed(files_.key), changed(files_.client_ca)};
}

Result<std::unique_ptr<TlsSession>> TlsIdentity::accept(int fd) {
  const MutexLock lock(mutex_);
  SSL* ssl = SSL_new(context_.get());
  if (ssl == nullptr) return fail(Errc::kInternal, "TLS: {}", complaint());
  SSL_set_accept_state(ssl);
  return std::make_unique<TlsSession>(ssl, fd);
}

Result<bool> TlsIdentity::look_again(Instant now) {
  const MutexLock lock(mutex_);
  if (now < looked_at_ + kLookEvery) return false;
  looked_at_ = now;
  const Stamp present = stamp();
  if (present == stamp_) return false;
  stamp_ = present;
  auto context = read();
  if (!context) return fail(context.error());
  context_ = *std::move(context);
  return true;
}

// ---- TlsTrust

Result<TlsTrust> TlsTrust::load(const TlsTrustFiles& files) {
  ERR_clear_error();
  auto context = new_context(TLS_client_method());
  if (!context) return fail(Errc::kInternal, "TLS: {}", complaint());
  const int loaded = files.ca.empty() ? SSL_CTX_set_default_verify_paths(context.get())
                                      : SSL_CTX_load_verify_locations(context.get(), files.ca.c_str(), nullptr);
  if (loaded != 1) return fail(bad_file("certificates to trust", files.ca));
  if (!files.certificate.empty()) {
    if (Status shown = use_certificate(context.get(), files.certificate, files.key); !shown) return fail(shown.error());
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return TlsTrust(std::move(context));
}

Result<std::unique_ptr<TlsSession>> TlsTrust::connect(int fd, const std::string& host) const {
  SSL* ssl = SSL_new(context_.get());
  if (ssl == nullptr) return fail(Errc::kInternal, "TLS: {}", complaint());
  auto made = std::make_unique<TlsSession>(ssl, fd);
  SSL_set_connect_state(ssl);
  const int named = is_address(host) ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str())
                                     : SSL_set1_host(ssl, host.c_str());
  if (named != 1) return fail(Errc::kInvalidArgument, "TLS: '{}' is no name of a host", host);
  if (!is_address(host)) SSL_set_tlsext_host_name(ssl, host.c_str());
  return made;
}

}  // namespace fairlead::net
