// The rows of the op table as random programs use them: how a call is written, and how it is run.
#pragma once
#include <string>
#include <vector>

#include "builder.h"
#include "stet/stet.h"

namespace stet::random_programs {

struct Operands {
  const Statement& statement;
  const std::vector<Tensor>& in;
  const std::vector<Dim>& sizes;
  DType real;
  std::int64_t number(std::size_t i) const { return statement.numbers[i]; }
  Dim size(std::size_t i) const { return sizes[i]; }
  std::vector<Dim> shape() const { return sizes; }
};

struct Row {
  std::string name;
  /// Writes a call of what is in sight; false if nothing fits. The statement's output is a new value.
  bool (*propose)(Builder&, Statement&, const Row&);
  Tensor (*run)(const Operands&, const Row&);
  // Of elementwise rows:
  int arity = 0;
  std::string dtypes = {};
  double low = 0, high = 0;
  Tensor (*one)(In) = nullptr;
  Tensor (*two)(In, In) = nullptr;
  Tensor (*three)(In, In, In) = nullptr;
};

/// All rows of elementwise.def, taken from there; structured ones, composites and creation, as far as they are written
/// here: for branches, Variables and sizes that depend on values. Programs of every row, by being in the table, are
/// tests/ops/table_programs_test.cpp.
const std::vector<Row>& rows();
const Row& row(const std::string& name);

}  // namespace stet::random_programs
