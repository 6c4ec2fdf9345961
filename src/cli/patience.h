// A client of a node for those who will not wait long: a node that hangs is one that does not answer.
#pragma once

#include <string>

#include "net/http_client.h"

namespace fairlead::cli {

// Certificates as the environment names them, as NodeClient's.
net::HttpClient impatient_client(const std::string& endpoint, Duration timeout);

}  // namespace fairlead::cli
