#include "run.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "rows.h"

namespace stet::random_programs {

struct Instance::Machine {
  using Environment = std::vector<Tensor>;  // by value id

  Instance& self;
  const Program& p;
  bool plain;
  std::vector<keras::Layer> layers;
  std::vector<Function<Tensors(Tensors)>> functions;
  const std::vector<Variable>* handed = nullptr;

  Machine(Instance& instance, bool plain_calls) : self(instance), p(instance.program), plain(plain_calls) {}

  /// A layer whose call() is a block of the program.
  struct Custom : keras::CustomLayer {
    Machine* machine;
    const Routine* routine;
    std::vector<keras::Layer> inner;
    std::vector<Variable> state;
    STET_MEMBERS(inner, state)
    Custom(Machine* m, const Routine* r) : machine(m), routine(r), inner(m->layers), state(m->self.variables) {}
    Tensor call(const Tensor& x, const keras::Context&) override { return machine->routine(*routine, {x})[0]; }
  };

  void prepare() {
    for (const LayerPart& part : p.layers) {
      if (part.kind == LayerPart::dense) layers.push_back(keras::Dense(part.units, {.activation = tanh}));
      if (built_at_once(layers.size() - 1) && part.kind == LayerPart::dense) layers.back()(ones({1, 3}));
      if (part.kind == LayerPart::dropout) layers.push_back(keras::Dropout(0.5));
      if (part.kind == LayerPart::custom) layers.push_back(keras::make<Custom>(this, &part.routine));
    }
    for (std::size_t i = 0; i < p.functions.size(); ++i) {
      const Routine* r = &p.functions[i];
      functions.push_back(function("inner" + std::to_string(i), [this, r](Tensors x) { return routine(*r, x); }));
    }
  }

  static bool branches(const Block& block) {
    return std::any_of(block.statements.begin(), block.statements.end(), [](const Statement& s) {
      return s.kind == Statement::decide || s.kind == Statement::cond || s.kind == Statement::loop ||
             std::any_of(s.blocks.begin(), s.blocks.end(), branches);
    });
  }
  /// A Dense layer that does not wait for its first call: where there are branches, that may be on a side that is
  /// traced long before it is taken.
  bool built_at_once(std::size_t layer) const {
    auto routine_branches = [](const Routine& r) { return branches(r.body); };
    bool may_wait = p.seed / 2 % 2 && !branches(p.body) &&
                    std::none_of(p.functions.begin(), p.functions.end(), routine_branches) &&
                    std::none_of(p.layers.begin(), p.layers.end(),
                                 [&](const LayerPart& part) { return routine_branches(part.routine); });
    return layer < p.layers.size() && p.layers[layer].kind == LayerPart::dense && !may_wait;
  }

  Environment fresh() const {
    Environment values(p.values.size());
    for (std::size_t i = 0; i < p.captured_values.size(); ++i)
      values[static_cast<std::size_t>(p.captured_values[i])] = self.captured[i];
    return values;
  }
  Tensors routine(const Routine& r, const Tensors& in) {
    Environment values = fresh();
    for (std::size_t i = 0; i < in.size(); ++i) values[static_cast<std::size_t>(r.parameters[i])] = in[i];
    std::vector<GradientTape*> tapes;
    return block(r.body, values, tapes);
  }
  const Variable& variable(int which) const {
    auto i = static_cast<std::size_t>(which);
    if (!handed || !p.variables[i].argument) return self.variables[i];
    std::size_t place = 0;
    for (std::size_t v = 0; v < i; ++v) place += p.variables[v].argument;
    return (*handed)[place];
  }

  /// A block's own values end with it, as locals do.
  Tensors block(const Block& b, Environment values, std::vector<GradientTape*> tapes) {
    for (const Statement& s : b.statements) statement(s, values, tapes);
    Tensors out;
    for (int id : b.results) out.push_back(values[static_cast<std::size_t>(id)]);
    return out;
  }

  void statement(const Statement& s, Environment& values, std::vector<GradientTape*>& tapes) {
    auto at = [&](int id) -> Tensor& { return values[static_cast<std::size_t>(id)]; };
    auto give = [&](const Tensors& results) {
      for (std::size_t i = 0; i < s.outputs.size(); ++i) at(s.outputs[i]) = results[i];
    };
    Tensors in;
    for (int id : s.inputs) in.push_back(at(id));
    switch (s.kind) {
      case Statement::op: {
        std::vector<Dim> sizes;
        for (const SizeSource& from : s.sizes)
          sizes.push_back(from.value < 0 ? Dim(from.constant) : at(from.value).dim(from.axis));
        const Row& r = row(s.name);
        give({r.run({s, in, sizes, p.real}, r)});
        // Eagerly too a turn is traced where there is none, for the sizes of its results.
        if (self.draws && !tracing() && (s.name == "uniform" || s.name == "normal" || s.name == "randint"))
          self.draws->push_back(at(s.outputs[0]));
        return;
      }
      case Statement::read:
        return give({variable(s.which).read()});
      case Statement::assign: {
        const Variable& v = variable(s.which);
        // Written so that values stay small whatever is called how often.
        if (s.numbers[0] == 0) return give({v.assign(tanh(in[0]))});
        if (s.numbers[0] == 1) return give({v.assign_add(sin(in[0]) * 0.5)});
        return give({v.assign_sub(sin(in[0]) * 0.25)});
      }
      case Statement::decide: {
        if (in[0])
          give(block(s.blocks[0], values, tapes));
        else
          give(block(s.blocks[1], values, tapes));
        return;
      }
      case Statement::scope:
        return give(stet::scope([&] { return block(s.blocks[0], values, tapes); }));
      case Statement::cond:
        return give(stet::cond(
            in[0], [&] { return block(s.blocks[0], values, tapes); },
            [&] { return block(s.blocks[1], values, tapes); }));
      case Statement::layer:
        return give({layers[static_cast<std::size_t>(s.which)](in[0], {.training = true})});
      case Statement::call: {
        auto which = static_cast<std::size_t>(s.which);
        return give(plain ? routine(p.functions[which], in) : functions[which](in));
      }
      case Statement::tape: {
        GradientTape tape({.persistent = s.numbers[0] != 0});
        std::vector<GradientTape*> inner = tapes;
        inner.push_back(&tape);
        return give(block(s.blocks[0], values, inner));
      }
      case Statement::watch:
        return tapes[static_cast<std::size_t>(s.which)]->watch(in[0]);
      case Statement::gradient:
        return give(gradient(s, in, *tapes[static_cast<std::size_t>(s.which)]));
      case Statement::fail:
        throw std::domain_error("the side that throws: " + std::to_string(s.numbers[0]));
      case Statement::loop:
        return give(loop(s, in, values));
    }
  }

  Tensors loop(const Statement& s, const Tensors& in, const Environment& values) {
    const Turns& turns = s.turns;
    const auto first = static_cast<std::ptrdiff_t>(turns.carried);
    Tensors carried(in.begin(), in.begin() + first), sequences(in.begin() + first, in.end());
    auto run = [&](const Block& b, const Tensors& state, const Tensors& elements, const Tensor& place) {
      Environment inner = values;
      Tensors given = state;
      given.insert(given.end(), elements.begin(), elements.end());
      if (place.defined()) given.push_back(place);
      for (std::size_t i = 0; i < b.parameters.size(); ++i) inner[static_cast<std::size_t>(b.parameters[i])] = given[i];
      return block(b, inner, {});  // tapes from outside are not asked inside of a loop
    };
    auto turn = [&](const Tensors& state, const Tensors& elements, const Tensor& place) {
      Tensors out = run(s.blocks[0], state, elements, place);
      for (std::size_t i = 0; i < turns.carried; ++i)
        if (turns.bounded[i]) out[i] = tanh(out[i]);
      return std::pair(Tensors(out.begin(), out.begin() + first), Tensors(out.begin() + first, out.end()));
    };
    const LoopOptions options{.checkpoint_every = turns.checkpoint_every};
    switch (turns.kind) {
      case Turns::number:
      case Turns::size:
      case Turns::value: {
        auto body = [&](Tensor place, Tensors state) { return turn(state, {}, place).first; };
        if (turns.kind == Turns::number) return for_loop(turns.count, body, carried, options);
        const SizeSource& from = s.sizes[0];
        Dim size = from.value < 0 ? Dim(from.constant) : values[static_cast<std::size_t>(from.value)].dim(from.axis);
        if (turns.kind == Turns::size) return for_loop(size, body, carried, options);
        return for_loop(tensor(size), body, carried, options);
      }
      case Turns::condition:
        return while_loop(
                   [&](std::pair<Tensors, Tensor> state) {
                     return logical_and(state.second < turns.count, run(s.blocks[1], state.first, {}, {})[0]);
                   },
                   [&](std::pair<Tensors, Tensor> state) {
                     return std::pair(turn(state.first, {}, {}).first, state.second + 1);
                   },
                   std::pair(carried, tensor(0)), options)
            .first;
      case Turns::scan: {
        auto [last, stacked] =
            stet::scan([&](Tensors state, Tensors elements) { return turn(state, elements, {}); }, carried, sequences,
                       {.reverse = turns.reverse, .checkpoint_every = turns.checkpoint_every});
        last.insert(last.end(), stacked.begin(), stacked.end());
        return last;
      }
      case Turns::map:
        return map_fn([&](Tensors elements) { return turn({}, elements, {}).second; }, sequences, options);
    }
    throw std::logic_error("an unknown loop");
  }

  Tensors gradient(const Statement& s, const Tensors& in, GradientTape& tape) {
    // All in one call of gradient(), for tapes that give gradients once.
    std::vector<Tensor> out;
    if (s.numbers.empty()) {
      out = tape.gradient(in[0], std::vector<Tensor>(in.begin() + 1, in.end()));
    } else if (in.size() == 1) {
      std::vector<Variable> sources;
      for (std::int64_t v : s.numbers) sources.push_back(variable(static_cast<int>(v)));
      out = tape.gradient(in[0], sources);
    } else {
      out = mixed(s, in, tape);
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      Tensor like = i + 1 < in.size() ? in[i + 1] : Tensor();
      if (!like.defined()) like = variable(static_cast<int>(s.numbers[i - (in.size() - 1)])).read();
      out[i] = out[i].defined() ? tanh(out[i] * 0.125) : zeros_like(like) + p.undefined_gradient();
    }
    return out;
  }
  std::vector<Tensor> mixed(const Statement& s, const Tensors& in, GradientTape& tape) {
    std::vector<GradientTape::Source> all;
    for (std::size_t i = 1; i < in.size(); ++i) all.emplace_back(in[i]);
    for (std::int64_t v : s.numbers) all.emplace_back(variable(static_cast<int>(v)));
    return tape.gradient(in[0], all);
  }
};

namespace {

Tensor tensor_of(const ValueType& type, const std::vector<std::int64_t>& sizes, std::uint64_t seed) {
  std::vector<Dim> dims(sizes.begin(), sizes.end());
  std::int64_t count = 1;
  for (std::int64_t size : sizes) count *= size;
  return cast(tensor(elements_of(type, count, seed), Shape(dims)), type.dtype).contiguous();
}

/// The same elements, lying otherwise in memory.
Tensor as_a_view(const Tensor& t, std::uint64_t way) {
  if (t.rank() == 0) return t;
  switch (way % 4) {
    case 0:
      return transpose(transpose(t).contiguous());
    case 1:
      return concat({t, t}, 0)[range(0, t.dim(0).value())];
    case 2:
      return reverse(reverse(t, 0).contiguous(), 0);
    default: {
      Tensor twice = stack({t, t}, t.rank());  // every second element
      return twice[{ellipsis, 1}];
    }
  }
}

}  // namespace

Instance::Instance(const Program& p, bool plain) : program(p) {
  random::seed(p.seed);
  machine_ = std::make_unique<Machine>(*this, plain);
  for (const State& state : p.variables)
    variables.emplace_back(tensor_of(state.type, p.sizes_of(state.type, {}), state.seed),
                           VariableOptions{.trainable = state.trainable});
  for (const Constant& constant : p.captured)
    captured.push_back(tensor_of(constant.type, p.sizes_of(constant.type, {}), constant.seed));
  machine_->prepare();
}
Instance::~Instance() = default;

Tensors Instance::run(const Tensors& arguments, const std::vector<Variable>& handed) {
  Machine::Environment values = machine_->fresh();
  for (std::size_t i = 0; i < arguments.size(); ++i)
    values[static_cast<std::size_t>(program.arguments[i])] = arguments[i];
  const std::vector<Variable>* before = std::exchange(machine_->handed, &handed);
  struct Back {
    const std::vector<Variable>*& place;
    const std::vector<Variable>* value;
    ~Back() { place = value; }
  } back{machine_->handed, before};
  return machine_->block(program.body, values, {});
}

std::vector<Variable> Instance::handed_in() const {
  std::vector<Variable> out;
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (program.variables[i].argument) out.push_back(variables[i]);
  return out;
}

std::vector<Variable> Instance::layer_variables() const {
  std::vector<Variable> out;
  for (const keras::Layer& layer : machine_->layers)
    for (const Variable& v : layer.variables())
      if (std::none_of(variables.begin(), variables.end(), [&](const Variable& own) { return own.id() == v.id(); }))
        out.push_back(v);
  return out;
}

Tensors Instance::state() const {
  Tensors out;
  for (const Variable& v : variables) out.push_back(v.read());
  for (std::size_t i = 0; i < machine_->layers.size(); ++i)
    if (machine_->built_at_once(i))  // others may be built while tracing a side that is not taken
      for (const Variable& v : machine_->layers[i].variables()) out.push_back(v.read());
  return out;
}

Tensors arguments_of(const Program& program, std::size_t call) {
  Tensors out;
  for (std::size_t i = 0; i < program.arguments.size(); ++i) {
    const ValueType& type = program.values[static_cast<std::size_t>(program.arguments[i])];
    // The last call is the first again: the same elements, often in another layout.
    std::uint64_t seed = program.argument_seeds[i] + 1000 * (call + 1 == program.size_sets.size() ? 0 : call);
    Tensor t = tensor_of(type, program.sizes_of(type, program.size_sets[call]), seed);
    std::uint64_t layout = program.argument_seeds[i] / 7 + call;
    out.push_back(layout % 3 == 0 ? as_a_view(t, layout / 3) : t);
  }
  return out;
}

std::string name_of(Way way) {
  switch (way) {
    case Way::call:
      return "called";
    case Way::tape:
      return "called under an eager tape";
    case Way::nested:
      return "called by another function";
    case Way::thread:
      return "called on two threads in turns";
    case Way::clear:
      return "called with clear() in between";
    case Way::verified:
      return "not traced, its inner functions are";
    case Way::exported:
      return "exported and loaded";
  }
  return "?";
}

namespace {

void write_down(Outcome& out, const Tensors& tensors) {
  for (const Tensor& t : tensors) {
    std::string type(name(t.dtype()));
    for (std::int64_t axis = 0; axis < t.rank(); ++axis)
      type += " " + std::to_string(t.dim(static_cast<int>(axis)).value());
    out.types.push_back(type);
    out.values.push_back(cast(t, DType::f64).to_vector<double>());
  }
}

/// What a trace may refuse though it runs eagerly: host code asks for a size that differs by the side of a branch, or
/// such a size is 1 and would have to be repeated, or a turn gives such a size to be stacked. Sides whose sizes are
/// equal in each call, but not by anything that was traced, have such sizes too.
bool may_be_refused(const std::string& error) {
  for (const char* text : {" depends on values and is not known while tracing, so host code cannot ask ",
                           ": a result of the turns has a size that depends on values",
                           "traced code repeats only sizes of 1 that it knows of beforehand"})
    if (error.find(text) != std::string::npos) return true;
  return false;
}

using Call = std::function<Tensors(const Tensors&)>;

/// A call and, with a tape, the gradients of what it gives by arguments, captured tensors and Variables.
Tensors called(Instance& instance, const Call& call, const Tensors& arguments, Way way) {
  if (way != Way::tape) return call(arguments);
  GradientTape tape({.persistent = true});
  for (const Tensor& t : arguments)
    if (is_floating(t.dtype())) tape.watch(t);
  for (const Tensor& t : instance.captured) tape.watch(t);
  Tensors out = call(arguments);
  Tensor target = zeros({}, instance.program.real);
  for (const Tensor& t : out)
    if (is_floating(t.dtype())) target = target + sum(tanh(t * 0.25));
  std::vector<Tensor> sources;
  for (const Tensor& t : arguments)
    if (is_floating(t.dtype())) sources.push_back(t);
  sources.insert(sources.end(), instance.captured.begin(), instance.captured.end());
  auto known = [&](const Tensor& d, const Tensor& like) {
    return d.defined() ? d : zeros_like(like) + instance.program.undefined_gradient();
  };
  for (const Tensor& source : sources) out.push_back(known(tape.gradient(target, source), source));
  for (const Variable& v : instance.variables) out.push_back(known(tape.gradient(target, v), v.read()));
  return out;
}

/// The program written to a file and loaded, which has Variables of its own: they are those of the instance before and
/// after every call.
class ExportedProgram {
 public:
  ExportedProgram(Instance& instance, const MainFunction& f, std::vector<Variable> handed)
      : instance_(instance), f_(f), handed_(std::move(handed)) {
    std::string pattern = (std::filesystem::temp_directory_path() / "stet_program_XXXXXX").string();
    const int file = ::mkstemp(pattern.data());
    if (file >= 0) ::close(file);
    path_ = pattern;
  }
  ~ExportedProgram() { std::filesystem::remove(path_); }

  Tensors call(const Tensors& arguments) {
    if (open_ && !loaded_.defined()) {
      try {
        load(signature());
      } catch (const Error&) {
        open_ = false;  // host code asks for sizes, or the sizes that stand for open ones do not fit
      }
    }
    if (!open_) return call_for(arguments);
    try {
      return run(arguments);
    } catch (const UserError& error) {
      // What another trace would serve: sizes that are equal, or 1, by chance.
      const std::string text = error.what();
      if (text.find("these sizes do not fit") == std::string::npos &&
          text.find("the signature promises") == std::string::npos)
        throw;
      return call_for(arguments);
    }
  }

 private:
  /// By role, a size is the same wherever it stands.
  std::vector<TensorSpec> signature() const {
    const Program& program = instance_.program;
    std::vector<TensorSpec> out;
    for (int argument : program.arguments) {
      const ValueType& type = program.values[static_cast<std::size_t>(argument)];
      TensorSpec spec{type.dtype, {}, {}};
      for (int role : type.shape) {
        const Role& known = program.roles[static_cast<std::size_t>(role)];
        const std::string name = "r" + std::to_string(role);
        if (known.kind == Role::constant)
          spec.shape.dims.emplace_back(known.a);
        else
          spec.shape.dims.emplace_back(dyn(name));
      }
      out.push_back(std::move(spec));
    }
    return out;
  }
  Tensors call_for(const Tensors& arguments) {
    std::vector<TensorSpec> specs;
    for (const Tensor& argument : arguments) {
      TensorSpec spec{argument.dtype(), {}, {}};
      for (std::int64_t size : argument.shape().sizes()) spec.shape.dims.emplace_back(size);
      specs.push_back(std::move(spec));
    }
    const ExportedFunction before = loaded_;
    load(specs);
    Tensors out = run(arguments);
    if (open_) loaded_ = before;
    return out;
  }
  void load(const std::vector<TensorSpec>& specs) {
    Exporter exporter;
    exporter.add_untyped({"program"}, Flat(f_, handed_, specs.size()), specs);
    for (const Variable& v : variables_here()) exporter.name_variable(v, std::to_string(v.id()));
    exporter.write(path_);
    loaded_ = load_function(path_);
  }
  std::vector<Variable> variables_here() const {
    std::vector<Variable> out = instance_.layer_variables();
    out.insert(out.end(), instance_.variables.begin(), instance_.variables.end());
    return out;
  }
  Tensors run(const Tensors& arguments) {
    std::vector<std::pair<Variable, Variable>> same;  // here and there
    const std::vector<Variable> all = variables_here();
    for (const Variable& there : loaded_.variables())
      for (const Variable& here : all)
        if (there.name() == std::to_string(here.id())) same.emplace_back(here, there);
    for (auto& [here, there] : same) there.assign(here.read());
    Tensors out = loaded_(arguments);
    for (auto& [here, there] : same) here.assign(there.read());
    return out;
  }

  /// As a function of tensors alone.
  class Flat : public FunctionBase {
   public:
    Flat(const MainFunction& f, std::vector<Variable> handed, std::size_t arity)
        : FunctionBase("flat", arity,
                       [f, handed = std::move(handed)](const inside::Leaves& leaves) {
                         Tensors arguments;
                         for (const inside::Leaf& leaf : leaves) arguments.push_back(leaf.value);
                         inside::Leaves out;
                         structure::Of<Tensors>::write(f(arguments, handed), out);
                         return out;
                       },
                       {}, {}) {}
  };

  Instance& instance_;
  const MainFunction& f_;
  std::vector<Variable> handed_;
  std::string path_;
  ExportedFunction loaded_;
  bool open_ = true;
};

}  // namespace

Run run_all(const Program& program, Way way, bool traced) {
  Run run;
  // Inner functions are plain C++ in the eager run, except where that they are traced is what is tried.
  Instance instance(program, !traced && way != Way::verified);
  std::vector<Variable> handed = instance.handed_in();
  auto body = [&](Tensors x, std::vector<Variable> v) { return instance.run(x, v); };
  std::optional<MainFunction> f;
  Call call = [&](const Tensors& x) { return instance.run(x, handed); };
  if (traced && way != Way::verified) {
    f.emplace("program", body);
    call = [&](const Tensors& x) { return (*f)(x, handed); };
  }
  std::optional<ExportedProgram> exported;
  if (traced && way == Way::exported) {
    exported.emplace(instance, *f, handed);
    call = [&](const Tensors& x) { return exported->call(x); };
  }
  std::optional<Function<Tensors(Tensors)>> outer;
  if (traced && way == Way::nested) {
    outer.emplace("outer", [&](Tensors x) {
      Tensors out = (*f)(x, handed);
      out.push_back(sum(x[0]));
      return out;
    });
    call = [&](const Tensors& x) { return (*outer)(x); };
  } else if (way == Way::nested) {
    call = [&](const Tensors& x) {
      Tensors out = instance.run(x, handed);
      out.push_back(sum(x[0]));
      return out;
    };
  }
  for (std::size_t i = 0; i < program.size_sets.size(); ++i) {
    Outcome out;
    Tensors arguments = arguments_of(program, i);
    std::vector<Tensor> before;
    for (const Variable& v : instance.variables) before.push_back(v.read());
    random::seed(program.seed + i);
    auto one = [&] {
      try {
        write_down(out, called(instance, call, arguments, way));
      } catch (const std::exception& error) {
        out = {};
        std::string text = error.what();
        out.error = text.substr(0, text.find('\n'));
        out.refused = (traced && may_be_refused(text)) ||
                      text.find(" takes no turn: one was looked at for the types") != std::string::npos;
        // A traced call that fails has changed nothing; eagerly the writes before the error have happened.
        if (!traced || way == Way::verified)
          for (std::size_t v = 0; v < before.size(); ++v) instance.variables[v].assign(before[v]);
      }
    };
    if (way == Way::thread && i % 2 == 1)
      std::thread(one).join();
    else
      one();
    if (way == Way::clear && f && i % 2 == 0) f->clear();
    write_down(out, instance.state());
    run.calls.push_back(std::move(out));
  }
  FunctionBase* asked = outer ? static_cast<FunctionBase*>(&*outer) : f ? static_cast<FunctionBase*>(&*f) : nullptr;
  if (asked) run.traces = asked->trace_count(), run.explanation = asked->explain();
  return run;
}

}  // namespace stet::random_programs
