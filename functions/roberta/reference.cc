#include "roberta/reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fairlead::sample::roberta {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

Row project(const Linear& linear, const Row& in) {
  Row out(linear.bias.begin(), linear.bias.end());
  for (std::size_t i = 0; i < in.size(); ++i) {
    for (std::size_t j = 0; j < out.size(); ++j) out[j] += in[i] * linear.weights[i * out.size() + j];
  }
  return out;
}

Rows project(const Linear& linear, const Rows& in) {
  Rows out;
  for (const Row& row : in) out.push_back(project(linear, row));
  return out;
}

void add_and_normalise(Rows& in, const Rows& added, const Norm& norm) {
  for (std::size_t r = 0; r < in.size(); ++r) {
    Row& row = in[r];
    double mean = 0;
    for (std::size_t i = 0; i < row.size(); ++i) mean += (row[i] += added[r][i]) / kWidth;
    double variance = 0;
    for (const double value : row) variance += (value - mean) * (value - mean) / kWidth;
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = (row[i] - mean) / std::sqrt(variance + 1e-5) * norm.gain[i] + norm.offset[i];
    }
  }
}

// What one head sees from one token.
void attend_head(const Row& query, const Rows& keys, const Rows& values, std::size_t head, Row& out) {
  const std::size_t first = head * kHeadWidth;
  std::vector<double> weights;
  double total = 0;
  for (const Row& key : keys) {
    double score = 0;
    for (std::size_t d = first; d < first + kHeadWidth; ++d) score += query[d] * key[d];
    weights.push_back(std::exp(score / std::sqrt(kHeadWidth)));
    total += weights.back();
  }
  for (std::size_t d = first; d < first + kHeadWidth; ++d) {
    for (std::size_t token = 0; token < values.size(); ++token) out[d] += weights[token] / total * values[token][d];
  }
}

Rows attend(const EncoderLayer& layer, const Rows& in) {
  const Rows queries = project(layer.query, in);
  const Rows keys = project(layer.key, in);
  const Rows values = project(layer.value, in);
  Rows out(in.size(), Row(kWidth));
  for (std::size_t token = 0; token < in.size(); ++token) {
    for (std::size_t head = 0; head < kHeads; ++head) attend_head(queries[token], keys, values, head, out[token]);
  }
  return project(layer.projection, out);
}

Rows feed_forward(const EncoderLayer& layer, const Rows& in) {
  Rows inner = project(layer.expand, in);
  for (Row& row : inner) {
    for (double& x : row) {
      x = 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    }
  }
  return project(layer.contract, inner);
}

}  // namespace

std::vector<float> encode(const Model& model, const std::vector<int>& tokens) {
  Rows rows;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    Row row;
    for (std::size_t d = 0; d < kWidth; ++d) {
      row.push_back(model.token_embedding[static_cast<std::size_t>(tokens[t]) * kWidth + d] +
                    model.position_embedding[t * kWidth + d]);
    }
    rows.push_back(std::move(row));
  }
  for (const EncoderLayer& layer : model.layers) {
    add_and_normalise(rows, attend(layer, rows), layer.attention_norm);
    add_and_normalise(rows, feed_forward(layer, rows), layer.feed_forward_norm);
  }
  std::vector<float> out;
  for (const Row& row : rows) out.insert(out.end(), row.begin(), row.end());
  const Row labels = project(model.labels, rows.front());
  out.insert(out.end(), labels.begin(), labels.end());
  return out;
}

}  // namespace fairlead::sample::roberta
