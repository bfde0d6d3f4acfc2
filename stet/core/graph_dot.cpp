// A graph in the language of Graphviz: boxes for ops, with the user's line, and clusters for the sides of branches.
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/core/function_state.h"

namespace stet {
namespace {

std::string quoted(const std::string& given) {
  std::string out = "\"";
  for (char c : given) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

class Writer {
 public:
  std::string out;

  /// `id` begins the names of all nodes of the graph.
  void graph(const Graph& graph, const std::string& id, const std::string& indent) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) node(graph, i, id, indent);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      for (ValueId input : graph.nodes[i].inputs) edge(text(id, input), text(id, i), indent);
    if (graph.raises) {
      out += text(indent, id, "raises [shape=octagon,label=", quoted("raises " + graph.raised_text), "];\n");
      return;
    }
    for (std::size_t r = 0; r < graph.results.size(); ++r) {
      out += text(indent, id, "result", r, " [shape=ellipse,label=", quoted(text("result ", r)), "];\n");
      edge(text(id, graph.results[r]), text(id, "result", r), indent);
    }
  }

 private:
  void edge(const std::string& from, const std::string& to, const std::string& indent) {
    out += text(indent, from, " -> ", to, ";\n");
  }

  void node(const Graph& graph, std::size_t number, const std::string& id, const std::string& indent) {
    const Node& node = graph.nodes[number];
    const bool plain = node.op == &input_row || node.op == &constant_row;
    std::string label = label_of(node);
    for (const ValueType& type : node.results) label += "\n" + type.str();
    if (node.where.known()) label += at_line(node.where, "\n");
    out += text(indent, id, number, " [shape=", plain ? "ellipse" : "box", ",label=", quoted(label), "];\n");
    static constexpr const char* sides[] = {"yes", "no"};
    static constexpr const char* parts[] = {"body", "condition"};
    std::vector<GraphPointer> children = stet::children(node);
    for (std::size_t i = 0; i < children.size(); ++i) {
      const char* name = (node.op->kind == Kind::branch ? sides : parts)[i];
      child(*children[i], name, text(id, number, "_", name, "_"), text(id, number), indent);
    }
  }

  void child(const Graph& graph, const char* side, const std::string& id, const std::string& branch,
             const std::string& indent) {
    out += text(indent, "subgraph cluster_", id, " {\n", indent, "  label=", side, ";\n");
    this->graph(graph, id, indent + "  ");
    out += text(indent, "}\n");
    const std::string from = graph.raises ? id + "raises" : graph.results.empty() ? "" : id + "result0";
    if (!from.empty()) out += text(indent, from, " -> ", branch, " [style=dashed];\n");
  }
};

}  // namespace

std::string dot_of(const Graph& graph, const std::string& name) {
  Writer writer;
  writer.out = text("digraph ", quoted(name), " {\n");
  writer.graph(graph, "n", "  ");
  return writer.out + "}\n";
}

}  // namespace stet
