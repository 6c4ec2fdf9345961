// Dags for tests.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "decide/pipeline/dag.h"

namespace fairlead {

inline SliceTime time_of(std::string slice, int ms) {
  return {.slice = std::move(slice), .mean = std::chrono::milliseconds(ms), .deviation = {}, .seen = 10};
}

// Reads what is named ("other": its only output; "input": the request), takes `ms` on 1g, 2g and 4g.
inline Component component(const Dag& dag, std::string name, std::initializer_list<const char*> reads,
                           std::initializer_list<int> ms = {10, 6, 4}, Bytes memory = gib(1)) {
  Component made;
  made.name = std::move(name);
  made.task = made.name;
  for (const std::string read : reads) {
    TensorSource source;
    if (read != "input") source.component = dag.find(read);
    made.inputs.push_back({.name = "from_" + read, .sources = {source}});
  }
  made.outputs = {{.name = "y", .type = ElementType::kF32, .shape = {1, 1 << 20}}};
  made.weights = made.peak = memory;
  const char* const slices[] = {"1g", "2g", "4g"};
  std::size_t at = 0;
  for (const int one : ms) made.times.push_back(time_of(slices[at++], one));
  return made;
}

inline Dag dag_of_nothing() {
  Dag dag;
  dag.inputs = {{.name = "x", .type = ElementType::kF32, .shape = {1, 1 << 20}}};
  return dag;
}

inline void end_with(Dag& dag, const std::string& component) {
  dag.outputs = {{.name = "y", .from = {dag.find(component), 0}}};
}

// The spec's worked example: 80, 120, 80 ms on 1g; 16, 9, 16 GB.
inline Dag three_in_a_row() {
  Dag dag = dag_of_nothing();
  dag.components.push_back(component(dag, "a", {"input"}, {80, 44, 26}, gib(16)));
  dag.components.push_back(component(dag, "b", {"a"}, {120, 66, 39}, gib(9)));
  dag.components.push_back(component(dag, "c", {"b"}, {80, 52, 38}, gib(16)));
  end_with(dag, "c");
  return dag;
}

// Application 3: deblur -> (is_low: sr) -> background -> segmentation -> classification.
inline Dag one_with_a_branch() {
  Dag dag = dag_of_nothing();
  dag.components.push_back(component(dag, "deblur", {"input"}));
  dag.components[0].outputs.push_back({.name = "is_low", .type = ElementType::kU8, .shape = {1}});
  dag.components.push_back(component(dag, "sr", {"deblur"}));
  dag.components[1].when = {.value = {0, 1}, .is = true, .part = 0.5};
  Component background = component(dag, "background", {"sr"});
  background.inputs[0].sources.push_back({0, 0});
  dag.components.push_back(background);
  dag.components.push_back(component(dag, "segmentation", {"background"}));
  dag.components.push_back(component(dag, "classification", {"segmentation"}));
  end_with(dag, "classification");
  return dag;
}

// first -> (left | right) -> last.
inline Dag one_side_by_side() {
  Dag dag = dag_of_nothing();
  dag.components.push_back(component(dag, "first", {"input"}));
  dag.components.push_back(component(dag, "left", {"first"}, {30, 16, 10}));
  dag.components.push_back(component(dag, "right", {"first"}, {20, 12, 8}));
  dag.components.push_back(component(dag, "last", {"left", "right"}));
  end_with(dag, "last");
  return dag;
}

}  // namespace fairlead
