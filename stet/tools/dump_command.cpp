// stet dump: an elementwise op on its way to machine code.
#include <algorithm>
#include <iostream>
#include <memory>

#include "stet/base/dim_inside.h"
#include "stet/base/text.h"
#include "stet/compiler/pipeline.h"
#include "stet/cpu/kernel_step.h"
#include "stet/ir/expand_math.h"
#include "stet/ir/graph.h"
#include "stet/ops/table.h"
#include "stet/tools/commands.h"
#include "stet/tools/output.h"
#include "stet/tools/words.h"

namespace stet::tools {
namespace {

struct Stage {
  const char *name, *help;
};
constexpr Stage stages[] = {{"row", "its row of the table of ops"},
                            {"expr", "what it computes of one element"},
                            {"gradient", "the derivatives of that"},
                            {"graph", "the graph of an eager call"},
                            {"passes", "the graph after every pass of the compiler"},
                            {"kernel", "the loops that the graph becomes"},
                            {"llvm", "their LLVM IR"},
                            {"assembly", "their machine code"}};

/// A part of what is shown.
struct Part {
  const char* stage;
  std::string words;
};

class Dump {
 public:
  Dump(const OpDef& row, DType dtype, std::vector<std::string> wanted)
      : row_(row), dtype_(dtype), wanted_(std::move(wanted)) {}

  std::vector<Part> parts() {
    std::vector<DType> types(row_.arity, dtype_);
    if (row_.dtypes.result == DTypeRule::selected) types[0] = DType::bool_;
    MapInstance instance = instantiate(row_, types);
    add("row",
        text(row_.name, ": ", row_.summary, " Kind ", name(row_.kind), ", ", int{row_.arity},
             row_.arity == 1 ? " operand" : " operands", ", ", name(dtype_), " gives ", name(instance.result), ".\n"));
    if (wants("expr")) add("expr", instance.body.str(true) + "\n");
    if (wants("gradient") && is_floating(instance.result))
      for (int i = 0; i < row_.arity; ++i)
        if (is_floating(types[static_cast<std::size_t>(i)]))
          add("gradient", text("d/dx", i, " = ", simplify(derivative(instance.body, i)).str(), "\n"));

    // The graph that an eager call of the op on matrices makes.
    Graph graph;
    auto scope = std::make_shared<RecordingScope>();
    graph.scope = scope;
    Dim rows = scope->symbol("rows", 32), columns = scope->symbol("columns", 128);
    std::vector<ValueId> inputs;
    for (DType type : types) inputs.push_back(graph.add_input({type, {rows, columns}}));
    graph.results = {graph.add_call(row_, inputs)};
    if (wants("graph")) add("graph", graph.str());
    CompileOptions options;
    if (wants("passes"))
      options.observe = [this](const char* pass, const Graph& after) {
        add("passes", text("after ", pass, ":\n", after.str()));
      };
    if (!wants("passes") && !wants("kernel") && !wants("llvm") && !wants("assembly")) return parts_;
    std::shared_ptr<Program> program = compile(graph, options);
    for (const std::unique_ptr<Step>& step : program->steps) {
      if (wants("kernel")) add("kernel", step->str());
      auto* kernel = dynamic_cast<cpu::KernelStep*>(step.get());
      if (kernel && wants("llvm")) add("llvm", cpu::ir_text(kernel->code_requests()[0]));
      if (kernel && wants("assembly")) add("assembly", cpu::assembly_text(kernel->code_requests()[0]));
    }
    return parts_;
  }

 private:
  bool wants(std::string_view stage) const {
    return wanted_.empty() || std::find(wanted_.begin(), wanted_.end(), stage) != wanted_.end();
  }
  void add(const char* stage, std::string words) {
    if (wants(stage)) parts_.push_back({stage, std::move(words)});
  }

  const OpDef& row_;
  DType dtype_;
  std::vector<std::string> wanted_;
  std::vector<Part> parts_;
};

const OpDef& elementwise_row(const std::string& word) {
  std::vector<std::string> known;
  for (const OpDef& row : elementwise_rows()) {
    if (word == row.name) return row;
    known.emplace_back(row.name);
  }
  for (const OpDef* row : all_rows())
    if (word == row->name)
      throw UsageError(text("stet dump shows the rows of elementwise.def, and ", word, " is none of them: its kind is ",
                            name(row->kind)));
  throw unknown_word("elementwise op", word, known, "stet ops");
}

std::optional<DType> dtype_of(std::string_view word) {
  for (const DTypeRow& row : dtype_table)
    if (word == row.name) return row.dtype;
  return std::nullopt;
}

std::vector<std::string> stages_of(std::span<const std::string> words) {
  std::vector<std::string> known;
  for (const Stage& stage : stages) known.emplace_back(stage.name);
  for (const std::string& word : words) {
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    for (const DTypeRow& row : dtype_table) known.emplace_back(row.name);
    throw unknown_word("stage or dtype", word, known, "stet help dump");
  }
  return {words.begin(), words.end()};
}

int run(const Words& words) {
  if (words.plain().empty()) throw UsageError("stet dump: which op? stet dump relu, for one; stet ops lists them");
  const OpDef& row = elementwise_row(words.plain()[0]);
  std::span<const std::string> rest = std::span(words.plain()).subspan(1);
  DType dtype = DType::f32;
  if (std::optional<DType> named = rest.empty() ? std::nullopt : dtype_of(rest[0])) {
    dtype = *named;
    rest = rest.subspan(1);
  }
  std::vector<Part> parts = Dump(row, dtype, stages_of(rest)).parts();
  if (!words.has("--json")) {
    for (const Part& part : parts) std::cout << part.words;
    return 0;
  }
  files::Json::List list;
  for (const Part& part : parts) list.push_back(files::Json::Object{{"stage", part.stage}, {"text", part.words}});
  print_json(files::Json::Object{{"op", row.name}, {"dtype", std::string(name(dtype))}, {"parts", list}});
  return 0;
}

std::vector<Candidate> candidates(std::span<const std::string> before) {
  std::vector<Candidate> out;
  if (before.empty()) {
    for (const OpDef& row : elementwise_rows()) out.push_back({row.name, row.summary});
    return out;
  }
  for (const Stage& stage : stages) out.push_back({stage.name, stage.help});
  if (before.size() == 1)
    for (const DTypeRow& row : dtype_table) out.push_back({row.name, "operands of this type"});
  return out;
}

}  // namespace

const Command dump_command{
    .name = "dump",
    .help = "an elementwise op on its way to machine code",
    .forms = {{"<op> [dtype] [stage…]", "the stages that are named, or all of them"}},
    .options = {json_option},
    .text =
        "Stages: row, expr (what it computes of one element), gradient, graph, passes (the graph after every pass of "
        "the compiler), kernel (its loops), llvm, assembly. The dtype is f32 where none is named.\n"
        "\n"
        "  stet dump relu\n"
        "  stet dump tanh bf16 kernel assembly",
    .run = run,
    .candidates = candidates};

}  // namespace stet::tools
