// summary(): the layers of a model as a table, as Keras prints it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/model.h"
#include "stet/keras/training.h"

namespace stet::keras {
namespace {

using Row = std::array<std::string, 3>;

std::string with_commas(std::int64_t count) {
  std::string digits = text(count);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::string memory_text(double bytes) {
  const char* units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  char out[64];
  std::snprintf(out, sizeof out, "%.2f %s", bytes, units[unit]);
  return out;
}

struct Count {
  std::int64_t elements = 0, bytes = 0;
  void add(const Variable& variable) {
    const std::int64_t more = variable.shape().element_count().value();
    elements += more;
    bytes += more * size_of(variable.dtype());
  }
  std::string line(const char* what) const {
    return text(" ", what, ": ", with_commas(elements), " (", memory_text(static_cast<double>(bytes)), ")\n");
  }
};

/// Sizes of tuples as Python writes them; the unknown ones are None.
std::string output_text(CustomLayer& layer) {
  std::lock_guard lock(layer.state().guard);
  if (!layer.state().output) return "?";
  const std::vector<std::string>& sizes = *layer.state().output;
  return text("(", joined(sizes, ", "), sizes.size() == 1 ? "," : "", ")");
}

std::size_t columns(const std::string& cell) {
  return static_cast<std::size_t>(
      std::count_if(cell.begin(), cell.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// Widths are those of Keras on a terminal of 80 columns; a longer cell widens its column.
std::string table(const std::vector<Row>& rows) {
  std::array<std::size_t, 3> width{31, 22, 13};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < 3; ++i) width[i] = std::max(width[i], columns(row[i]));
  auto rule = [&](const char* left, const char* line, const char* between, const char* right) {
    std::string out = left;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t n = 0; n < width[i] + 2; ++n) out += line;
      out += i < 2 ? between : right;
    }
    return out + "\n";
  };
  auto cells = [&](const Row& row, const char* edge) {
    std::string out = edge;
    for (std::size_t i = 0; i < 3; ++i) {
      std::string space(width[i] - columns(row[i]), ' ');
      out += i < 2 ? text(" ", row[i], space, " ", edge) : text(" ", space, row[i], " ", edge);
    }
    return out + "\n";
  };
  std::string out = rule("┏", "━", "┳", "┓") + cells(rows[0], "┃") + rule("┡", "━", "╇", "┩");
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (i > 1) out += rule("├", "─", "┼", "┤");
    out += cells(rows[i], "│");
  }
  return out + rule("└", "─", "┴", "┘");
}

}  // namespace

std::string Model::summary_text(Where where) const {
  CustomModel& model = model_body("summary", where);
  if (!built())
    throw UserError(error_text(text("summary: ", model.description(), " is not built, its shapes are not known"), where,
                               "call it on a batch, fit it, or start it with keras::Input({…})"));
  std::vector<Row> rows{{"Layer (type)", "Output Shape", "Param #"}};
  for (const Layer& layer : layers(where)) {
    auto& body = static_cast<CustomLayer&>(*layer.body());
    rows.push_back({text(layer.name(), " (", body.class_name(), ")"), output_text(body),
                    layer.built() ? with_commas(layer.count_params()) : "0 (unbuilt)"});
  }
  Count trainable, fixed, optimizer, total;
  for (const Weight& weight : weights()) (weight.trainable ? trainable : fixed).add(weight.variable);
  {
    std::lock_guard lock(model.training().guard);
    if (model.training().options.optimizer.defined()) {
      std::vector<Variable> kept = model.training().options.optimizer.variables();
      if (kept.size() > 2 || (!kept.empty() && kept[0].read().item<std::int64_t>() > 0))  // it has made a step
        for (const Variable& variable : kept) optimizer.add(variable);
    }
  }
  total.elements = trainable.elements + fixed.elements + optimizer.elements;
  total.bytes = trainable.bytes + fixed.bytes + optimizer.bytes;
  return text("Model: \"", model.name(), "\"\n", table(rows), total.line("Total params"),
              trainable.line("Trainable params"), fixed.line("Non-trainable params"),
              optimizer.elements > 0 ? optimizer.line("Optimizer params") : std::string());
}

void Model::summary(Where where) const { std::cout << summary_text(where) << std::flush; }

}  // namespace stet::keras
