#include "reference.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>

#include "reference_rows.h"

namespace stet::random_programs {
namespace {

/// The interpreter. Tapes follow stet's rules: what is watched, and trainable Variables as they are read, is tracked;
/// what is computed from it is. The derivative by one element of a source comes from running the tape's block again
/// with an infinitesimal added wherever the source is used while it is tracked.
class Interpreter {
 public:
  Interpreter(const Program& program, std::vector<Array> variables, std::vector<Array> captured)
      : p_(program), variables_(std::move(variables)), captured_(std::move(captured)) {
    for (Array& a : variables_) a = fresh(a);
    for (Array& a : captured_) a = fresh(a);
  }

  std::vector<Array> draws;  // what the eager run drew, in order

  std::vector<Array> call(const std::vector<Array>& arguments, Way way) {
    next_draw_ = 0;
    Environment values = empty();
    for (std::size_t i = 0; i < arguments.size(); ++i) values[index(p_.arguments[i])] = fresh(arguments[i]);
    if (way != Way::tape) {
      std::vector<Array> out = block(p_.body, values, {});
      if (way == Way::nested) out.push_back(added_up(values[index(p_.arguments[0])]));
      return out;
    }
    return under_a_tape(values);
  }
  std::vector<Array> state() const { return variables_; }
  void set_state(std::vector<Array> to) { variables_ = std::move(to); }

 private:
  using Environment = std::vector<Array>;
  struct Frame {  // an open tape
    int level = 0;
    bool recording = true;
    std::function<void()> again;  // runs its block once more, from the state it began with
    struct Answer {
      std::vector<Array> arrays;
      int serial = 0;  // the next one after it
    };
    std::vector<Answer> answers;  // to its gradients so far
    std::size_t asked = 0;
  };
  struct Seed {
    bool active = false;
    int serial = -1, variable = -1;
    std::int64_t element = 0;
  };
  struct Reached {  // the gradient to be answered, in a run of the block for it
    Array target;
  };

  static std::size_t index(int id) { return static_cast<std::size_t>(id); }

  Array fresh(Array a) {
    a.serial = serial_++;
    a.variable = -1;
    a.tracked = a.depends = a.uncertain = 0;
    return a;
  }
  Environment empty() {
    Environment values(p_.values.size());
    for (std::size_t i = 0; i < captured_.size(); ++i) values[index(p_.captured_values[i])] = captured_[i];
    return values;
  }

  /// An operand: with the infinitesimals of the sources that it is.
  Array use(const Array& a) const {
    Array out = a;
    for (int level = 0; level < levels; ++level) {
      const Seed& seed = seeds_[level];
      if (!seed.active || !(tracked(a) & (1 << level))) continue;
      bool is_source =
          seed.variable >= 0 ? a.variable == seed.variable && (a.tracked & (1 << level)) : a.serial == seed.serial;
      if (!is_source) continue;
      out.depends |= 1 << level;
      if (seed.element < static_cast<std::int64_t>(out.values.size())) {
        Real& x = out.values[static_cast<std::size_t>(seed.element)];
        x = with_infinitesimal(x, level);
      }
    }
    return out;
  }
  /// Levels of the tapes that follow it.
  int tracked(const Array& a) const {
    auto watched = watched_.find(a.serial);
    return a.tracked | (watched == watched_.end() ? 0 : watched->second);
  }
  int recording() const {
    int mask = 0;
    for (const Frame* frame : frames_)
      if (frame->recording) mask |= 1 << frame->level;
    return mask;
  }

  /// The result of an op: tracked if an operand is.
  Array result(Array a, const std::vector<Array>& operands) {
    a.serial = serial_++;
    a.variable = -1;
    a.tracked = a.depends = 0;
    if (a.real)
      for (const Array& operand : operands) {
        if (!operand.real) continue;
        a.tracked |= tracked(operand) & recording();
        a.depends |= operand.depends;
        a.uncertain |= operand.uncertain;
        a.derived = a.derived || operand.derived;
      }
    // An infinitesimal of a tape that did not follow this op is not passed on.
    for (int level = 0; level < levels; ++level)
      if (!(a.depends & (1 << level)))
        for (Real& x : a.values) x = without(x, level);
    spend(static_cast<std::int64_t>(a.values.size()) + 4);
    return a;
  }
  void spend(std::int64_t steps) {
    steps_ += steps;
    if (steps_ > 3'000'000) throw NotWritten{"takes too long"};
  }
  static Real without(const Real& x, int level) {
    // x - (its part with the infinitesimal)
    Real part = derivative_at(x, level);
    Real unit = with_infinitesimal(Real(0), level);
    return x - part * unit;
  }

  Array computed(const std::string& name, const Statement& s, const std::vector<Array>& in,
                 const std::vector<std::int64_t>& sizes) {
    std::vector<Array> used;
    for (const Array& a : in) used.push_back(use(a));
    return result(evaluate_row(name, s, used, sizes), used);
  }
  Array row_of(const char* name, const std::vector<Array>& in, std::vector<double> reals = {}) {
    Statement s;
    s.name = name;
    s.reals = std::move(reals);
    return computed(name, s, in, {});
  }
  Array added_up(const Array& x) {
    Statement s;
    s.name = "sum";
    s.numbers = {-1, 0};
    return computed("sum", s, {x}, {});
  }

  std::vector<Array> block(const Block& b, Environment values, std::vector<Frame*> tapes) {
    for (const Statement& s : b.statements) statement(s, values, tapes);
    std::vector<Array> out;
    for (int id : b.results) out.push_back(values[index(id)]);
    return out;
  }
  std::vector<Array> routine(const Routine& r, const std::vector<Array>& in) {
    Environment values = empty();
    for (std::size_t i = 0; i < in.size(); ++i) values[index(r.parameters[i])] = in[i];
    return block(r.body, values, {});
  }

  void statement(const Statement& s, Environment& values, const std::vector<Frame*>& tapes) {
    std::vector<Array> in;
    for (int id : s.inputs) in.push_back(values[index(id)]);
    auto give = [&](const std::vector<Array>& results) {
      for (std::size_t i = 0; i < s.outputs.size(); ++i) values[index(s.outputs[i])] = results[i];
    };
    switch (s.kind) {
      case Statement::op: {
        if (s.name == "uniform" || s.name == "normal" || s.name == "randint") {
          if (next_draw_ >= draws.size()) throw NotWritten{"draws"};
          return give({fresh(draws[next_draw_++])});
        }
        std::vector<std::int64_t> sizes;
        for (const SizeSource& from : s.sizes)
          sizes.push_back(from.value < 0 ? from.constant
                                         : values[index(from.value)].sizes[static_cast<std::size_t>(from.axis)]);
        return give({computed(s.name, s, in, sizes)});
      }
      case Statement::read:
        return give({read(s.which)});
      case Statement::assign:
        return give({write(s, in[0])});
      case Statement::decide:
      case Statement::cond:
        return give(block(s.blocks[plain(in[0].values[0]) != 0 ? 0 : 1], values, tapes));
      case Statement::scope:
        return give(block(s.blocks[0], values, tapes));
      case Statement::layer:
        if (p_.layers[index(s.which)].kind != LayerPart::custom) throw NotWritten{"layers with weights or draws"};
        return give(routine(p_.layers[index(s.which)].routine, in));
      case Statement::call:
        return give(routine(p_.functions[index(s.which)], in));
      case Statement::tape: {
        bool persistent = s.numbers[0] != 0;
        return give(with_tape(persistent, [&, values, tapes](Frame& frame) {
          std::vector<Frame*> inner = tapes;
          inner.push_back(&frame);
          return block(s.blocks[0], values, inner);
        }));
      }
      case Statement::watch:
        watched_[in[0].serial] |= recording() & (1 << tapes[index(s.which)]->level);
        return;
      case Statement::gradient:
        return give(bounded_gradient(s, in, *tapes[index(s.which)]));
      case Statement::fail:
        throw std::domain_error("the side that throws");
      case Statement::loop:
        return give(loop(s, in, values));
    }
  }

  std::vector<Array> loop(const Statement& s, const std::vector<Array>& in, const Environment& values) {
    const Turns& turns = s.turns;
    std::vector<Array> carried(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(turns.carried));
    std::int64_t count = turns.count;
    if (turns.sequences > 0) count = in[turns.carried].sizes[0];
    if (turns.kind == Turns::size || turns.kind == Turns::value)
      count = s.sizes[0].value < 0 ? s.sizes[0].constant
                                   : values[index(s.sizes[0].value)].sizes[static_cast<std::size_t>(s.sizes[0].axis)];
    auto run = [&](const Block& b, const std::vector<Array>& given) {
      Environment inner = values;
      spend(static_cast<std::int64_t>(values.size()));
      for (std::size_t i = 0; i < b.parameters.size(); ++i) inner[index(b.parameters[i])] = given[i];
      return block(b, inner, {});
    };
    std::vector<std::vector<Array>> stacks(s.outputs.size() - turns.carried);
    for (std::int64_t turn = 0; turn < count; ++turn) {
      if (turns.kind == Turns::condition && plain(run(s.blocks[1], carried)[0].values[0]) == 0) break;
      const std::int64_t place = turns.reverse ? count - 1 - turn : turn;
      std::vector<Array> given = carried;
      for (std::size_t i = 0; i < turns.sequences; ++i) given.push_back(element(in[turns.carried + i], place));
      if (turns.counted()) {
        Array number = Array::scalar(static_cast<double>(place));
        number.real = false;
        number.dtype = DType::i64;
        given.push_back(fresh(number));
      }
      std::vector<Array> left = run(s.blocks[0], given);
      for (std::size_t i = 0; i < left.size(); ++i) {
        if (i >= turns.carried)
          stacks[i - turns.carried].push_back(left[i]);
        else
          carried[i] = turns.bounded[i] ? row_of("tanh", {left[i]}) : left[i];
      }
    }
    for (std::vector<Array>& stack : stacks) {
      if (stack.empty()) throw NotWritten{"the sizes of results of no turn"};
      if (turns.reverse) std::reverse(stack.begin(), stack.end());
      carried.push_back(stacked(stack));
    }
    return carried;
  }
  Array element(const Array& sequence, std::int64_t place) {
    Array used = use(sequence), out = used;
    out.sizes.erase(out.sizes.begin());
    std::int64_t count = 1;
    for (std::int64_t size : out.sizes) count *= size;
    out.values.assign(used.values.begin() + place * count, used.values.begin() + (place + 1) * count);
    return result(out, {used});
  }
  Array stacked(const std::vector<Array>& elements) {
    std::vector<Array> used;
    for (const Array& a : elements) used.push_back(use(a));
    Array out = used[0];
    out.uncertain = 0;
    out.sizes.insert(out.sizes.begin(), static_cast<std::int64_t>(used.size()));
    for (std::size_t i = 1; i < used.size(); ++i)
      out.values.insert(out.values.end(), used[i].values.begin(), used[i].values.end());
    return result(out, used);
  }

  Array read(int which) {
    Array value = variables_[index(which)];
    if (frames_.empty()) return value;
    int serial = serial_++;
    value.serial = serial;
    value.depends = value.uncertain = 0;
    for (Real& x : value.values) x = Real(plain(x));
    // What an outer tape differentiates may be in the value that was written; a read does not pass it on.
    bool trainable = p_.variables[index(which)].trainable;
    value.tracked = trainable ? recording() : 0;
    value.variable = trainable ? which : -1;
    return value;
  }
  Array write(const Statement& s, const Array& change) {
    Array& held = variables_[index(s.which)];
    if (s.numbers[0] == 0) return held = row_of("tanh", {change});
    Array step = row_of("sin", {change});
    step = row_of("multiply", {step}, {s.numbers[0] == 1 ? 0.5 : 0.25});
    return held = row_of(s.numbers[0] == 1 ? "add" : "subtract", {held, step});
  }

  // --- tapes

  template <class Body>
  std::vector<Array> with_tape(bool persistent, const Body& body) {
    if (frames_.size() >= levels) throw NotWritten{"more tapes than infinitesimals"};
    Frame frame;
    frame.level = static_cast<int>(frames_.size());
    persistent_[frame.level] = persistent;
    auto variables = variables_;
    auto watched = watched_;
    auto frames = frames_;
    int serial = serial_;
    std::size_t draw = next_draw_;
    frame.again = [&, variables, watched, serial, draw, frames] {
      variables_ = variables;
      watched_ = watched;
      frames_ = frames;
      serial_ = serial;
      next_draw_ = draw;
      frame.asked = 0;
      frame.recording = true;
      frames_.push_back(&frame);
      body(frame);
    };
    frames_.push_back(&frame);
    std::vector<Array> out = body(frame);
    frames_.pop_back();
    for (Array& a : out) a.tracked &= ~(1 << frame.level);
    for (auto& [id, mask] : watched_) mask &= ~(1 << frame.level);
    for (Array& a : variables_) a.tracked &= ~(1 << frame.level);
    return out;
  }

  /// The gradient of the sum of the target by each source; an empty optional where it is undefined.
  std::vector<std::pair<Array, bool>> gradients(const std::vector<Array>& in,
                                                const std::vector<std::int64_t>& variables, Frame& frame) {
    std::size_t number = frame.asked;
    for (int level = frame.level + 1; level < levels; ++level)
      if (seeds_[level].active) throw NotWritten{"an outer tape asked inside an inner one that is differentiated"};
    bool by_derived = std::any_of(in.begin() + 1, in.end(), [](const Array& a) { return a.derived; });
    if (in[0].derived && (by_derived || p_.undefined_gradient() != 0))
      throw NotWritten{"whether a gradient of a gradient is defined"};
    std::vector<std::pair<Array, bool>> out;
    for (std::size_t i = 1; i < in.size() + variables.size(); ++i) {
      Seed seed{.active = true};
      Array like;
      if (i < in.size()) {
        seed.serial = in[i].serial;
        like = in[i];
      } else {
        seed.variable = static_cast<int>(variables[i - in.size()]);
        like = variables_[index(seed.variable)];
      }
      bool defined = false;
      Array derivative = like;
      for (Real& x : derivative.values) x = Real(0);
      auto count = static_cast<std::int64_t>(like.values.size());
      for (std::int64_t e = 0; e < std::max<std::int64_t>(count, 1); ++e) {
        seed.element = e;
        Array target = rerun(frame, number, seed);
        bool depends = target.depends & (1 << frame.level);
        defined = defined || depends;
        if (!depends || e >= count) continue;
        Real total(0);
        for (const Real& x : target.values) total = total + derivative_at(x, frame.level);
        derivative.values[static_cast<std::size_t>(e)] = total;
        derivative.depends |= target.depends & ~(1 << frame.level);
        derivative.tracked |= tracked(target) & ~(1 << frame.level);
        derivative.uncertain |= target.uncertain;
      }
      if (defined && derivative.uncertain) throw TooNear{"a gradient through a step"};
      // A constant derivative does not depend on the source: by another tape it is undefined rather than zero.
      auto zero = [](const Real& x) { return plain(x) == 0; };
      if (defined && count > 0 && p_.undefined_gradient() != 0 &&
          std::all_of(derivative.values.begin(), derivative.values.end(), zero))
        throw NotWritten{"whether a gradient of zeros is defined"};
      derivative.serial = serial_++;
      derivative.variable = -1;
      derivative.derived = true;
      out.emplace_back(derivative, defined);
    }
    return out;
  }

  /// The target of the tape's gradient number `number` when its block is run with the seed.
  Array rerun(Frame& frame, std::size_t number, const Seed& seed) {
    spend(10 * static_cast<std::int64_t>(p_.values.size()));  // all are copied
    auto variables = variables_;
    auto watched = watched_;
    auto frames = frames_;
    auto serial = serial_;
    auto draw = next_draw_;
    auto asked = frame.asked;
    auto recording = frame.recording;
    auto wanted = wanted_[frame.level];
    wanted_[frame.level] = static_cast<int>(number);
    seeds_[frame.level] = seed;
    Array target;
    try {
      frame.again();
      throw std::logic_error("a gradient was not asked again");
    } catch (const Reached& reached) {
      target = reached.target;
    }
    seeds_[frame.level] = Seed{};
    wanted_[frame.level] = wanted;
    variables_ = variables;
    watched_ = watched;
    frames_ = frames;
    serial_ = serial;
    next_draw_ = draw;
    frame.asked = asked;
    frame.recording = recording;
    return target;
  }

  Array undefined(Array d) const {
    for (Real& x : d.values) x = Real(p_.undefined_gradient());
    return d;
  }
  /// As run.cpp gives gradients on: tanh(d / 8), or a number for an undefined one.
  std::vector<Array> bounded_gradient(const Statement& s, const std::vector<Array>& in, Frame& frame) {
    if (wanted_[frame.level] == static_cast<int>(frame.asked)) throw Reached{use(in[0])};
    std::vector<Array> out;
    if (frame.asked < frame.answers.size() && seeds_[frame.level].active) {
      out = frame.answers[frame.asked].arrays;  // given before; the tape does not follow what it gives
      serial_ = frame.answers[frame.asked].serial;
    } else {
      for (auto& [d, defined] : gradients(in, s.numbers, frame)) {
        if (defined) {
          frame.recording = false;  // a tape does not follow its own gradients
          out.push_back(row_of("tanh", {row_of("multiply", {d}, {0.125})}));
          frame.recording = true;
        } else {
          out.push_back(fresh(undefined(d)));
        }
      }
      if (frame.answers.size() == frame.asked) frame.answers.push_back({out, serial_});
    }
    ++frame.asked;
    if (!persistent_[frame.level]) frame.recording = false;
    return out;
  }

  std::vector<Array> under_a_tape(const Environment& values) {
    std::vector<Array> result;
    with_tape(true, [&](Frame& frame) {
      std::vector<Array> sources{Array{}};
      for (int id : p_.arguments)
        if (values[index(id)].real) sources.push_back(values[index(id)]);
      sources.insert(sources.end(), captured_.begin(), captured_.end());
      for (std::size_t i = 1; i < sources.size(); ++i) watched_[sources[i].serial] |= 1 << frame.level;
      std::vector<Array> out = block(p_.body, values, {});
      Array target = Array::scalar(0);
      target = fresh(target);
      for (const Array& a : out)
        if (a.real) target = row_of("add", {target, added_up(row_of("tanh", {row_of("multiply", {a}, {0.25})}))});
      if (wanted_[frame.level] == 0) throw Reached{use(target)};
      sources[0] = target;
      std::vector<std::int64_t> variables;
      for (std::size_t v = 0; v < variables_.size(); ++v) variables.push_back(static_cast<std::int64_t>(v));
      for (auto& [d, defined] : gradients(sources, variables, frame)) out.push_back(defined ? d : undefined(d));
      result = out;
      return std::vector<Array>{};
    });
    return result;
  }

  const Program& p_;
  std::vector<Array> variables_, captured_;
  std::map<int, int> watched_;  // by serial: levels of the tapes that watch it
  std::vector<Frame*> frames_;
  Seed seeds_[levels];
  int wanted_[levels] = {-1, -1, -1};
  bool persistent_[levels] = {};
  int serial_ = 0;
  std::size_t next_draw_ = 0;
  std::int64_t steps_ = 0;
};

Array array_of(const Tensor& t) {
  Array a;
  a.real = is_floating(t.dtype());
  a.dtype = t.dtype();
  for (int i = 0; i < t.rank(); ++i) a.sizes.push_back(t.dim(i).value());
  for (double v : cast(t, DType::f64).to_vector<double>()) a.values.emplace_back(v);
  return a;
}
std::vector<Array> arrays_of(const std::vector<Tensor>& tensors) {
  std::vector<Array> out;
  for (const Tensor& t : tensors) out.push_back(array_of(t));
  return out;
}

void write_down(Outcome& out, const std::vector<Array>& arrays, DType real) {
  for (const Array& a : arrays) {
    std::string type(name(a.real ? real : a.dtype));
    for (std::int64_t size : a.sizes) type += " " + std::to_string(size);
    out.types.push_back(type);
    out.values.emplace_back();
    for (const Real& x : a.values) {
      if (!std::isfinite(plain(x))) throw NotWritten{"numbers that are not finite"};
      out.values.back().push_back(plain(x));
    }
  }
}

}  // namespace

Reference reference_of(const Program& program, Way way) {
  Reference reference;
  // Tapes before and after draws see the same numbers: they are taken from an eager run of the program.
  Instance eager(program, true);
  std::vector<Tensor> variables;
  for (const Variable& v : eager.variables) variables.push_back(v.read());
  Interpreter interpreter(program, arrays_of(variables), arrays_of(eager.captured));
  bool known = true;
  for (std::size_t i = 0; i < program.size_sets.size(); ++i) {
    Outcome out;
    std::vector<Tensor> arguments = arguments_of(program, i), drawn;
    std::vector<Array> before = interpreter.state();
    eager.draws = &drawn;
    random::seed(program.seed + i);
    std::vector<Tensor> state;
    for (const Variable& v : eager.variables) state.push_back(v.read());
    try {
      eager.run(arguments, eager.handed_in());
    } catch (const std::exception&) {
      for (std::size_t v = 0; v < state.size(); ++v) eager.variables[v].assign(state[v]);
    }
    interpreter.draws = arrays_of(drawn);
    if (known) {
      try {
        write_down(out, interpreter.call(arrays_of(arguments), way), program.real);
      } catch (const NotWritten& why) {
        known = false;
      } catch (const TooNear&) {
        known = false;
        reference.ambiguous = true;
      } catch (const std::domain_error& error) {
        out = {};
        out.error = error.what();
        interpreter.set_state(before);
      }
      try {
        if (known) {
          write_down(out, interpreter.state(), program.real);
          std::vector<Array> all = arrays_of(eager.state());
          const auto weights = all.begin() + static_cast<std::ptrdiff_t>(program.variables.size());
          write_down(out, {weights, all.end()}, program.real);  // of layers, which no statement writes
          // The next call begins with the rounded values, as calls do: x - 40 sin(x), call after call, would make any
          // rounding error large.
          interpreter.set_state({all.begin(), weights});
        }
      } catch (const NotWritten&) {
        known = false;
      }
    }
    reference.calls.push_back(out);
    reference.known.push_back(known);
  }
  return reference;
}

}  // namespace stet::random_programs
