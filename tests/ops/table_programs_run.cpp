#include "stet/core/tape.h"
#include "tests/ops/table_programs.h"

namespace stet::table_programs {

using op_test::make_tensor;

// --- what is drawn

namespace {

/// Among the elements, what a type has beside ordinary numbers.
void put_special(Values& values, DType dtype, int stream) {
  const bool floating = is_floating(dtype);
  const auto low = static_cast<op_test::Value>(row(dtype).lowest),
             high = static_cast<op_test::Value>(row(dtype).highest);
  // Not the largest: which of their sums overflow depends on the order.
  const op_test::Value small = floating ? std::ldexp(1.0L, op_test::format_of(dtype).lowest_exponent - 3) : 0;
  const Values specials = floating ? Values{NAN, INFINITY, -INFINITY, -0.0L, small, 0} : Values{low, high, 0, 1};
  for (std::size_t i = static_cast<std::size_t>(stream % 5); i < values.size(); i += 7)
    values[i] = specials[(i + static_cast<std::size_t>(stream)) % specials.size()];
}

Values ordinary_for(const Operand& operand, std::size_t call) {
  if (!operand.domain) {
    SampleInput sample = operand.sample;
    sample.sizes = operand.form[call];
    return op_test::drawn_values(operand.stream, operand.dtype, sample);
  }
  Values out;
  for (std::int64_t i = 0; i < op_test::count_of(operand.form[call]); ++i) {
    std::uint64_t bits = op_test::drawn(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(operand.stream));
    double x = op_test::drawn_from(*operand.domain, bits);
    if (operand.dtype == DType::bool_)
      out.push_back(bits & 1);
    else
      out.push_back(is_floating(operand.dtype) ? op_test::rounded_to(operand.dtype, x) : std::trunc(x));
  }
  return out;
}

Values drawn_for(const Operand& operand, std::size_t call) {
  Values out = ordinary_for(operand, call);
  if (operand.special) put_special(out, operand.dtype, operand.stream);
  return out;
}

/// The same elements as every other one of twice as many, or with the last two axes in the other order.
Tensor as_a_view(const Tensor& tensor, bool turned) {
  if (tensor.rank() == 0) return tensor;
  if (turned && tensor.rank() > 1) return swapaxes(swapaxes(tensor, -1, -2).contiguous(), -1, -2);
  Shape shape = tensor.shape();
  std::vector<Dim> begin, size;
  std::vector<std::int64_t> step;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    begin.push_back(0);
    size.push_back(shape[axis]);
    step.push_back(axis + 1 == shape.rank() ? 2 : 1);
  }
  return slice(repeat(tensor, 2, -1), begin, size, step);
}

/// Sizes for attributes, as a tensor without elements that has them as its shape.
Tensor carrier_of(const Statement& statement, std::size_t call) {
  Sizes sizes;
  std::size_t number = 0;
  statement.attributes[call].map_dims([&](const Dim& dim) {
    if (statement.sizes[number++].from == AttributeSize::argument) sizes.push_back(std::abs(dim.constant()));
    return dim;
  });
  if (sizes.empty()) return {};
  sizes.push_back(0);
  return make_tensor(DType::u8, {}, sizes);
}

}  // namespace

bool Operand::has_argument() const {
  return source < 0 || path != Path::direct || fit == Fit::matrices || fit == Fit::definite || fit == Fit::blended;
}

void append_arguments(const Program& program, const Statement& statement, std::size_t call, Tensors& out) {
  for (const Operand& operand : statement.operands) {
    if (!operand.has_argument()) continue;
    Tensor drawn = make_tensor(operand.dtype, drawn_for(operand, call), operand.form[call]);
    bool view = program.views && operand.stream % 3 == 0;
    out.push_back(view ? as_a_view(drawn, operand.stream % 2 == 0) : drawn);
  }
  if (Tensor carrier = carrier_of(statement, call); carrier.defined()) out.push_back(carrier);
}

Tensors arguments_of(const Program& program, std::size_t call) {
  Tensors out;
  for (const Statement& statement : program.statements) append_arguments(program, statement, call, out);
  return out;
}

Tensor Noise::on(const Tensor& value) {
  if (!is_floating(value.dtype())) return value;
  Values factors;
  for (std::int64_t i = 0; i < op_test::count_of(op_test::sizes_of(value)); ++i) {
    auto steps = static_cast<op_test::Value>(random() % 5) - 2;
    factors.push_back(1 + 2 * steps * op_test::unit_roundoff(value.dtype()));
  }
  return multiply(value, make_tensor(value.dtype(), factors, op_test::sizes_of(value)));
}

// --- from an earlier value to an operand

namespace {

/// The one number that stands for elements along axes.
Tensor summary_of(const Tensor& value, const Axes* axes) {
  if (is_floating(value.dtype())) return axes ? mean(value, *axes) : mean(value);
  if (value.dtype() == DType::bool_) return axes ? any(value, *axes) : any(value);
  return axes ? max(value, *axes) : max(value);
}

Tensor shaped(const Operand& operand, const Tensor& value, const Tensor& like, bool late) {
  if (operand.path == Path::direct) return value;
  Shape shape = like.shape();
  Axes axes(std::vector<int>(operand.axes));
  std::vector<Dim> zeros, sizes;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    zeros.push_back(0);
    sizes.push_back(shape[axis]);
  }
  switch (operand.path) {
    case Path::direct:
      return value;
    case Path::reshaped:
      return reshape(value, shape);
    case Path::repeated:
      return broadcast_to(value, shape);
    case Path::transposed:
      return transpose(value, axes);
    case Path::reduced:
      return summary_of(value, &axes);
    case Path::cut:
      return slice(value, zeros, sizes);
    case Path::padded: {
      std::vector<Padding> paddings;
      for (int axis = 0; axis < shape.rank(); ++axis) paddings.push_back({0, shape[axis] - value.dim(axis)});
      return pad(value, paddings);
    }
    case Path::picked:
      return reshape(gather(reshape(value, {-1}), mod(arange(like.size()) * 3 + 1, value.size())), shape);
    case Path::whole:
      return broadcast_to(late ? cast(sum(value), value.dtype()) : summary_of(value, nullptr), shape);
  }
  return value;
}

/// Of another type, with elements that fit it.
Tensor typed(const Tensor& value, DType to) {
  DType from = value.dtype();
  if (from == to) return value;
  if (to == DType::bool_) return is_floating(from) ? greater(value, 0.1) : not_equal(mod(value, 3), 0);
  if (is_floating(to)) {
    if (is_floating(from)) return cast(value, to);
    if (from == DType::bool_) return cast(value, to) * 2 - 0.75;
    return cast(mod(value, 9), to) * 0.5 - 2;
  }
  return is_floating(from) ? cast(greater(value, 0.1), to) : cast(value, to);
}

Tensor fitted(const Operand& operand, const Tensor& value, const Tensor& argument) {
  Tensor x = value;
  bool floating = is_floating(operand.dtype);
  if (operand.tame && floating) x = clip(where(isfinite(x), x, 0.5), -3, 3);
  switch (operand.fit) {
    case Fit::none:
      return x;
    case Fit::squashed:
      return tanh(x);
    case Fit::into:
      return sigmoid(x) * (operand.high - operand.low) + operand.low;
    case Fit::modulo:
      return mod(x, static_cast<std::int64_t>(operand.high)) + static_cast<std::int64_t>(operand.low);
    case Fit::factors:
      return floating ? tanh(x) * 0.25 + 1 : mod(x, 3) * 2 + 1;
    case Fit::marks:
      return cast(floating ? greater(x, 0.1) : not_equal(mod(x, 2), 0), operand.dtype);
    case Fit::matrices:
      return argument + tanh(x) * 0.1;
    case Fit::definite: {
      Tensor part = tanh(x) * 0.1;
      return argument + part + matrix_transpose(part);
    }
    case Fit::ordered:
      return sort(x);
    case Fit::blended:
      return x * 0.5 + argument * 0.5;
  }
  return x;
}

}  // namespace

Tensor operand_of(const Operand& operand, const Tensor& source, const Tensor& argument, bool late, Noise* noise) {
  auto noisy = [&](const Tensor& value) { return noise ? noise->on(value) : value; };
  // Matrices with noise are not symmetric any more.
  bool definite = operand.sample.draw == Draw::definite;
  if (operand.source < 0) return definite ? argument : noisy(argument);
  Tensor x = fitted(operand, typed(shaped(operand, noisy(source), argument, late), operand.dtype), argument);
  return definite ? x : noisy(x);
}

// --- statements

namespace {

/// The first `count` along axis 0.
Tensor leading(const Tensor& x, const Dim& count) {
  std::vector<Dim> begin(static_cast<std::size_t>(x.rank()), 0), size;
  for (int axis = 0; axis < x.rank(); ++axis) size.push_back(axis == 0 ? count : x.dim(axis));
  return slice(x, begin, size);
}

}  // namespace

Tensors run_statement(const Statement& statement, const Tensors& operands, const Tensor& carrier) {
  std::size_t number = 0;
  int carried = 0;
  Attributes attributes = statement.attributes[0].map_dims([&](const Dim& dim) {
    const AttributeSize& size = statement.sizes[number++];
    if (size.from == AttributeSize::operand) return operands[static_cast<std::size_t>(size.number)].dim(size.axis);
    if (size.from == AttributeSize::constant) return dim;
    Dim value = carrier.dim(carried++);
    return dim.constant() < 0 ? Dim(0) - value : value;
  });
  Tensors out = op_test::eager_all(*statement.row, operands, attributes);
  if (statement.row == &svd_full_row) {
    // Bases of what the matrix maps to 0, and of what it does not reach, may be any: they do not flow on.
    Dim values = out[1].dim(-1);
    out[0] = swapaxes(leading(swapaxes(out[0], -1, 0), values), -1, 0);
    out[2] = swapaxes(leading(swapaxes(out[2], -2, 0), values), -2, 0);
  }
  return out;
}

void Machine::run(std::size_t begin, std::size_t end, const Tensors& arguments) {
  std::size_t at = 0;
  operands.resize(program_.statements.size());
  carriers.resize(program_.statements.size());
  for (std::size_t s = 0; s < end; ++s) {
    const Statement& statement = program_.statements[s];
    Tensors own;
    for (const Operand& operand : statement.operands) {
      Tensor argument = operand.has_argument() ? arguments.at(at++) : Tensor();
      if (s < begin) continue;
      bool late = operand.source >= 0 && program_.values[static_cast<std::size_t>(operand.source)].late;
      Tensor source = operand.source < 0 ? Tensor() : values[static_cast<std::size_t>(operand.source)];
      Tensor x = operand_of(operand, source, argument, late, noise_);
      own.push_back(statement.detached && is_floating(x.dtype()) ? detached(x) : x);
    }
    bool carries = std::ranges::any_of(statement.sizes,
                                       [](const AttributeSize& size) { return size.from == AttributeSize::argument; });
    if (carries) carriers[s] = arguments.at(at++);
    if (s < begin) continue;
    Tensors results = run_statement(statement, own, carriers[s]);
    for (std::size_t r = 0; r < results.size(); ++r)
      values[static_cast<std::size_t>(statement.first) + r] = noise_ ? noise_->on(results[r]) : results[r];
    operands[s] = std::move(own);
  }
}

// --- text

namespace {

const char* name_of(Path path) {
  static constexpr const char* names[] = {"",     "reshaped ", "repeated ", "transposed ", "reduced ",
                                          "cut ", "padded ",   "picked ",   "whole "};
  return names[static_cast<int>(path)];
}
const char* name_of(Fit fit) {
  static constexpr const char* names[] = {"",       "squashed ",      "into ",          "modulo ",  "factors ",
                                          "marks ", "matrices with ", "definite with ", "ordered ", "blended with "};
  return names[static_cast<int>(fit)];
}
std::string text_of(const Form& form) { return text("[", joined(form[0], ","), "]|[", joined(form[1], ","), "]"); }

std::string text_of(const Operand& operand) {
  std::string drawn = text("argument ", operand.dtype, text_of(operand.form));
  if (operand.sample.below >= 0) drawn += text(" below ", operand.sample.below);
  if (operand.special) drawn += " special";
  if (operand.source < 0) return drawn;
  std::string out = text(name_of(operand.fit), operand.tame ? "tame " : "", name_of(operand.path));
  if (!operand.axes.empty()) out += text("(", joined(operand.axes, ","), ") ");
  out += text("v", operand.source);
  if (operand.fit == Fit::into || operand.fit == Fit::modulo) out += text(" (", operand.low, ", ", operand.high, ")");
  if (operand.has_argument()) out += text(" to ", drawn);
  return out;
}

}  // namespace

std::string text_of(const Program& program) {
  std::string out;
  for (const Statement& statement : program.statements) {
    for (std::size_t r = 0; r < statement.row->result_count(); ++r)
      out += text(r ? ", " : "  ", "v", statement.first + static_cast<int>(r));
    out += text(" = ", statement.row->name, "(");
    for (std::size_t k = 0; k < statement.operands.size(); ++k) out += (k ? "; " : "") + text_of(statement.operands[k]);
    out += ")";
    if (statement.attributes[0]) out += text(" {", statement.attributes[0].str(), "}");
    bool grows = !(statement.attributes[0] == statement.attributes[1]);
    if (grows) out += text(" then {", statement.attributes[1].str(), "}");
    for (const AttributeSize& size : statement.sizes)
      out += size.from == AttributeSize::constant  ? " c"
             : size.from == AttributeSize::operand ? text(" operand ", size.number, " axis ", size.axis)
                                                   : " argument";
    if (statement.detached) out += " detached";
    for (std::size_t r = 0; r < statement.row->result_count(); ++r) {
      const ValueInfo& value = program.values[static_cast<std::size_t>(statement.first) + r];
      out += text(r ? ", " : " -> ", value.dtype, text_of(value.form));
    }
    out += "\n";
  }
  out += "  return";
  for (int result : program.results) out += text(" v", result);
  if (program.larger_first) out += ", first at the larger sizes";
  return out + (program.views ? ", some arguments are views\n" : "\n");
}

}  // namespace stet::table_programs
