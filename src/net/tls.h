// TLS by OpenSSL: what a server shows (TlsIdentity), what a client trusts (TlsTrust), and one connection's state (TlsSession).
// No other header of the project includes OpenSSL, and this one does not either.
//
// TLS 1.2 and 1.3, the library's own choice of ciphers, no renegotiation, no compression. The session moves bytes over a
// connected socket that does not block, and never waits: it says which readiness of the socket it needs.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"
#include "base/units.h"

struct ssl_st;
struct ssl_ctx_st;

namespace fairlead::net {

// One connection. Not thread-safe; may be handed from one thread to another. Does not own the socket, which must outlive it.
class TlsSession {
 public:
  enum class Step {
    kDone,        // `count` bytes moved, or the handshake is over
    kNeedsRead,   // try again once the socket can be read
    kNeedsWrite,  // once it can be written
    kEnd,         // the peer sends nothing more
    kFailed,      // broken for good; last_error() says why
  };
  struct Moved {
    Step step = Step::kFailed;
    std::size_t count = 0;
  };

  TlsSession(ssl_st* ssl, int fd);  // takes over `ssl`
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  Step handshake();
  Moved read(char* data, std::size_t size);
  // What was not moved has to be offered again, the same bytes first.
  Moved write(std::string_view data);
  // Bytes that the socket no longer has and read() may return.
  bool has_input() const;
  // Tells the peer that nothing more comes, as far as the socket takes it at once.
  void end_output();

  // The client spoke HTTP in the clear to a server that speaks TLS.
  bool is_plain_http() const { return is_plain_http_; }
  const std::string& last_error() const { return last_error_; }

 private:
  Step step_after(int result);

  ssl_st* ssl_;
  std::string last_error_;
  bool is_plain_http_ = false;
};

struct TlsFiles {
  std::string certificate;  // PEM: the server's, then those between it and a root
  std::string key;          // PEM, of the first certificate
  std::string client_ca;    // PEM: who has no certificate of one of these is refused; "": nobody is asked for one
  bool operator==(const TlsFiles&) const = default;
};

// What is spoken within TLS.
enum class TlsProtocol {
  kHttp1,  // whatever the client offers, nothing is chosen
  kHttp2,  // "h2" (ALPN): a client that offers others alone is refused
};

// The certificate and key of a server. When the files are written anew, connections from then on see the new ones: a certificate
// that is renewed needs no restart. Files that do not fit together are refused, and what was loaded before stays.
// Thread-safe.
class TlsIdentity {
 public:
  // kInvalidArgument, with the file and the reason.
  static Result<std::shared_ptr<TlsIdentity>> load(TlsFiles files, TlsProtocol protocol = TlsProtocol::kHttp1);
  ~TlsIdentity();

  Result<std::unique_ptr<TlsSession>> accept(int fd);

  // Looks whether the files were written anew, at most every five seconds. True: they were, and are in use. An error: they were,
  // and cannot be used; said once per change.
  Result<bool> look_again(Instant now);

 private:
  struct Stamp {
    long long certificate = 0;
    long long key = 0;
    long long client_ca = 0;
    bool operator==(const Stamp&) const = default;
  };

  TlsIdentity(TlsFiles files, TlsProtocol protocol) : files_(std::move(files)), protocol_(protocol) {}
  Stamp stamp() const;
  Result<std::shared_ptr<ssl_ctx_st>> read() const;

  const TlsFiles files_;
  const TlsProtocol protocol_;
  Mutex mutex_;
  std::shared_ptr<ssl_ctx_st> context_ FL_GUARDED_BY(mutex_);
  Stamp stamp_ FL_GUARDED_BY(mutex_);
  Instant looked_at_ FL_GUARDED_BY(mutex_){};
};

// PEM files of a client.
struct TlsTrustFiles {
  std::string ca;           // whom it believes; "": the system's authorities
  std::string certificate;  // which it shows to a server that asks; "": none
  std::string key;          // of that certificate
};

// Whom a client believes, and what it shows. Thread-safe.
class TlsTrust {
 public:
  // kInvalidArgument, with the file and the reason.
  static Result<TlsTrust> load(const TlsTrustFiles& files);

  // `host`: the name or address that the server's certificate must have.
  Result<std::unique_ptr<TlsSession>> connect(int fd, const std::string& host) const;

 private:
  explicit TlsTrust(std::shared_ptr<ssl_ctx_st> context) : context_(std::move(context)) {}
  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace fairlead::net
