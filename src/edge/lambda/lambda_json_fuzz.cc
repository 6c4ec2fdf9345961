// libFuzzer: any bytes are the body of CreateFunction, UpdateFunctionConfiguration or UpdateFunctionCode, or refused with an
// error; what is taken and valid can be said again, and no folder is named by who may not name one.
#include <cstdint>
#include <cstdlib>

#include "edge/lambda/lambda_json.h"
#include "model/secret_reference.h"

namespace fairlead {

// What is linked here can answer, and does not: no server is.
void net::HttpExchange::respond(HttpResponse) {
  std::abort();
}

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read(std::string_view bytes) {
  const auto body = parse_object(bytes);
  if (!body) return require(!body.error().message.empty());
  FunctionRecord record{.name = "f"};
  const auto type = read_package_type(*body);
  if (type) record.config.package_type = *type;
  const Status applied = apply_configuration(*body, record.config);
  require(applied.has_value() || !applied.error().message.empty());
  for (const bool may_name_paths : {false, true}) {
    const auto code = read_code(*body, "", record.config.package_type, may_name_paths);
    if (!code) {
      require(!code.error().message.empty());
    } else if (!may_name_paths) {
      require(code->folder.empty());
    }
  }
  const auto nested = body->find("Code");
  if (nested != body->end() && nested->is_object()) {
    (void)read_code(*nested, "Code.", record.config.package_type, true).has_value();
  }
  Status status;
  JsonFields fields(*body, status);
  (void)fields.strings("Tags");
  if (const auto name = fields.string("FunctionName")) {
    const auto bare = function_name_from(std::string(*name));
    if (bare) require(validate_function_name(*bare).has_value());
  }
  if (!applied) return;
  require(!to_text(configuration_json(record)).empty());
  if (!validate_config(record.config)) return;
  if (const auto gpu = gpu_settings(record.config)) {
    require(validate_tenant(gpu->tenant).has_value() && gpu->weight >= 0.01 && gpu->weight <= 100);
  }
  for (const auto& [variable, value] : record.config.environment) {
    (void)validate_reference(variable, value).has_value();
  }
}

}  // namespace
}  // namespace fairlead

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fairlead::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
