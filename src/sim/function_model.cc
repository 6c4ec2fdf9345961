#include "sim/function_model.h"

namespace fairlead::sim {
namespace {

FunctionModel row(const char* name, double warm_s, double cold_s) {
  FunctionModel function;
  function.name = name;
  function.warm = from_seconds(warm_s);
  function.cold_start = from_seconds(cold_s - warm_s);
  return function;
}

}  // namespace

const std::vector<FunctionModel>& table1() {
  static const std::vector<FunctionModel> rows = {
      row("imagenet", 2.253, 11.286), row("roberta", 0.268, 15.481),   row("ffmpeg", 4.483, 4.612),
      row("fft", 0.897, 3.322),       row("isoneural", 0.026, 9.963),  row("lud", 2.050, 2.359),
      row("needle", 1.979, 2.177),    row("pathfinder", 1.472, 1.797),
  };
  return rows;
}

std::vector<FunctionModel> copies_of_table1(std::size_t count) {
  std::vector<FunctionModel> functions;
  for (std::size_t i = 0; i < count; ++i) {
    functions.push_back(table1()[i % table1().size()]);
    if (i >= table1().size()) functions.back().name += "-" + std::to_string(i / table1().size() + 1);
  }
  return functions;
}

}  // namespace fairlead::sim
