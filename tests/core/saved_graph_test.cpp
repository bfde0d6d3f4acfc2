// What files of exported functions are written in: every row, every elementwise body, sizes of all forms.
#include "stet/core/saved_graph.h"

#include <gtest/gtest.h>

#include <set>

#include "stet/base/dim_form.h"
#include "stet/base/dim_inside.h"
#include "stet/base/inside.h"
#include "stet/core/saved_rows.h"
#include "stet/ops/samples.h"
#include "stet/ops/table.h"

namespace stet {
namespace {

const files::Reading reading{"load_function", "memory", {}};

/// The graph, written and read again.
Graph again(const Graph& graph) {
  GraphWriter writer;
  writer.function = "f";
  writer.write(graph);
  SavedWriter names;
  writer.ops.write(names);
  writer.sources.write(names);
  SavedReader list(std::as_bytes(std::span(names.bytes)), reading, 0);
  auto strings = [&] {
    std::vector<std::string> out;
    for (std::size_t i = list.count(4, "names"); i > 0; --i) out.push_back(list.text("name"));
    return out;
  };
  const std::vector<std::string> ops = strings(), sources = strings();
  SavedReader from(std::as_bytes(std::span(writer.to.bytes)), reading, 0);
  for (int i = 0; graph.scope && i < graph.scope->symbol_count(); ++i)
    from.symbols.push_back(graph.scope->symbol_at(i));
  GraphReader reader{from, ops, sources, graph.scope, {}, "test", {1000, 8}};
  Graph out = reader.read();
  EXPECT_TRUE(from.at_end());
  return out;
}

/// As text, without what follows from shapes and is not written: the axes of maps.
std::string shown(const Graph& graph) {
  Graph plain = graph;
  for (Node& node : plain.nodes)
    if (node.op == &map_row) {
      MapAttributes map{node.attributes.as<MapAttributes>().body, {}};
      node.attributes = Attributes(view_of(map));
    }
  return plain.str();
}

TEST(SavedRows, AreAllRowsThatNodesHave) {
  std::set<std::string> names;
  for (const SavedRow& saved : saved_rows()) EXPECT_TRUE(names.insert(saved.row->name).second) << saved.row->name;
  for (const OpDef* row : all_rows()) {
    if (row->kind == Kind::map) continue;  // nodes have their bodies
    EXPECT_TRUE(names.contains(row->name)) << row->name << " cannot be exported: add it to ops/saved_rows.cpp";
  }
}

TEST(SavedRows, AttributesComeBack) {
  for (const SavedRow& saved : saved_rows()) {
    SCOPED_TRACE(saved.row->name);
    SampleList list;
    ASSERT_TRUE(saved.row->samples);
    saved.row->samples(list);
    ASSERT_FALSE(list.samples.empty());
    for (const Sample& sample : list.samples) {
      const AttributeType* type = sample.attributes.view().type;
      ASSERT_EQ(type, saved.attributes ? saved.attributes->type : nullptr);
      EXPECT_TRUE(saved.any_number || sample.inputs.size() == saved.row->operands.size());
      if (!type) continue;
      SavedWriter to;
      saved.attributes->write(to, sample.attributes.view().data);
      SavedReader from(std::as_bytes(std::span(to.bytes)), reading, 0);
      EXPECT_TRUE(saved.attributes->read(from) == sample.attributes) << sample.attributes.str();
      EXPECT_TRUE(from.at_end());
    }
  }
}

TEST(SavedGraph, EveryElementwiseBodyOfEveryType) {
  int bodies = 0;
  for (std::span<const OpDef> rows : {elementwise_rows(), cast_rows()})
    for (const OpDef& row : rows)
      for (int t = 0; t < dtype_count; ++t) {
        Graph graph;
        graph.scope = std::make_shared<RecordingScope>();
        Dim n = graph.scope->symbol("n", 5);
        std::vector<ValueId> inputs;
        for (int i = 0; i < row.arity; ++i)
          inputs.push_back(graph.add_input(
              {row.dtypes.result == DTypeRule::selected && i == 0 ? DType::bool_ : static_cast<DType>(t), {n, 3}}));
        try {
          graph.results = {graph.add_call(row, inputs)};
        } catch (const Problem&) {
          continue;  // it does not take the type
        }
        ++bodies;
        const Graph copy = again(graph);
        EXPECT_EQ(shown(copy), shown(graph));
        // Expressions are hash-consed: the very same one, stated derivatives included.
        EXPECT_TRUE(copy.nodes.back().attributes.as<MapAttributes>().body ==
                    graph.nodes.back().attributes.as<MapAttributes>().body)
            << row.name;
      }
  EXPECT_GT(bodies, 500);
}

TEST(SavedGraph, SizesOfAllForms) {
  RecordingScope scope;
  const Dim a = scope.symbol("a", 5), b = scope.symbol("b", 7), c = scope.symbol("c", 9);
  const std::vector<Dim> symbols = {a, b, c};
  const std::vector<Dim> all = {0,
                                -7,
                                INT64_MAX,
                                a,
                                a + b - 3,
                                a * b * 4 - c * c + 1,
                                (a + 3) / 4,
                                (a * b) % 8,
                                a / b,
                                c % (a + 1),
                                larger_of(a - b, 0),
                                smaller_of(a, b) * 2,
                                larger_of(a / 2, (b + 1) / 3) + (c - 1) % 5,
                                ((a + 1) / 2 + (b - a) % 3) / (c + 1),
                                (a + b) * (a - b) * (a + c)};
  for (const Dim& dim : all) {
    const Dim made = dim_of_form(form_of(dim), symbols);
    EXPECT_TRUE(identical(made, dim)) << dim << " is " << made;
    EXPECT_EQ(form_of(made), form_of(dim));
    SavedWriter to;
    to.size(dim);
    SavedReader from(std::as_bytes(std::span(to.bytes)), reading, 0);
    from.symbols = symbols;
    EXPECT_TRUE(identical(from.size("size"), dim));
  }
}

TEST(SavedGraph, FormsThatAreNone) {
  RecordingScope scope;
  const std::vector<Dim> symbols = {scope.symbol("a", 5)};
  auto error = [&](std::vector<DimStep> steps) {
    try {
      dim_of_form(steps, symbols);
    } catch (const Problem& problem) {
      return problem.text();
    }
    return std::string("no error");
  };
  EXPECT_EQ(error({}), "a size is made of several");
  EXPECT_EQ(error({{DimStep::add, 0}}), "a size is made of nothing");
  EXPECT_EQ(error({{DimStep::constant, 1}, {DimStep::constant, 2}}), "a size is made of several");
  EXPECT_EQ(error({{DimStep::symbol, 1}}), "there is no size 1");
  EXPECT_EQ(error({{DimStep::symbol, -1}}), "there is no size -1");
  EXPECT_EQ(error(std::vector<DimStep>(100, {DimStep::constant, 1})), "a size is too deep");
  EXPECT_NE(error({{DimStep::symbol, 0}, {DimStep::constant, 0}, {DimStep::floor, 0}}), "no error");
  EXPECT_NE(error({{DimStep::constant, INT64_MAX}, {DimStep::constant, 2}, {DimStep::multiply, 0}}), "no error");
  // Squared again and again: more terms than any size needs.
  std::vector<DimStep> steps = {{DimStep::symbol, 0}, {DimStep::constant, 1}, {DimStep::add, 0}};
  for (int i = 0; i < 9; ++i) {
    std::vector<DimStep> twice = steps;
    twice.insert(twice.end(), steps.begin(), steps.end());
    twice.push_back({DimStep::multiply, 0});
    steps = std::move(twice);
  }
  EXPECT_NE(error(steps), "no error");
}

}  // namespace
}  // namespace stet
