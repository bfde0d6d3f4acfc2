// Graphs of traces as bytes of a file, and back. Not a public header.
//
// What is read is only looked at here: that every op exists, has as many operands and attributes as it takes, and uses
// what came before it. Types are re-derived where the graph is replayed (exported_run.h), before it is compiled.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "stet/core/saved_fields.h"
#include "stet/ir/graph.h"

namespace stet {

/// Names that nodes refer to by number.
class SavedNames {
 public:
  std::size_t number(const std::string& name);
  void write(SavedWriter& to) const;

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

struct GraphWriter {
  std::string function;  // for errors
  Where where;
  SavedWriter to;
  SavedNames ops, sources;
  std::unordered_map<std::uint64_t, std::size_t> variables;  // by the number that the process has for it
  /// UserError for what no file can hold, with the user's line.
  void write(const Graph& graph, int depth = 0);

 private:
  void write_node(const Node& node, const Graph& graph, int depth);
  void write_attributes(const Node& node, int depth);
  void write_place(Where place);
};

struct GraphLimits {
  std::size_t nodes = 0;  // that may still come
  int depth = 0;          // of graphs inside of graphs
};

struct GraphReader {
  SavedReader& from;
  std::vector<std::string> ops, sources;
  std::shared_ptr<SymbolScope> scope;    // its symbols are those of `from`
  std::vector<std::uint64_t> variables;  // by number in the file, the process's number
  std::string writer;                    // the version that wrote the file
  GraphLimits limits;
  Graph read(int depth = 0);

 private:
  Node read_node(const Graph& graph, int depth);
  void read_row(Node& node, const std::string& op, const Graph& graph, int depth);
  void read_alias(Node& node);
  void read_map(Node& node, const Graph& graph);
  void read_branch(Node& node, const Graph& graph, int depth);
  void read_loop(Node& node, const Graph& graph, int depth);
  void read_custom_gradient(Node& node, int depth);
  void read_effect(Node& node, const Graph& graph);
  Expr read_expr(const Node& node, const Graph& graph);
  Where read_place();
  Caller read_caller();
  GraphPointer read_child(int depth);
  void ensure(bool condition, const Node& node, const char* rule) const;
};

/// A relation of sizes and what is said where it does not hold.
void write_check(SavedWriter& to, const SizeCheck& check);
SizeCheck read_check(SavedReader& from);

/// A word of a file that stays as long as the process: for lines, labels and names of functions, which nodes point to.
/// Only short words of ordinary characters, and not more of them than any program has: "" for others.
const char* kept_word(const std::string& word);

}  // namespace stet
