// Random programs of all rows of the table: being in the table, with samples, is enough to be in here. Each program
// runs eagerly, traced at two sizes by one trace, under tapes of first and second order, with a part of it in a
// function of its own, and on the reference device; all must agree.
//
// No row is exempt. What is left out: of svd_full the bases of what the matrix maps to 0 and does not reach, which may
// be any; convolutions get no NaN or infinity, because whether the zeros beside an image are multiplied is open; sizes
// that depend on values flow on through maps and sums.
//
//   STET_TABLE_PROGRAMS_COUNT    how many programs (default: as many as it takes to use every row once)
//   STET_TABLE_PROGRAMS_SEED     of all of them (default: a fresh one)
//   STET_TABLE_PROGRAMS_ONLY     the number of the one program to run
//
// Bounds. Sums come in another order when ops are fused, and the reference device computes in double precision. A first
// look allows 64 units of rounding of a result's largest element. What is beyond is compared with what noise of a few
// units in the last place on all operands and results does to the same eager program: what rounding decides (a
// comparison, a sort, a matrix close to singular) shows there as a large spread, and what differs by more than the
// spread is a failure.
#include "tests/ops/table_programs.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <set>

#include "stet/core/function.h"
#include "stet/core/tape.h"
#include "tests/reference/reference_device.h"
#include "tests/scale.h"

namespace stet::table_programs {
namespace {

using op_test::Value;

/// What is compiled for programs that never come again is not kept.
class TablePrograms : public op_test::OpTest {
 protected:
  void SetUp() override {
    OpTest::SetUp();
    folder_ = std::filesystem::temp_directory_path() / text("stet-table-programs-", getpid());
    cpu::set_cache_folder(folder_);
  }
  void TearDown() override {
    OpTest::TearDown();
    std::filesystem::remove_all(folder_);
  }

 private:
  std::filesystem::path folder_;
};

// --- what a program computes

enum class Order : std::uint8_t { results, gradients, second };

using InnerFunction = Function<Tensors(Tensors, Tensors)>;

std::size_t half_of(const Program& program) { return program.statements.size() / 2; }
/// The numbers of the values that the first half makes.
std::vector<std::size_t> made_by_half(const Program& program) {
  std::vector<std::size_t> out;
  for (std::size_t s = 0; s < half_of(program); ++s)
    for (std::size_t r = 0; r < program.statements[s].row->result_count(); ++r)
      out.push_back(static_cast<std::size_t>(program.statements[s].first) + r);
  return out;
}
Tensors results_of(const Program& program, const Machine& machine) {
  Tensors out;
  for (int number : program.results) out.push_back(machine.values[static_cast<std::size_t>(number)]);
  return out;
}

/// Forward, the second half by `inner` if there is one.
Tensors forward(const Program& program, const Tensors& arguments, Noise* noise, const InnerFunction* inner) {
  Machine machine(program, noise);
  machine.run(0, inner ? half_of(program) : program.statements.size(), arguments);
  if (!inner) return results_of(program, machine);
  Tensors made;
  for (std::size_t number : made_by_half(program)) made.push_back(machine.values[number]);
  return (*inner)(made, arguments);
}

/// What `inner` is: the second half of the program.
InnerFunction second_half(const Program& program) {
  return function("second_half(values, arguments)", [&program](Tensors made, Tensors arguments) {
    Machine machine(program);
    std::vector<std::size_t> numbers = made_by_half(program);
    for (std::size_t i = 0; i < numbers.size(); ++i) machine.values[numbers[i]] = made[i];
    machine.run(half_of(program), program.statements.size(), arguments);
    return results_of(program, machine);
  });
}

/// Fixed numbers, one for each element.
Tensor weights_for(const Tensor& value, bool late) {
  if (late) return tensor(0.5);
  return reshape(cast(mod(arange(value.size()), 7), DType::f64) * 0.25 - 0.625, value.shape());
}

/// A number that all floating results count in.
Tensor loss_of(const Program& program, const Tensors& results) {
  Tensor out;
  for (std::size_t r = 0; r < results.size(); ++r) {
    const ValueInfo& info = program.values[static_cast<std::size_t>(program.results[r])];
    if (!is_floating(info.dtype)) continue;
    Tensor value = cast(results[r], DType::f64);
    if (!info.finite) value = where(isfinite(value), value, 0);
    value = tanh(value * (1 / std::max(1.0, info.largest)));
    Tensor part = sum(value * weights_for(value, info.late));
    out = out.defined() ? out + part : part;
  }
  return out;
}

using Forward = std::function<Tensors(const Tensors&)>;

Tensors floating_of(const Tensors& tensors) {
  Tensors out;
  for (const Tensor& tensor : tensors)
    if (is_floating(tensor.dtype())) out.push_back(tensor);
  return out;
}
/// Gradients with zeros for what is not reached.
Tensors gradients_by(GradientTape& tape, const Tensor& target, const Tensors& sources) {
  Tensors out = target.defined() ? tape.gradient(target, sources) : Tensors(sources.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!out[i].defined()) out[i] = zeros_like(sources[i]);
  return out;
}

/// Results, then gradients of the loss by all floating arguments; of second order, those of a weighted sum of these.
Tensors evaluate(const Program& program, Order order, const Tensors& arguments, const Forward& run) {
  if (order == Order::results) return run(arguments);
  Tensors sources = floating_of(arguments);
  if (order == Order::gradients) {
    GradientTape tape;
    for (const Tensor& source : sources) tape.watch(source);
    Tensors out = run(arguments);
    Tensors gradients = gradients_by(tape, loss_of(program, out), sources);
    out.insert(out.end(), gradients.begin(), gradients.end());
    return out;
  }
  GradientTape outer;
  for (const Tensor& source : sources) outer.watch(source);
  Tensors first;
  {
    GradientTape inner;
    for (const Tensor& source : sources) inner.watch(source);
    Tensor loss = loss_of(program, run(arguments));
    first = gradients_by(inner, loss, sources);
  }
  Tensor total;
  for (const Tensor& gradient : first) {
    Tensor part = sum(cast(gradient, DType::f64) * weights_for(gradient, false));
    total = total.defined() ? total + part : part;
  }
  Tensors second = gradients_by(outer, total, sources);
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// --- comparison

/// What noise does to the results: the seed of it is handed in.
using Noisy = std::function<Tensors(std::uint64_t seed)>;

bool alike(Value a, Value b, Value allowed) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  return std::abs(a - b) <= allowed;  // false if one is NaN or infinite
}

/// Elements beyond the first look that noise explains: by its spread, and because they are not finite under it.
std::uint64_t excused[2] = {};
/// Gradients that rows refuse, eagerly and traced alike.
std::uint64_t refused = 0;

/// The results under noise, made when they are asked for.
class Spread {
 public:
  explicit Spread(const Noisy& noisy) : noisy_(noisy) {}

  const std::vector<Tensors>& runs() {
    for (std::uint64_t seed = 0; runs_.size() < 16; ++seed) runs_.push_back(noisy_(seed));
    return runs_;
  }
  bool moves_sizes_of(std::size_t result, const Tensor& expected) {
    return std::ranges::any_of(
        runs(), [&](const Tensors& run) { return op_test::sizes_of(run[result]) != op_test::sizes_of(expected); });
  }
  /// How far noise moves each element of a result; infinite where it decides what is a number, and which sizes.
  const Values& of(std::size_t result, const Values& expected) {
    Values& out = off_[result];
    if (!out.empty()) return out;
    out.assign(expected.size(), 0);
    for (const Tensors& run : runs()) {
      Values other = op_test::values_of(run[result]);
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (other.size() == out.size() && alike(expected[i], other[i], 0)) continue;
        Value off = other.size() == out.size() ? std::abs(other[i] - expected[i]) : NAN;
        out[i] = std::isfinite(off) ? std::max(out[i], off) : INFINITY;
      }
    }
    return out;
  }

 private:
  const Noisy& noisy_;
  std::vector<Tensors> runs_;
  std::map<std::size_t, Values> off_;
};

/// The text of the first difference. `in_turn`: one side adds up one term after the other, in double precision; then
/// roundings of like terms go the same way, which noise does not show.
std::optional<std::string> difference(const Tensors& expected, const Tensors& got, const Noisy& noisy,
                                      bool in_turn = false) {
  if (expected.size() != got.size()) return text(got.size(), " results, not ", expected.size());
  Spread spread(noisy);
  for (std::size_t r = 0; r < expected.size(); ++r) {
    DType dtype = expected[r].dtype();
    if (dtype != got[r].dtype() || op_test::sizes_of(expected[r]) != op_test::sizes_of(got[r])) {
      if (dtype == got[r].dtype() && spread.moves_sizes_of(r, expected[r])) continue;
      return text("result ", r, " is ", text(got[r].dtype(), got[r].shape()), ", not ",
                  text(dtype, expected[r].shape()));
    }
    Values a = op_test::values_of(expected[r]), b = op_test::values_of(got[r]);
    Value unit = is_floating(dtype) ? op_test::unit_roundoff(dtype) : 0, scale = 0;
    for (Value one : a)
      if (std::isfinite(one)) scale = std::max(scale, std::abs(one));
    Value first_look = (in_turn && dtype == DType::f64 ? 2000 : 64) * unit * scale;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (alike(a[i], b[i], first_look)) continue;
      Value off = spread.of(r, a)[i], allowed = first_look + 32 * off;
      if (std::isfinite(off) && !alike(a[i], b[i], allowed))
        return text("result ", r, " ", text(dtype, expected[r].shape()), ", element ", i, ": ",
                    static_cast<double>(b[i]), ", not ", static_cast<double>(a[i]), " (allowed ",
                    static_cast<double>(allowed), ")");
      ++excused[std::isfinite(off) ? 0 : 1];
    }
  }
  return {};
}

// --- the ways to run a program

// Of the last four, each program goes one.
enum class Way : std::uint8_t { traced, gradients, reference, tape, second, inner, reference_traced };
constexpr Way all_ways[] = {Way::traced, Way::gradients, Way::reference,       Way::tape,
                            Way::second, Way::inner,     Way::reference_traced};
const char* name_of(Way way) {
  static constexpr const char* names[] = {"traced",
                                          "traced with its gradients",
                                          "op by op on the reference device",
                                          "traced, under an eager tape",
                                          "traced with gradients of second order",
                                          "traced, the second half in a function of its own",
                                          "traced on the reference device"};
  return names[static_cast<int>(way)];
}
Order order_of(const Program& program, Way way) {
  if (way == Way::second) return Order::second;
  if (way == Way::reference_traced && program.seed % 2 == 0) return Order::gradients;
  return way == Way::gradients || way == Way::tape || way == Way::inner ? Order::gradients : Order::results;
}

Tensor moved(const Tensor& tensor) { return on_device(tensor, reference_device()); }

/// Each row on the reference device with exactly the operands that it had here.
std::optional<std::string> reference_difference(const Program& program, std::size_t call) {
  Machine machine(program);
  machine.run(0, program.statements.size(), arguments_of(program, call));
  for (std::size_t s = 0; s < program.statements.size(); ++s) {
    const Statement& statement = program.statements[s];
    Tensors there, expected;
    for (const Tensor& operand : machine.operands[s]) there.push_back(moved(operand));
    Tensor carrier = machine.carriers[s].defined() ? moved(machine.carriers[s]) : Tensor();
    Tensors got = run_statement(statement, there, carrier);
    for (std::size_t r = 0; r < got.size(); ++r) {
      if (got[r].node()->device() != &reference_device()) return text(statement.row->name, " left the device");
      got[r] = on_host(got[r]);
      expected.push_back(machine.values[static_cast<std::size_t>(statement.first) + r]);
    }
    auto noisy = [&](std::uint64_t seed) {
      Noise noise(seed);
      Tensors operands;
      bool definite = std::ranges::any_of(statement.operands,
                                          [](const Operand& operand) { return operand.sample.draw == Draw::definite; });
      for (const Tensor& operand : machine.operands[s]) operands.push_back(definite ? operand : noise.on(operand));
      Tensors out = run_statement(statement, operands, machine.carriers[s]);
      for (Tensor& one : out) one = noise.on(one);
      return out;
    };
    if (std::optional<std::string> found = difference(expected, got, noisy, true))
      return text(statement.row->name, " gives v", statement.first, "…: ", *found);
  }
  return {};
}

std::optional<std::string> difference(const Program& program, Way way) {
  if (way == Way::reference) {
    for (std::size_t call = 0; call < call_count; ++call)
      if (std::optional<std::string> found = reference_difference(program, call))
        return text("call ", call, ": ", *found);
    return {};
  }
  Order order = order_of(program, way);
  Forward plain = [&](const Tensors& arguments) { return forward(program, arguments, nullptr, nullptr); };
  InnerFunction inner = second_half(program);
  Function<Tensors(Tensors)> whole("program", [&](Tensors arguments) {
    if (way == Way::tape) return plain(arguments);
    Forward run =
        way == Way::inner ? [&](const Tensors& given) { return forward(program, given, nullptr, &inner); } : plain;
    return evaluate(program, order, arguments, run);
  });
  // The first call comes again: from what the thread remembers of it.
  const std::size_t first = program.larger_first ? 1 : 0;
  for (std::size_t call : {first, 1 - first, first}) {
    Tensors arguments = arguments_of(program, call), expected, got;
    std::string eager_error, traced_error;
    try {
      expected = evaluate(program, order, arguments, plain);
    } catch (const UserError& error) {
      if (order == Order::results) throw;
      eager_error = error.what();
    }
    try {
      if (way == Way::tape) {
        got = evaluate(program, order, arguments, [&](const Tensors& given) { return whole(given); });
      } else if (way == Way::reference_traced) {
        for (Tensor& argument : arguments) argument = moved(argument);
        for (const Tensor& result : whole(arguments)) got.push_back(on_host(result));
      } else {
        got = whole(arguments);
      }
    } catch (const UserError& error) {
      if (eager_error.empty()) return text("call ", call, " throws: ", error.what());
      traced_error = error.what();
    }
    if (eager_error.empty() != traced_error.empty()) return text("call ", call, " does not throw: ", eager_error);
    if (!eager_error.empty()) {
      ++refused;
      return {};
    }
    auto noisy = [&](std::uint64_t seed) {
      Noise noise(seed);
      return evaluate(program, order, arguments_of(program, call),
                      [&](const Tensors& given) { return forward(program, given, &noise, nullptr); });
    };
    if (std::optional<std::string> found = difference(expected, got, noisy, way == Way::reference_traced))
      return text("call ", call, ": ", *found);
  }
  if (whole.trace_count() != 1) return text(whole.trace_count(), " traces:\n", whole.explain());
  return {};
}

std::optional<std::string> tried(const Program& program, Way way) {
  try {
    return difference(program, way);
  } catch (const std::exception& error) {
    return text("throws: ", error.what());
  }
}

// --- smaller programs

/// Without the statements that the results do not need.
Program needed(Program program) {
  std::vector<bool> used(program.values.size());
  for (int number : program.results) used[static_cast<std::size_t>(number)] = true;
  for (std::size_t s = program.statements.size(); s-- > 0;) {
    Statement& statement = program.statements[s];
    bool any = false;
    for (std::size_t r = 0; r < statement.row->result_count(); ++r)
      any = any || used[static_cast<std::size_t>(statement.first) + r];
    if (!any) {
      program.statements.erase(program.statements.begin() + static_cast<std::ptrdiff_t>(s));
      continue;
    }
    for (const Operand& operand : statement.operands)
      if (operand.source >= 0) used[static_cast<std::size_t>(operand.source)] = true;
  }
  return program;
}

/// As small as it gets by fewer results, earlier ones, and arguments instead of values.
Program shrunk(Program program, const std::function<bool(const Program&)>& fails) {
  auto smaller = [&](Program candidate) {
    candidate = needed(std::move(candidate));
    if (!fails(candidate)) return false;
    program = std::move(candidate);
    return true;
  };
  for (std::size_t number = 0; number < program.values.size(); ++number) {
    Program candidate = program;
    candidate.results = {static_cast<int>(number)};
    if (smaller(std::move(candidate))) break;
  }
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; program.results.size() > 1 && i < program.results.size(); ++i) {
      Program candidate = program;
      candidate.results.erase(candidate.results.begin() + static_cast<std::ptrdiff_t>(i));
      again = smaller(std::move(candidate)) || again;
    }
    for (std::size_t s = 0; s < program.statements.size(); ++s)
      for (std::size_t k = 0; s < program.statements.size() && k < program.statements[s].operands.size(); ++k) {
        if (program.statements[s].operands[k].source < 0) continue;
        Program candidate = program;
        candidate.statements[s].operands[k].source = -1;
        again = smaller(std::move(candidate)) || again;
      }
    if (program.views) {
      Program candidate = program;
      candidate.views = false;
      again = smaller(std::move(candidate)) || again;
    }
  }
  return program;
}

// --- the run

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given ? std::strtoull(given, nullptr, 10) : otherwise;
}

constexpr std::size_t rows_per_program = 4;

/// The rows in an order that follows from the seed, some for each program, round and round.
std::vector<const OpDef*> forced_rows(std::uint64_t seed, std::uint64_t number) {
  std::vector<const OpDef*> rows = all_rows(), out;
  std::mt19937_64 random(seed);
  std::shuffle(rows.begin(), rows.end(), random);
  for (std::size_t i = 0; i < rows_per_program; ++i) out.push_back(rows[(number * rows_per_program + i) % rows.size()]);
  return out;
}

std::string running;
void tell_of_crash(int signal) {
  std::fputs(running.c_str(), stdout);
  std::fflush(stdout);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// Silences retraces (they are counted) and keeps accusations of host code, for a while.
class Listening {
 public:
  Listening() {
    on_retrace([](const RetraceEvent&) {});
    on_stale([](const StaleEvent& event) { ADD_FAILURE() << "falsely accused: " << event.explanation; });
    for (int signal : {SIGSEGV, SIGFPE, SIGBUS}) std::signal(signal, tell_of_crash);
  }
  ~Listening() {
    on_retrace({});
    on_stale({});
    for (int signal : {SIGSEGV, SIGFPE, SIGBUS}) std::signal(signal, SIG_DFL);
  }
};

TEST_F(TablePrograms, EveryRowEveryWay) {
  std::size_t rows = all_rows().size();
  std::uint64_t seed = number_from("STET_TABLE_PROGRAMS_SEED", std::random_device{}());
  std::uint64_t count =
      number_from("STET_TABLE_PROGRAMS_COUNT", scaled((rows + rows_per_program - 1) / rows_per_program));
  const bool one = std::getenv("STET_TABLE_PROGRAMS_ONLY") != nullptr;
  const std::uint64_t begin = number_from("STET_TABLE_PROGRAMS_ONLY", 0), end = one ? begin + 1 : count;
  Listening listening;
  std::set<const OpDef*> used;
  std::uint64_t statements = 0, runs = 0, failures = 0;
  for (std::uint64_t number = begin; number < end; ++number) {
    running = text("STET_TABLE_PROGRAMS_SEED=", seed, " STET_TABLE_PROGRAMS_ONLY=", number, "\n");
    std::vector<const OpDef*> forced = forced_rows(seed, number);
    Program program;
    try {
      program = generate(seed * 0x9E3779B97F4A7C15u + number, forced);
    } catch (const std::exception& error) {
      ADD_FAILURE() << running << "while it grows: " << error.what();
      continue;
    }
    if (one) std::cout << text_of(program);
    statements += program.statements.size();
    for (const Statement& statement : program.statements) used.insert(statement.row);
    for (Way way : all_ways) {
      bool always = way < Way::tape;
      if (program.large && (way == Way::reference || way == Way::reference_traced)) continue;
      if (!always && !one && (number + static_cast<std::uint64_t>(way)) % 4 != 0) continue;
      ++runs;
      std::optional<std::string> found = tried(program, way);
      if (!found) continue;
      ++failures;
      Program small = failures < 20
                          ? shrunk(program, [&](const Program& candidate) { return tried(candidate, way).has_value(); })
                          : program;
      std::optional<std::string> now = tried(small, way);
      ADD_FAILURE() << running << name_of(way) << "\n" << (now ? *now : *found) << "\n" << text_of(small);
      break;
    }
  }
  std::cout << "table programs: seed " << seed << ", " << end - begin << " programs, " << statements << " ops, " << runs
            << " comparisons, " << excused[0] << " and " << excused[1] << " elements explained by noise, " << refused
            << " gradients refused alike, " << failures << " differences" << std::endl;
  if (one || count * rows_per_program < rows) return;
  for (const OpDef* row : all_rows()) EXPECT_TRUE(used.contains(row)) << row->name << " is in no program";
}

}  // namespace
}  // namespace stet::table_programs
