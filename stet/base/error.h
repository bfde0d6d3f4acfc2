// The exceptions of stet. Nothing aborts: a wrong call throws UserError, a bug of ours throws InternalError.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "stet/base/export.h"
#include "stet/base/where.h"

namespace stet {

/// Base of all exceptions that stet throws.
class STET_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Your call is wrong, or memory ran out. The text names the op, its operands with dtypes and shapes, your line, and
/// what to do.
class STET_API UserError : public Error {
 public:
  using Error::Error;
};

/// The value asked for does not exist while a function is being traced.
class STET_API TraceError : public Error {
 public:
  using Error::Error;
};

/// A retrace happened where NoRetrace forbids it.
class STET_API RetraceError : public Error {
 public:
  using Error::Error;
};

/// An audit found that host code would trace differently now, and the function asked for an error (OnStale::error).
class STET_API StaleTraceError : public Error {
 public:
  using Error::Error;
};

/// A traced function does not do what its code does eagerly: verify() or STET_VERIFY=1 found a difference.
class STET_API VerifyError : public Error {
 public:
  using Error::Error;
};

/// A bug in stet.
class STET_API InternalError : public Error {
 public:
  using Error::Error;
};

/// "<what>\n  at <file>:<line>\n  fix: <advice>", leaving out what is unknown. The form of every UserError.
STET_API std::string error_text(const std::string& what, Where where, const std::string& advice);

/// " at <file>:<line>", or nothing where the line is unknown; `before` stands in the place of " at ".
STET_API std::string at_line(Where where, const char* before = " at ");

/// What is wrong with a call, as the code that finds out sees it: without the op's name, operands and line, which the
/// one door `call()` adds when it turns a Problem into a plain UserError. It is itself a UserError because host code
/// also computes with Dims and Shapes outside of any op, where no door stands between.
class STET_API Problem : public UserError {
 public:
  explicit Problem(std::string text, std::string advice = {}, Where where = {})
      : UserError(error_text(text, where, advice)), text_(std::move(text)), advice_(std::move(advice)) {}
  const std::string& text() const { return text_; }
  const std::string& advice() const { return advice_; }

  /// Of a whole program: which op it was ("gather"), and the user's line that called it. Without, the door that the op
  /// came through knows both.
  void found_by(std::string op, Where where) {
    op_ = std::move(op);
    where_ = where;
  }
  const std::string& op() const { return op_; }
  Where where() const { return where_; }

 private:
  std::string text_;
  std::string advice_;
  std::string op_;
  Where where_;
};

/// The words of a public function for an index that one of its ops refuses: "label 5 of sample 1 is not one of the 3
/// classes" is {"label", "of sample", "classes", …}.
struct IndexWords {
  const char* index;
  const char* place;
  const char* among;
  const char* advice;
  bool from_end = false;  // negative ones count from the end, and had the extent added
};

/// An index that is out of range, found while a program ran: the element at flat `position` of an operand is `value`;
/// allowed are 0 to extent - 1.
class STET_API IndexProblem : public Problem {
 public:
  IndexProblem(const std::string& operand, std::int64_t value, std::int64_t position, std::int64_t extent);
  /// The same in other words.
  IndexProblem in(const IndexWords& words) const;

 private:
  IndexProblem(std::string text, std::string advice, const IndexProblem& other);
  std::int64_t value_, position_, extent_;
};

}  // namespace stet
