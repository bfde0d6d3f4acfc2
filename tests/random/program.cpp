#include "program.h"

#include <map>
#include <random>
#include <sstream>

namespace stet::random_programs {

std::int64_t Program::size_of(int role, const std::vector<std::int64_t>& base) const {
  const Role& r = roles[static_cast<std::size_t>(role)];
  switch (r.kind) {
    case Role::base:
      return base[static_cast<std::size_t>(r.a)];
    case Role::constant:
      return r.a;
    case Role::sum:
      return size_of(static_cast<int>(r.a), base) + size_of(static_cast<int>(r.b), base);
    case Role::product:
      return size_of(static_cast<int>(r.a), base) * size_of(static_cast<int>(r.b), base);
    case Role::late:
      return -1;
  }
  return -1;
}

std::vector<std::int64_t> Program::sizes_of(const ValueType& type, const std::vector<std::int64_t>& base) const {
  std::vector<std::int64_t> out;
  for (int role : type.shape) out.push_back(size_of(role, base));
  return out;
}

bool Program::is_late(int role) const {
  const Role& r = roles[static_cast<std::size_t>(role)];
  if (r.kind == Role::sum || r.kind == Role::product)
    return is_late(static_cast<int>(r.a)) || is_late(static_cast<int>(r.b));
  return r.kind == Role::late;
}

std::vector<double> elements_of(const ValueType& type, std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> out;
  for (std::int64_t i = 0; i < count; ++i) {
    double v = static_cast<double>(random() % 257) / 64 - 2;
    if (type.dtype == DType::bool_) v = v > 0;
    if (type.dtype == DType::i64) v = static_cast<double>(random() % 3);
    out.push_back(v);
  }
  return out;
}

namespace {

/// Prints as C++; what the rows hide in one call stands as a call of their name.
class Printer {
 public:
  explicit Printer(const Program& program) : p_(program) {}

  std::string run() {
    out_ << "// seed " << p_.seed << ", floating type " << name(p_.real) << "\n";
    for (std::size_t i = 0; i < p_.variables.size(); ++i)
      out_ << "Variable v" << i << "(" << type(p_.variables[i].type) << ")"
           << (p_.variables[i].trainable ? "" : "  // not trainable")
           << (p_.variables[i].argument ? "  // argument" : "") << "\n";
    for (std::size_t i = 0; i < p_.captured.size(); ++i)
      out_ << "captured " << value(p_.captured_values[i]) << " " << type(p_.captured[i].type) << "\n";
    for (std::size_t i = 0; i < p_.layers.size(); ++i) {
      const LayerPart& part = p_.layers[i];
      if (part.kind == LayerPart::dense) out_ << "layer" << i << " = Dense(" << part.units << ", tanh)\n";
      if (part.kind == LayerPart::dropout) out_ << "layer" << i << " = Dropout(0.5)\n";
      if (part.kind == LayerPart::custom) routine("layer" + std::to_string(i), part.routine);
    }
    for (std::size_t i = 0; i < p_.functions.size(); ++i) routine("function" + std::to_string(i), p_.functions[i]);
    out_ << "program(";
    for (std::size_t i = 0; i < p_.arguments.size(); ++i)
      out_ << (i ? ", " : "") << value(p_.arguments[i]) << " "
           << type(p_.values[static_cast<std::size_t>(p_.arguments[i])]);
    out_ << ") {\n";
    block(p_.body, 1, "return ");
    out_ << "}\nsizes (b, n):";
    for (const auto& set : p_.size_sets) out_ << " (" << set[0] << ", " << set[1] << ")";
    out_ << "\n";
    return out_.str();
  }

 private:
  std::string role(int r) const {
    const Role& one = p_.roles[static_cast<std::size_t>(r)];
    switch (one.kind) {
      case Role::base:
        return one.a == 0 ? "b" : "n";
      case Role::constant:
        return std::to_string(one.a);
      case Role::sum:
        return "(" + role(static_cast<int>(one.a)) + "+" + role(static_cast<int>(one.b)) + ")";
      case Role::product:
        return role(static_cast<int>(one.a)) + "*" + role(static_cast<int>(one.b));
      case Role::late:
        return "late" + std::to_string(r);
    }
    return "?";
  }
  std::string type(const ValueType& t) const {
    std::string text(name(t.dtype));
    text += "[";
    for (std::size_t i = 0; i < t.shape.size(); ++i) text += (i ? "," : "") + role(t.shape[i]);
    return text + "]";
  }
  static std::string value(int id) { return "t" + std::to_string(id); }
  std::string list(const std::vector<int>& ids) const {
    std::string text;
    for (int id : ids) text += (text.empty() ? "" : ", ") + value(id);
    return text;
  }

  void routine(const std::string& name, const Routine& r) {
    out_ << name << "(" << list(r.parameters) << ") {\n";
    block(r.body, 1, "return ");
    out_ << "}\n";
  }
  void block(const Block& b, int depth, const std::string& ending) {
    for (const Statement& s : b.statements) statement(s, depth);
    if (!b.results.empty()) line(depth) << ending << "{" << list(b.results) << "};\n";
  }
  std::ostream& line(int depth) { return out_ << std::string(static_cast<std::size_t>(2 * depth), ' '); }

  std::string call(const Statement& s) {
    std::ostringstream text;
    text << s.name << "(" << list(s.inputs);
    for (double v : s.reals) text << ", " << v;
    for (std::int64_t v : s.numbers) text << ", " << v;
    for (const SizeSource& from : s.sizes) {
      text << ", ";
      if (from.value < 0)
        text << from.constant;
      else
        text << value(from.value) << ".dim(" << from.axis << ")";
    }
    return text.str() + ")";
  }

  std::string loop_head(const Statement& s) {
    static const char* const names[] = {"for_loop", "for_loop", "for_loop", "while_loop", "scan", "map_fn"};
    std::ostringstream text;
    text << names[s.turns.kind] << "(";
    if (s.turns.kind == Turns::number) text << s.turns.count << ", ";
    for (const SizeSource& from : s.sizes) {
      std::string size = from.value < 0 ? std::to_string(from.constant)
                                        : value(from.value) + ".dim(" + std::to_string(from.axis) + ")";
      text << (s.turns.kind == Turns::value ? "tensor(" + size + ")" : size) << ", ";
    }
    text << "{" << list(s.inputs) << "}: " << s.turns.carried << " carried";
    for (std::size_t i = 0; i < s.turns.carried; ++i) text << (s.turns.bounded[i] ? " tanh" : " as it is");
    if (s.turns.reverse) text << ", reverse";
    if (s.turns.checkpoint_every) text << ", checkpoint_every " << s.turns.checkpoint_every;
    text << ", [&](" << list(s.blocks[0].parameters) << ") {";
    return text.str();
  }

  void statement(const Statement& s, int depth) {
    std::string outputs = s.outputs.empty() ? "" : list(s.outputs) + " = ";
    std::string types;
    for (int id : s.outputs) types += (types.empty() ? "  // " : " ") + type(p_.values[static_cast<std::size_t>(id)]);
    std::string v = "v" + std::to_string(s.which), tape = "tape" + std::to_string(s.which);
    auto two = [&](const std::string& head, const std::string& between) {
      line(depth) << head << "\n";
      block(s.blocks[0], depth + 1, s.kind == Statement::decide ? outputs : "return ");
      line(depth) << between << "\n";
      block(s.blocks[1], depth + 1, s.kind == Statement::decide ? outputs : "return ");
      line(depth) << (s.kind == Statement::decide ? "}" : "});") << types << "\n";
    };
    static const char* const writes[] = {".assign(tanh(", ".assign_add(sin(", ".assign_sub(sin("};
    static const char* const write_ends[] = {"));", ") * 0.5);", ") * 0.25);"};
    switch (s.kind) {
      case Statement::op:
        line(depth) << outputs << call(s) << ";" << types << "\n";
        return;
      case Statement::read:
        line(depth) << outputs << v << ".read();" << types << "\n";
        return;
      case Statement::assign:
        line(depth) << outputs << v << writes[s.numbers[0]] << list(s.inputs) << write_ends[s.numbers[0]] << "\n";
        return;
      case Statement::decide:
        return two("if (" + list(s.inputs) + ") {", "} else {");
      case Statement::cond:
        return two(outputs + "cond(" + list(s.inputs) + ", [&] {", "}, [&] {");
      case Statement::scope:
      case Statement::tape:
        line(depth) << outputs << (s.kind == Statement::scope ? "scope([&] {" : "[&] { GradientTape tape(");
        if (s.kind == Statement::tape) out_ << (s.numbers[0] ? "persistent" : "") << ");";
        out_ << "\n";
        block(s.blocks[0], depth + 1, "return ");
        line(depth) << (s.kind == Statement::scope ? "});" : "}();") << types << "\n";
        return;
      case Statement::layer:
        line(depth) << outputs << "layer" << s.which << "(" << list(s.inputs) << ");\n";
        return;
      case Statement::call:
        line(depth) << outputs << "function" << s.which << "(" << list(s.inputs) << ");\n";
        return;
      case Statement::watch:
        line(depth) << tape << ".watch(" << list(s.inputs) << ");\n";
        return;
      case Statement::gradient: {
        line(depth) << outputs << tape << ".gradient(" << value(s.inputs[0]) << ", {";
        std::string sources;
        for (std::size_t i = 1; i < s.inputs.size(); ++i) sources += (sources.empty() ? "" : ", ") + value(s.inputs[i]);
        for (std::int64_t n : s.numbers) sources += (sources.empty() ? "v" : ", v") + std::to_string(n);
        out_ << sources << "});  // each d: defined ? tanh(d * 0.125) : " << p_.undefined_gradient() << "\n";
        return;
      }
      case Statement::fail:
        line(depth) << "throw std::domain_error(\"" << s.numbers[0] << "\");\n";
        return;
      case Statement::loop:
        line(depth) << outputs << loop_head(s) << types << "\n";
        block(s.blocks[0], depth + 1, "return ");
        if (s.blocks.size() > 1) {
          line(depth) << "}, as long as at most " << s.turns.count << " and [&](" << list(s.blocks[1].parameters)
                      << ") {\n";
          block(s.blocks[1], depth + 1, "return ");
        }
        line(depth) << "});\n";
        return;
    }
  }

  const Program& p_;
  std::ostringstream out_;
};

int count(const Block& b) {
  int n = 0;
  for (const Statement& s : b.statements) {
    ++n;
    for (const Block& inner : s.blocks) n += count(inner);
  }
  return n;
}

bool branches(const Block& b) {
  for (const Statement& s : b.statements) {
    if (s.kind == Statement::decide || s.kind == Statement::cond || s.kind == Statement::loop) return true;
    for (const Block& inner : s.blocks)
      if (branches(inner)) return true;
  }
  return false;
}

}  // namespace

double Program::undefined_gradient() const {
  bool any = branches(body);
  for (const LayerPart& part : layers) any = any || branches(part.routine.body);
  for (const Routine& r : functions) any = any || branches(r.body);
  return any ? 0 : -77;
}

std::string text_of(const Program& program) { return Printer(program).run(); }

int statement_count(const Program& program) {
  int n = count(program.body);
  for (const LayerPart& part : program.layers) n += count(part.routine.body);
  for (const Routine& r : program.functions) n += count(r.body);
  return n;
}

}  // namespace stet::random_programs
