// summary(): the layers of a model as a table, as Keras prints it.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>

#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/keras/functional_body.h"
#include "stet/keras/layer_state.h"
#include "stet/keras/model.h"
#include "stet/keras/training.h"

namespace stet::keras {
namespace {

/// Cells; one may have several lines.
using Row = std::vector<std::string>;

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

/// The line of a cell with this number; empty beyond the last.
std::string line_of(const std::string& cell, std::size_t number) {
  std::size_t begin = 0;
  for (; number > 0; --number) {
    begin = cell.find('\n', begin);
    if (begin == std::string::npos) return {};
    ++begin;
  }
  return cell.substr(begin, cell.find('\n', begin) - begin);
}
std::size_t line_count(const std::string& cell) {
  return static_cast<std::size_t>(std::count(cell.begin(), cell.end(), '\n')) + 1;
}

/// Widths are those of Keras on a terminal of 80 columns; a longer cell widens its column. The third one holds numbers.
std::string table(const std::vector<Row>& rows) {
  const std::size_t count = rows[0].size();
  std::vector<std::size_t> width =
      count == 3 ? std::vector<std::size_t>{31, 22, 13} : std::vector<std::size_t>{19, 17, 10, 17};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t line = 0; line < line_count(row[i]); ++line)
        width[i] = std::max(width[i], columns(line_of(row[i], line)));
  auto rule = [&](const char* left, const char* line, const char* between, const char* right) {
    std::string out = left;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t n = 0; n < width[i] + 2; ++n) out += line;
      out += i + 1 < count ? between : right;
    }
    return out + "\n";
  };
  auto cells = [&](const Row& row, const char* edge) {
    std::size_t lines = 1;
    for (const std::string& cell : row) lines = std::max(lines, line_count(cell));
    std::string out;
    for (std::size_t line = 0; line < lines; ++line) {
      out += edge;
      for (std::size_t i = 0; i < count; ++i) {
        const std::string part = line_of(row[i], line), space(width[i] - columns(part), ' ');
        out += i == 2 ? text(" ", space, part, " ", edge) : text(" ", part, space, " ", edge);
      }
      out += "\n";
    }
    return out;
  };
  std::string out = rule("┏", "━", "┳", "┓") + cells(rows[0], "┃") + rule("┡", "━", "╇", "┩");
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (i > 1) out += rule("├", "─", "┼", "┤");
    out += cells(rows[i], "│");
  }
  return out + rule("└", "─", "┴", "┘");
}

Row row_of(const Layer& layer) {
  auto& body = static_cast<CustomLayer&>(*layer.body());
  return {text(layer.name(), " (", body.class_name(), ")"), output_text(body),
          layer.built() ? with_commas(layer.count_params()) : "0 (unbuilt)"};
}

/// The layers of a functional model with their inputs: "twin[1][0]" is the first result of twin's second call. Of a
/// chain, whose layers each get what the one before gives, that is left out.
std::vector<Row> rows_of(const FunctionalBody& model) {
  std::map<const inside::Body*, int> called;
  std::map<const SymbolicCall*, int> number;
  std::map<const inside::Body*, std::string> connected;
  std::vector<Layer> order;
  bool chain = model.inputs().size() == 1;
  const SymbolicCall* before = nullptr;
  for (const std::shared_ptr<const SymbolicCall>& call : model.calls()) {
    const inside::Body* layer = call->layer.body().get();
    number[call.get()] = called[layer]++;
    if (number[call.get()] == 0) order.push_back(call->layer);
    std::string& sources = connected[layer];
    for (const KerasTensor& input : call->inputs) {
      if (!number.contains(input.call().get())) continue;  // what lies before an input is not part of the model
      sources += text(sources.empty() ? "" : ",\n", input.call()->layer.name(), "[", number[input.call().get()], "][",
                      input.number(), "]");
      chain = chain && input.call().get() == before && call->inputs.size() == 1 && number[call.get()] == 0;
    }
    before = call.get();
  }
  std::vector<Row> rows{{"Layer (type)", "Output Shape", "Param #"}};
  if (!chain) rows[0].push_back("Connected to");
  for (const Layer& layer : order) {
    rows.push_back(row_of(layer));
    if (chain) continue;
    constexpr std::size_t narrow = 19;  // as Keras leaves for names here
    std::string& shown = rows.back()[0];
    if (shown.size() > narrow) shown.replace(layer.name().size(), 1, "\n");
    const std::string& sources = connected[layer.body().get()];
    rows.back().push_back(sources.empty() ? "-" : sources);
  }
  return rows;
}

}  // namespace

std::string Model::summary_text(Where where) const {
  CustomModel& model = model_body("summary", where);
  if (!built())
    throw UserError(error_text(text("summary: ", model.description(), " is not built, its shapes are not known"), where,
                               "call it on a batch, fit it, or start it with keras::Input({…})"));
  std::vector<Row> rows{{"Layer (type)", "Output Shape", "Param #"}};
  if (const auto* functional = dynamic_cast<const FunctionalBody*>(&model))
    rows = rows_of(*functional);
  else
    for (const Layer& layer : layers(where)) rows.push_back(row_of(layer));
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
