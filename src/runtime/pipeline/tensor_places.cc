#include "runtime/pipeline/tensor_places.h"

#include <algorithm>

namespace fairlead {

TensorPlaces::TensorPlaces(const Dag& dag, const std::vector<std::vector<std::size_t>>& stages)
    : dag_(dag), stage_of_(dag.components.size()) {
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (const std::size_t component : stages[stage]) stage_of_[component] = stage;
  }
  find();
}

bool TensorPlaces::leaves_device(std::size_t writer, std::size_t reader) const {
  const bool both = dag_.components[writer].needs_gpu && dag_.components[reader].needs_gpu;
  return stage_of_[writer] != stage_of_[reader] || !both;
}

bool TensorPlaces::decides(const Tensor& tensor) const {
  return std::any_of(dag_.components.begin(), dag_.components.end(), [&](const Component& one) {
    return one.when && one.when->value == TensorSource{tensor.first, tensor.second};
  });
}

// What is answered, what the node looks at, and all that a program makes: it has no other place for it.
void TensorPlaces::find() {
  for (std::size_t one = 0; one < dag_.components.size(); ++one) {
    for (const ComponentInput& input : dag_.components[one].inputs) {
      for (const TensorSource& source : input.sources) {
        if (source.component && leaves_device(*source.component, one))
          in_rings_.emplace(*source.component, source.port);
      }
    }
    for (std::size_t port = 0; port < dag_.components[one].outputs.size(); ++port) {
      if (decides({one, port}) || !dag_.components[one].needs_gpu) in_rings_.emplace(one, port);
    }
  }
  for (const DagOutput& output : dag_.outputs) {
    if (output.from.component) in_rings_.emplace(*output.from.component, output.from.port);
  }
}

TensorPlaces::Tensors TensorPlaces::rings_of(const std::vector<std::size_t>& components) const {
  Tensors tensors;
  for (const std::size_t component : components) {
    for (const Tensor& tensor : in_rings_) {
      if (tensor.first == component) tensors.insert(tensor);
    }
    for (const ComponentInput& input : dag_.components[component].inputs) {
      for (const TensorSource& source : input.sources) {
        if (source.component && leaves_device(*source.component, component)) {
          tensors.emplace(*source.component, source.port);
        }
      }
    }
  }
  return tensors;
}

}  // namespace fairlead
