#include "net/certificate.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cctype>
#include <memory>

namespace fairlead::net {
namespace {

constexpr int kMostDays = 3650;
constexpr std::size_t kMostHosts = 64;
constexpr std::size_t kMostHostBytes = 253;  // of a DNS name
constexpr long kHour = 3600;

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* value) const {
    kFree(value);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;
using Memory = std::unique_ptr<BIO, Free<BIO_free_all>>;

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, host.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

bool is_name(const std::string& host) {
  return !host.empty() && host.size() <= kMostHostBytes && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '*';
  });
}

Status check(const CertificateOptions& options) {
  if (options.hosts.empty() || options.hosts.size() > kMostHosts) {
    return fail(Errc::kInvalidArgument, "{} hosts: 1 to {} are possible", options.hosts.size(), kMostHosts);
  }
  for (const std::string& host : options.hosts) {
    if (!is_address(host) && !is_name(host)) {
      return fail(Errc::kInvalidArgument, "host '{}' is neither an IP address nor a name of letters, digits, - and .",
                  host);
    }
  }
  if (options.days < 1 || options.days > kMostDays) {
    return fail(Errc::kInvalidArgument, "{} days: 1 to {} are possible", options.days, kMostDays);
  }
  return {};
}

Status complain(const char* what) {
  const char* reason = ERR_reason_error_string(ERR_get_error());
  return fail(Errc::kInternal, "{}: {}", what, reason == nullptr ? "failed" : reason);
}

std::string subject_names(const std::vector<std::string>& hosts) {
  std::string names;
  for (const std::string& host : hosts) {
    names += fmt::format("{}{}:{}", names.empty() ? "" : ",", is_address(host) ? "IP" : "DNS", host);
  }
  return names;
}

bool extend(X509* certificate, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool number(X509* certificate) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] &= 0x7f;  // positive
  BIGNUM* value = BN_bin2bn(bytes, sizeof bytes, nullptr);
  const bool done = BN_to_ASN1_INTEGER(value, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(value);
  return done;
}

bool fill(X509* certificate, EVP_PKEY* key, const CertificateOptions& options) {
  X509_NAME* name = X509_get_subject_name(certificate);
  static constexpr unsigned char kSubject[] = "Fairlead node";
  return X509_set_version(certificate, X509_VERSION_3) == 1 && number(certificate) &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kHour) != nullptr &&
         X509_time_adj_ex(X509_getm_notAfter(certificate), options.days, 0, nullptr) != nullptr &&
         X509_set_pubkey(certificate, key) == 1 &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, kSubject, -1, -1, 0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1 &&
         extend(certificate, NID_subject_alt_name, subject_names(options.hosts)) &&
         extend(certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
         extend(certificate, NID_key_usage, "critical,digitalSignature,keyCertSign") &&
         extend(certificate, NID_ext_key_usage, "serverAuth,clientAuth") &&
         extend(certificate, NID_subject_key_identifier, "hash") &&
         // Which of several with one subject is meant: a list of trusted ones has an old and a new one of the same host.
         extend(certificate, NID_authority_key_identifier, "keyid:always") &&
         X509_sign(certificate, key, EVP_sha256()) > 0;
}

std::string text_of(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return {data, static_cast<std::size_t>(size)};
}

}  // namespace

Result<MadeCertificate> make_certificate(const CertificateOptions& options) {
  if (Status valid = check(options); !valid) return fail(valid.error());
  ERR_clear_error();
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  if (!key || !certificate || !fill(certificate.get(), key.get(), options)) {
    return fail(complain("make a certificate").error());
  }
  const Memory certificate_text(BIO_new(BIO_s_mem()));
  const Memory key_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return fail(complain("write a certificate").error());
  }
  return MadeCertificate{.certificate = text_of(certificate_text.get()), .key = text_of(key_text.get())};
}

}  // namespace fairlead::net
