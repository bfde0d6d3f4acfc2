// Tensors print as NumPy prints arrays: tests/oracle/prints.txt holds arrays and NumPy's text.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "stet/stet.h"

using namespace stet;

namespace {

struct Case {
  std::string header, text;
  Tensor array;
  PrintOptions options;
};

/// What stands between "with" and ":" at the begin of a header, which is taken off.
PrintOptions taken_options(std::string& header) {
  PrintOptions out;
  if (!header.starts_with("with ")) return out;
  std::istringstream words(header);
  std::string word;
  words >> word;
  while (words >> word && word != ":") {
    const std::size_t equal = word.find('=');
    const std::string name = word.substr(0, equal);
    const int value = std::stoi(word.substr(equal + 1));
    if (name == "precision") out.precision = value;
    if (name == "threshold") out.threshold = value;
    if (name == "edge_items") out.edge_items = value;
    if (name == "line_width") out.line_width = value;
    if (name == "suppress") out.suppress = value != 0;
  }
  header = header.substr(header.find(" : ") + 3);
  return out;
}

Tensor parsed(const std::string& header) {
  static const std::map<std::string, DType> types{{"f64", f64}, {"f32", f32}, {"f16", f16}, {"i64", i64},
                                                  {"i32", i32}, {"i8", i8},   {"u8", u8},   {"bool", bool_}};
  std::istringstream words(header);
  std::string type, sizes, word;
  words >> type >> sizes;
  std::vector<std::int64_t> shape;
  if (sizes != "scalar") {
    std::istringstream parts(sizes);
    while (std::getline(parts, word, 'x')) shape.push_back(std::stoll(word));
  }
  std::vector<std::string> elements;
  while (words >> word) elements.push_back(word);
  auto filled = [&](auto read) {
    std::vector<decltype(read(word))> values;
    if (elements.size() == 2 && elements[0] == "step")
      for (std::int64_t i = 0, count = Shape(shape).element_count().value(); i < count; ++i)
        values.push_back(read(elements[1]) * static_cast<decltype(read(word))>(i));
    else
      for (const std::string& element : elements) values.push_back(read(element));
    return cast(tensor(values, Shape(shape)), types.at(type));
  };
  if (type[0] == 'f') return filled([](const std::string& w) { return std::strtod(w.c_str(), nullptr); });
  return filled([](const std::string& w) { return static_cast<std::int64_t>(std::stoll(w)); });
}

std::vector<Case> stored_cases() {
  std::ifstream file("tests/oracle/prints.txt");
  std::vector<Case> out;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    Case one{.header = line, .text = {}, .array = {}, .options = taken_options(line)};
    one.array = parsed(line);
    while (std::getline(file, line) && line != "----") one.text += (one.text.empty() ? "" : "\n") + line;
    out.push_back(std::move(one));
  }
  return out;
}

TEST(Print, is_as_numpy) {
  std::vector<Case> cases = stored_cases();
  EXPECT_GT(cases.size(), 230u);
  for (const Case& one : cases) EXPECT_EQ(to_string(one.array, one.options), one.text) << one.header.substr(0, 80);
}

TEST(Print, of_a_view_is_that_of_its_copy) {
  Tensor x = cast(arange(12), f32) / 8;
  Tensor view = transpose(reshape(x, {3, 4}));
  EXPECT_EQ(to_string(view), to_string(view.contiguous()));
}

TEST(Print, bf16_has_the_digits_that_read_back) {
  EXPECT_EQ(to_string(cast(tensor({0.1f, 3.f}), bf16)), "[0.1 3. ]");
  EXPECT_EQ(to_string(cast(tensor(3.14f), bf16)), "3.14");
}

TEST(Print, of_a_tensor_in_a_trace_is_a_placeholder) {
  std::string seen;
  Function f = function("f(x)", [&](Tensor x) {
    if (tracing()) seen = to_string(x);  // not where the call is verified eagerly
    return x;
  });
  f(ones({2}));
  EXPECT_EQ(seen, "<f32[x_0] traced in 'f'>");
}

}  // namespace
