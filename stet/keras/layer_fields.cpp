#include "stet/keras/layer_fields.h"

#include <charconv>
#include <cmath>
#include <string>

#include "stet/base/text.h"

namespace stet::keras {
void window_field(Fields& f, const char* name, WindowSizes& value, int axes, const WindowSizes& otherwise) {
  if (f.reading()) return f(name, value);
  WindowSizes written = value.given() ? value : otherwise;
  if (written.same()) written = std::vector<std::int64_t>(static_cast<std::size_t>(axes), written.numbers()[0]);
  f(name, written);
}

void axes_field(Fields& f, const char* name, Axes& value) {
  if (!f.reading()) {
    if (value.axes.size() == 1) return f(name, value.axes[0]);
    return f(name, value.axes);
  }
  const Json* member = f.take(name);
  if (!member) return;
  if (list_of(*member)) return f(name, value.axes);
  std::int64_t one = 0;
  f(name, one);
  value = one;
}

namespace {

/// A number stands for a list of one.
template <class Number>
void list_or_null(Fields& f, const char* name, std::vector<Number>& value) {
  if (!f.reading()) return value.empty() ? f.put(name, nullptr) : f(name, value);
  const Json* member = f.take(name);
  if (!member) return;
  value.clear();
  if (member->is_null()) return;
  if (list_of(*member)) return f(name, value);
  Number one{};
  f(name, one);
  value.push_back(one);
}

}  // namespace

void list_or_null_field(Fields& f, const char* name, std::vector<int>& value) { list_or_null(f, name, value); }
void list_or_null_field(Fields& f, const char* name, std::vector<std::int64_t>& value) { list_or_null(f, name, value); }

void shape_field(Fields& f, const char* name, ShapeSpec& value) {
  if (!f.reading()) {
    if (value.dims.empty()) return f.put(name, nullptr);
    Json::List sizes;
    for (const DimSpec& dim : value.dims)
      if (dim.size)
        sizes.emplace_back(*dim.size);
      else
        sizes.emplace_back();
    return f.put(name, std::move(sizes));
  }
  const Json* member = f.take(name);
  if (!member) return;
  value.dims.clear();
  if (member->is_null()) return;
  const Json::List* sizes = list_of(*member);
  if (!sizes) f.wrong(name, *member, "a list of sizes");
  for (const Json& size : *sizes) {
    if (size.is_null())
      value.dims.emplace_back(dyn);
    else if (const std::int64_t* known = size.if_integer())
      value.dims.emplace_back(*known);
    else
      f.wrong(name, size, "a size, or null for one that varies,");
  }
}

namespace {

/// The f64 with the digits that are enough to tell an f32 from all others: 0.1, not 0.10000000149.
double with_few_digits(float value) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  double out = value;
  if (std::isfinite(value)) std::from_chars(digits, end, out);
  return out;
}

Json nested(const std::vector<float>& values, const std::vector<std::int64_t>& sizes, std::size_t axis,
            std::size_t& at) {
  if (axis == sizes.size()) return with_few_digits(values[at++]);
  Json::List list;
  for (std::int64_t i = 0; i < sizes[axis]; ++i) list.push_back(nested(values, sizes, axis + 1, at));
  return list;
}

}  // namespace

void tensor_field(Fields& f, const char* name, Tensor& value) {
  if (!f.reading()) {
    if (!value.defined()) return f.put(name, nullptr);
    std::size_t at = 0;
    return f.put(name, nested(cast(value, DType::f32).to_vector<float>(), value.shape().sizes(), 0, at));
  }
  const Json* member = f.take(name);
  if (member && member->is_null())
    value = {};
  else
    f(name, value);
}

void data_format_field(Fields& f, std::string& value) {
  if (!f.reading() && value.empty()) value = "channels_last";
  f("data_format", value);
}

namespace {

RNNCell as_cell(Fields& f, const Layer& layer, const std::string& what) {
  if (!dynamic_cast<Cell*>(layer.body().get()))
    f.place().fail(text(what, " is ", layer.body()->description(), ", which is no cell"),
                   "a cell is an LSTMCell, GRUCell, SimpleRNNCell or StackedRNNCells");
  return RNNCell::from_body(layer.body());
}

}  // namespace

void cell_field(Fields& f, const char* name, RNNCell& value) {
  Layer layer = value;
  f(name, layer);
  if (f.reading() && layer.defined()) value = as_cell(f, layer, text("its '", name, "'"));
}

void cells_field(Fields& f, const char* name, std::vector<RNNCell>& value) {
  std::vector<Layer> layers(value.begin(), value.end());
  f(name, layers);
  if (!f.reading()) return;
  value.clear();
  for (std::size_t i = 0; i < layers.size(); ++i)
    value.push_back(as_cell(f, layers[i], text("its ", name, "[", i, "]")));
}

void integer_dtype_field(Fields& f, DTypePolicy& value, const std::string& output_mode) {
  if (output_mode != "int") return f("dtype", value);
  if (!f.reading()) return f.put("dtype", "int64");
  const Json* member = f.take("dtype");
  if (!member || member->is_null()) return;
  const Json* config = member->find("config");
  const Json* name = config ? config->find("name") : member;
  if (!name || !(*name == Json("int64")))
    f.place().fail(text("its 'dtype' is ", files::to_text(name ? *name : *member),
                        " with an output_mode of \"int\"; known is \"int64\""),
                   "save the model with that type; cast() what it gives where another is wanted");
}

void salt_field(Fields& f, std::optional<Salt>& value) {
  std::vector<std::int64_t> key;
  if (value) key = {static_cast<std::int64_t>(value->key[0]), static_cast<std::int64_t>(value->key[1])};
  list_or_null_field(f, "salt", key);
  if (!f.reading() || key.empty()) return;
  if (key.size() > 2) f.wrong("salt", *f.take("salt"), "an integer or two");
  value = Salt(static_cast<std::uint64_t>(key[0]), static_cast<std::uint64_t>(key.back()));
}

}  // namespace stet::keras
