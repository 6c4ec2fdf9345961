// shared-model: loads a safetensors file beside it onto the GPU, once for all instances, and answers what lies there now.
// Payload: {"file": "model.safetensors", "tensor": "a"}. For the tests of models that programs share.
#include <memory>
#include <numeric>

#include "fairlead/driver.h"
#include "fairlead/json.h"
#include "fairlead/models.h"
#include "fairlead/runtime.h"

int main() {
  std::unique_ptr<fairlead::Gpu> gpu;
  return fairlead::run([&](const fairlead::Event& event) {
    if (!gpu) gpu = std::make_unique<fairlead::Gpu>();
    fairlead::Parameters parameters(event.payload);
    const std::string file = parameters.text("file", "model.safetensors", 200),
                      name = parameters.text("tensor", "a", 200);
    parameters.check_all_used();
    const fairlead::SharedModel model = fairlead::SharedModel::load(*gpu, "/var/task/" + file);
    const auto& tensor = model.header().tensors.at(name);
    std::vector<std::uint8_t> bytes(tensor.end - tensor.begin);
    fairlead::check_driver(
        gpu->driver(), gpu->driver().cuMemcpyDtoH_v2(bytes.data(), model.address(name), bytes.size()), "cuMemcpyDtoH");
    fairlead::JsonObject answer;
    answer.add("bytes", static_cast<std::int64_t>(bytes.size()));
    answer.add("sum", std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
    return fairlead::Response(answer.str(), "application/json");
  });
}
