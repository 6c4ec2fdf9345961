// A certificate that a server makes for itself, where nobody else gives one: it is its own authority, so clients are given its file
// to trust.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace fairlead::net {

struct CertificateOptions {
  std::vector<std::string> hosts;  // names and addresses; at least one
  int days = 365;
};

struct MadeCertificate {
  std::string certificate;  // PEM
  std::string key;          // PEM, in the clear; ECDSA, P-256
};

// Valid from an hour ago on, since clocks differ. kInvalidArgument: a host or the number of days.
Result<MadeCertificate> make_certificate(const CertificateOptions& options);

}  // namespace fairlead::net
