// The `stet` command: looks into the op table and the compiler.
//
//   stet ops                         the table of ops, as Markdown
//   stet ops functions               the documented functions with examples, as Markdown
//   stet ops names                   their names in other libraries, as Markdown
//   stet dump <op> [dtype] [stage…]  an elementwise op on its way to machine code; stages: row expr gradient graph
//                                    passes kernel llvm assembly (all without one)
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"
#include "stet/compiler/pipeline.h"
#include "stet/cpu/kernel_step.h"
#include "stet/ir/expand_math.h"
#include "stet/ir/graph.h"
#include "stet/ops/table.h"
#include "stet/tools/functions.h"

namespace stet {
namespace {

int usage() {
  std::cerr << "usage: stet ops [functions|names]\n"
               "       stet dump <elementwise op> [dtype] [row expr gradient graph passes kernel llvm assembly]\n";
  return 2;
}

/// A row has a gradient if its result can be floating: comparisons and logic have none.
bool has_gradient(const OpDef& row) {
  bool floating =
      row.kind != Kind::map || (row.dtypes.result != DTypeRule::compared && row.dtypes.result != DTypeRule::logical);
  return row.gradient && floating;
}

/// As a cell of a table: a bar would end it.
std::string cell(std::string words) {
  for (std::size_t at = 0; (at = words.find('|', at)) != std::string::npos; at += 2) words.insert(at, "\\");
  return words;
}

void print_ops() {
  std::cout << "| op | kind | what it gives | gradient |\n|---|---|---|---|\n";
  std::string last;
  for (const OpDef* row : all_rows()) {
    if (last == row->name) continue;  // cast has a row per type
    last = row->name;
    std::cout << "| `" << row->name << "` | " << name(row->kind) << " | " << cell(row->summary) << " | "
              << (has_gradient(*row) ? "yes" : "") << " |\n";
  }
}

class Dump {
 public:
  Dump(const OpDef& row, DType dtype, std::vector<std::string> stages)
      : row_(row), dtype_(dtype), stages_(std::move(stages)) {}

  void run() {
    std::vector<DType> types(row_.arity, dtype_);
    if (row_.dtypes.result == DTypeRule::selected) types[0] = DType::bool_;
    MapInstance instance = instantiate(row_, types);
    if (wants("row"))
      std::cout << row_.name << ": " << row_.summary << " Kind " << name(row_.kind) << ", " << int{row_.arity}
                << (row_.arity == 1 ? " operand" : " operands") << ", " << dtype_ << " gives " << instance.result
                << ".\n";
    if (wants("expr")) std::cout << instance.body.str(true) << "\n";
    if (wants("gradient") && is_floating(instance.result))
      for (int i = 0; i < row_.arity; ++i)
        if (is_floating(types[static_cast<std::size_t>(i)]))
          std::cout << "d/dx" << i << " = " << simplify(derivative(instance.body, i)).str() << "\n";

    // The graph that an eager call of the op on matrices makes.
    Graph graph;
    auto scope = std::make_shared<RecordingScope>();
    graph.scope = scope;
    Dim rows = scope->symbol("rows", 32), columns = scope->symbol("columns", 128);
    std::vector<ValueId> inputs;
    for (DType type : types) inputs.push_back(graph.add_input({type, {rows, columns}}));
    graph.results = {graph.add_call(row_, inputs)};
    if (wants("graph")) std::cout << graph.str();
    CompileOptions options;
    if (wants("passes"))
      options.observe = [](const char* pass, const Graph& after) {
        std::cout << "after " << pass << ":\n" << after.str();
      };
    std::shared_ptr<Program> program = compile(graph, options);
    for (const std::unique_ptr<Step>& step : program->steps) {
      if (wants("kernel")) std::cout << step->str();
      auto* kernel = dynamic_cast<cpu::KernelStep*>(step.get());
      if (kernel && wants("llvm")) std::cout << cpu::ir_text(kernel->code_requests()[0]);
      if (kernel && wants("assembly")) std::cout << cpu::assembly_text(kernel->code_requests()[0]);
    }
  }

 private:
  bool wants(const char* stage) const {
    return stages_.empty() || std::find(stages_.begin(), stages_.end(), stage) != stages_.end();
  }

  const OpDef& row_;
  DType dtype_;
  std::vector<std::string> stages_;
};

int dump(std::vector<std::string> words) {
  if (words.empty()) return usage();
  const OpDef* row = nullptr;
  for (const OpDef& candidate : elementwise_rows())
    if (words[0] == candidate.name) row = &candidate;
  if (!row) {
    std::cerr << "stet: there is no elementwise op '" << words[0] << "'; `stet ops` lists them\n";
    return 1;
  }
  DType dtype = DType::f32;
  std::size_t next = 1;
  for (const DTypeRow& type : dtype_table)
    if (words.size() > 1 && words[1] == type.name) {
      dtype = type.dtype;
      next = 2;
    }
  Dump(*row, dtype, {words.begin() + static_cast<std::ptrdiff_t>(next), words.end()}).run();
  return 0;
}

}  // namespace
}  // namespace stet

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 1 && words[0] == "ops") {
      stet::print_ops();
      return 0;
    }
    if (words.size() == 2 && words[0] == "ops" && words[1] == "functions") {
      stet::print_functions();
      return 0;
    }
    if (words.size() == 2 && words[0] == "ops" && words[1] == "names") {
      stet::print_names();
      return 0;
    }
    if (!words.empty() && words[0] == "dump") return stet::dump({words.begin() + 1, words.end()});
    return stet::usage();
  } catch (const std::exception& error) {
    std::cerr << "stet: " << error.what() << "\n";
    return 1;
  }
}
