#include "stet/cpu/linalg_step.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>

#include "stet/base/dim_inside.h"
#include "stet/base/error.h"
#include "stet/base/text.h"
#include "stet/cpu/linalg.h"
#include "stet/cpu/linalg_blocks.h"

namespace stet::cpu {
namespace {

/// Multiplications that are worth a chunk of their own.
constexpr double chunk_work = 40000;

class BoundLinalg : public BoundStep {
 public:
  BoundLinalg(const LinalgSpec& spec, const Bindings& bindings) : spec_(spec) {
    auto value = [&](const Dim& dim) { return dim.evaluate(bindings); };
    m_ = value(spec.m);
    n_ = value(spec.n);
    right_ = value(spec.right);
    for (const Dim& extent : spec.batch) batch_.push_back(value(extent));
    for (std::int64_t extent : batch_) count_ *= extent;
    for (const LinalgOperand& operand : spec.operands) {
      std::vector<std::int64_t>& strides = strides_.emplace_back();
      for (const Dim& stride : operand.batch_strides) strides.push_back(value(stride));
    }
    if (std::max({m_, n_, right_}) > std::numeric_limits<int>::max() / 2)
      throw Problem(text("matrices of ", std::max({m_, n_, right_}), " rows or columns are too large"));
    auto real = [](std::int64_t size) { return static_cast<double>(std::max<std::int64_t>(size, 1)); };
    double work = real(m_) * real(n_) * real(std::min(m_, n_)) + real(n_) * real(n_) * real(right_);
    per_chunk_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(chunk_work / work));
  }

  void run(void* const* table) const override {
    if (spec_.dtype == DType::f32)
      run_batch<float>(table);
    else
      run_batch<double>(table);
  }

 private:
  template <class T>
  void run_batch(void* const* table) const {
    std::atomic<std::int64_t> failed{count_};  // the first entry that fails, whoever finds it
    std::atomic<std::int64_t> failed_at{0};
    std::mutex guard;
    // A single matrix has the pool to itself.
    for_blocks((count_ + per_chunk_ - 1) / per_chunk_, [&](std::int64_t number) {
      std::int64_t end = std::min(count_, (number + 1) * per_chunk_);
      for (std::int64_t entry = number * per_chunk_; entry < end; ++entry) {
        std::int64_t at = run_one<T>(table, entry);
        if (at == no_failure) continue;
        std::lock_guard lock(guard);
        if (entry < failed) failed = entry, failed_at = at;
        return;
      }
    });
    if (failed < count_) throw_failed_matrix(spec_, batch_, failed, failed_at);
  }

  /// Matrix number `entry` of an operand.
  template <class T>
  const T* operand(void* const* table, std::size_t number, std::int64_t entry) const {
    std::int64_t offset = 0;
    for (std::size_t axis = batch_.size(); axis-- > 0; entry /= batch_[axis])
      offset += entry % batch_[axis] * strides_[number][axis];
    return static_cast<const T*>(table[spec_.operands[number].buffer]) + offset;
  }
  template <class T>
  T* result(void* const* table, std::size_t number, std::int64_t entry, std::int64_t elements) const {
    int buffer = spec_.results[number];
    return buffer < 0 ? nullptr : static_cast<T*>(table[buffer]) + entry * elements;
  }

  template <class T>
  std::int64_t run_one(void* const* table, std::int64_t entry) const {
    const T* x = operand<T>(table, 0, entry);
    std::int64_t k = std::min(m_, n_), left = spec_.full ? m_ : k, lower = spec_.full ? n_ : k;
    auto to = [&](std::size_t number, std::int64_t elements) { return result<T>(table, number, entry, elements); };
    switch (spec_.routine) {
      case LinalgRoutine::cholesky:
        return cholesky(x, to(0, n_ * n_), n_);
      case LinalgRoutine::triangular_solve:
        return triangular_solve(x, operand<T>(table, 1, entry), to(0, n_ * right_), n_, right_,
                                {spec_.lower, spec_.transpose, spec_.unit_diagonal});
      case LinalgRoutine::solve:
        return solve(x, operand<T>(table, 1, entry), to(0, n_ * right_), n_, right_);
      case LinalgRoutine::lu:
        lu(x, result<std::int64_t>(table, 0, entry, m_), to(1, m_ * k), to(2, k * n_), m_, n_);
        return no_failure;
      case LinalgRoutine::determinant:
        determinant(x, to(0, 1), to(1, 1), to(2, 1), n_);
        return no_failure;
      case LinalgRoutine::adjugate:
        return adjugate(x, to(0, n_ * n_), n_);
      case LinalgRoutine::qr:
        qr(x, to(0, m_ * left), to(1, left * n_), m_, n_, spec_.full);
        return no_failure;
      case LinalgRoutine::svd:
        return svd(x, to(0, m_ * left), to(1, k), to(2, lower * n_), m_, n_, spec_.full);
      case LinalgRoutine::eigh:
        return eigh(x, to(0, n_), to(1, n_ * n_), n_);
    }
    return no_failure;
  }

  const LinalgSpec& spec_;
  std::int64_t m_ = 0, n_ = 0, right_ = 0, count_ = 1, per_chunk_ = 1;
  std::vector<std::int64_t> batch_;
  std::vector<std::vector<std::int64_t>> strides_;  // per operand and batch axis
};

}  // namespace

LinalgStep::LinalgStep(LinalgSpec spec) : spec_(std::move(spec)) {
  for (const LinalgOperand& operand : spec_.operands) reads.push_back(operand.buffer);
  for (int buffer : spec_.results)
    if (buffer >= 0) writes.push_back(buffer);
}

std::unique_ptr<BoundStep> LinalgStep::bind(const Bindings& bindings) const {
  return std::make_unique<BoundLinalg>(spec_, bindings);
}

std::string LinalgStep::str() const {
  std::string out = text(name(spec_.routine), " ", spec_.dtype, " m=", spec_.m, " n=", spec_.n);
  for (const Dim& extent : spec_.batch) out += text(" batch=", extent);
  return out + "\n";
}

}  // namespace stet::cpu
