// libFuzzer: any bytes are a FunctionDeployment or refused with an error; what is taken is a valid configuration within the bounds of a
// function, is no other tenant's, and is told again as it was said. The same bytes are a quantity, a duration, a name and a URL, or not.
#include <cstdint>
#include <cstdlib>

#include "edge/json_body.h"
#include "edge/openfaas/callback_url.h"
#include "edge/openfaas/deployment.h"
#include "edge/openfaas/function_name.h"
#include "edge/openfaas/quantity.h"
#include "model/tenant.h"

namespace fairlead {

// What is linked here can answer, and does not: no server is.
void net::HttpExchange::respond(HttpResponse) {
  std::abort();
}

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read_words(std::string_view bytes) {
  if (const auto quantity = openfaas::parse_quantity("x", bytes))
    require(*quantity >= 0 && *quantity <= openfaas::kMostQuantity);
  if (const auto duration = openfaas::parse_go_duration("x", bytes)) require(*duration >= Duration(0));
  const openfaas::FunctionName name = openfaas::split_name(bytes);
  require(name.name.size() + name.space.size() <= bytes.size());
  const Principal acme{.name = "k", .role = Role::kDeployer, .tenant = "acme"};
  if (const auto tenant = openfaas::tenant_of_namespace(acme, bytes)) require(*tenant == "acme");
  if (const auto url = openfaas::parse_callback_url(bytes, RegistryRules::everything_public())) {
    require(url->speaks_tls && url->host.port == kHttpsPort && url->target.starts_with('/'));
    for (const unsigned char c : url->authority() + url->target) require(c > 0x20 && c < 0x7f);
  }
}

void read(std::string_view bytes) {
  read_words(bytes);
  const auto body = parse_object(bytes);
  if (!body) return require(!body.error().message.empty());
  const auto deployment = openfaas::read_deployment(*body);
  if (!deployment) return require(!deployment.error().message.empty());
  const FunctionConfig& config = deployment->config;
  require(validate_function_name(deployment->service).has_value());
  require(validate_config(config).has_value());
  require(gpu_settings(config).has_value());
  require(tenant_of(config.tags) == kDefaultTenant);
  const FunctionRecord record{.name = deployment->service, .config = config};
  const auto status = openfaas::status_json(record, openfaas::counts_of(record, nullptr), true);
  require(!to_text(status).empty());
  require(status["labels"] == body->value("labels", nlohmann::json::object()) || (*body)["labels"].is_null());
}

}  // namespace
}  // namespace fairlead

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fairlead::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
