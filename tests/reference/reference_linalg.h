// Linear algebra as textbooks have it, in double: Cholesky, Gauss with partial pivoting, Householder, Jacobi.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace stet::reference {

class Matrix {
 public:
  Matrix(std::int64_t row_count, std::int64_t column_count)
      : rows(row_count), columns(column_count), elements_(static_cast<std::size_t>(row_count * column_count), 0.0) {}
  static Matrix identity(std::int64_t n) {
    Matrix out(n, n);
    for (std::int64_t i = 0; i < n; ++i) out(i, i) = 1;
    return out;
  }
  double& operator()(std::int64_t i, std::int64_t j) { return elements_[static_cast<std::size_t>(i * columns + j)]; }
  double operator()(std::int64_t i, std::int64_t j) const {
    return elements_[static_cast<std::size_t>(i * columns + j)];
  }
  Matrix transposed() const {
    Matrix out(columns, rows);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) out(j, i) = (*this)(i, j);
    return out;
  }
  std::int64_t rows, columns;

 private:
  std::vector<double> elements_;
};

using List = std::vector<double>;

/// The row of the first pivot that is not positive, or -1.
inline std::int64_t cholesky(const Matrix& x, Matrix& l) {
  for (std::int64_t j = 0; j < x.rows; ++j)
    for (std::int64_t i = j; i < x.rows; ++i) {
      double sum = x(i, j);
      for (std::int64_t k = 0; k < j; ++k) sum -= l(i, k) * l(j, k);
      if (i == j && !(sum > 0 && std::isfinite(sum))) return j;
      l(i, j) = i == j ? std::sqrt(sum) : sum / l(j, j);
    }
  return -1;
}

struct Elimination {
  Matrix factors;                  // l below the diagonal, u from it on
  std::vector<std::int64_t> rows;  // row rows[i] of the matrix became row i
  int sign = 1;
};
inline Elimination eliminate(const Matrix& x) {
  Elimination out{x, std::vector<std::int64_t>(static_cast<std::size_t>(x.rows)), 1};
  std::iota(out.rows.begin(), out.rows.end(), 0);
  Matrix& a = out.factors;
  for (std::int64_t k = 0; k < std::min(x.rows, x.columns); ++k) {
    std::int64_t best = k;
    for (std::int64_t i = k + 1; i < x.rows; ++i)
      if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
    if (best != k) {
      for (std::int64_t j = 0; j < x.columns; ++j) std::swap(a(k, j), a(best, j));
      std::swap(out.rows[static_cast<std::size_t>(k)], out.rows[static_cast<std::size_t>(best)]);
      out.sign = -out.sign;
    }
    if (a(k, k) == 0) continue;
    for (std::int64_t i = k + 1; i < x.rows; ++i) {
      a(i, k) /= a(k, k);
      for (std::int64_t j = k + 1; j < x.columns; ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  return out;
}

inline double determinant(const Matrix& x) {
  Elimination e = eliminate(x);
  double out = e.sign;
  for (std::int64_t i = 0; i < x.rows; ++i) out *= e.factors(i, i);
  return out;
}

/// By cofactors.
inline Matrix adjugate(const Matrix& x) {
  Matrix out(x.rows, x.rows);
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t j = 0; j < x.rows; ++j) {
      Matrix minor(x.rows - 1, x.rows - 1);
      for (std::int64_t r = 0; r + 1 < x.rows; ++r)
        for (std::int64_t c = 0; c + 1 < x.rows; ++c) minor(r, c) = x(r + (r >= i), c + (c >= j));
      out(j, i) = ((i + j) % 2 == 0 ? 1 : -1) * determinant(minor);
    }
  return out;
}

/// op(a) y = b by substitution, in place of b; the row of a 0 on the diagonal, or -1.
inline std::int64_t substitute(const Matrix& given, Matrix& y, bool lower, bool transpose, bool unit_diagonal) {
  Matrix a = transpose ? given.transposed() : given;
  bool forward = lower != transpose;
  for (std::int64_t i = 0; i < a.rows; ++i)
    if (!unit_diagonal && a(i, i) == 0) return i;
  for (std::int64_t step = 0; step < a.rows; ++step) {
    std::int64_t i = forward ? step : a.rows - 1 - step;
    for (std::int64_t j = 0; j < y.columns; ++j) {
      double sum = y(i, j);
      for (std::int64_t k = forward ? 0 : i + 1; k < (forward ? i : a.rows); ++k) sum -= a(i, k) * y(k, j);
      y(i, j) = unit_diagonal ? sum : sum / a(i, i);
    }
  }
  return -1;
}

/// x = q r by reflections, q square, the first diagonal elements of r not negative.
inline std::pair<Matrix, Matrix> qr(const Matrix& x) {
  Matrix q = Matrix::identity(x.rows), r = x;
  std::int64_t k = std::min(x.rows, x.columns);
  for (std::int64_t j = 0; j < k; ++j) {
    double norm = 0;
    for (std::int64_t i = j; i < x.rows; ++i) norm += r(i, j) * r(i, j);
    norm = std::sqrt(norm);
    // As LAPACK does: a column that is done already is not reflected.
    double rest = 0;
    for (std::int64_t i = j + 1; i < x.rows; ++i) rest += std::abs(r(i, j));
    if (norm == 0 || rest == 0) continue;
    List v(static_cast<std::size_t>(x.rows), 0.0);
    for (std::int64_t i = j; i < x.rows; ++i) v[static_cast<std::size_t>(i)] = r(i, j);
    v[static_cast<std::size_t>(j)] += r(j, j) >= 0 ? norm : -norm;
    double squares = std::inner_product(v.begin(), v.end(), v.begin(), 0.0);
    auto reflect = [&](Matrix& m, std::int64_t column) {
      double dot = 0;
      for (std::int64_t i = j; i < m.rows; ++i) dot += v[static_cast<std::size_t>(i)] * m(i, column);
      for (std::int64_t i = j; i < m.rows; ++i) m(i, column) -= 2 * dot / squares * v[static_cast<std::size_t>(i)];
    };
    for (std::int64_t column = 0; column < x.columns; ++column) reflect(r, column);
    for (std::int64_t column = 0; column < x.rows; ++column) reflect(q, column);  // q' so far
    for (std::int64_t i = j + 1; i < x.rows; ++i) r(i, j) = 0;
  }
  for (std::int64_t j = 0; j < k; ++j)
    if (r(j, j) < 0) {
      for (std::int64_t i = 0; i < x.columns; ++i) r(j, i) = -r(j, i);
      for (std::int64_t i = 0; i < x.rows; ++i) q(j, i) = -q(j, i);
    }
  return {q.transposed(), r};
}

/// Whether the largest component of a column is negative.
inline bool points_down(const Matrix& m, std::int64_t column) {
  double best = 0;
  for (std::int64_t i = 0; i < m.rows; ++i)
    if (std::abs(m(i, column)) > std::abs(best)) best = m(i, column);
  return best < 0;
}
inline void turn(Matrix& m, std::int64_t column) {
  for (std::int64_t i = 0; i < m.rows; ++i) m(i, column) = -m(i, column);
}
/// Columns p and q turned by an angle.
inline void rotate(Matrix& m, std::int64_t p, std::int64_t q, double cosine, double sine) {
  for (std::int64_t i = 0; i < m.rows; ++i) {
    double x = m(i, p), y = m(i, q);
    m(i, p) = cosine * x - sine * y;
    m(i, q) = sine * x + cosine * y;
  }
}
/// Columns of m in this order.
inline Matrix ordered(const Matrix& m, const std::vector<std::int64_t>& order) {
  Matrix out = m;
  for (std::size_t j = 0; j < order.size(); ++j)
    for (std::int64_t i = 0; i < m.rows; ++i) out(i, static_cast<std::int64_t>(j)) = m(i, order[j]);
  return out;
}

/// Columns from `known` on become unit vectors that complete the others to a basis.
inline void complete(Matrix& m, std::int64_t known) {
  for (std::int64_t j = known; j < m.columns; ++j) {
    double best = -1;
    List chosen;
    for (std::int64_t unit = 0; unit < m.rows; ++unit) {
      List v(static_cast<std::size_t>(m.rows), 0.0);
      v[static_cast<std::size_t>(unit)] = 1;
      for (int pass = 0; pass < 2; ++pass)
        for (std::int64_t c = 0; c < j; ++c) {
          double dot = 0;
          for (std::int64_t i = 0; i < m.rows; ++i) dot += m(i, c) * v[static_cast<std::size_t>(i)];
          for (std::int64_t i = 0; i < m.rows; ++i) v[static_cast<std::size_t>(i)] -= dot * m(i, c);
        }
      double norm = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
      if (norm <= best) continue;
      best = norm;
      for (double& one : v) one /= norm;
      chosen = v;
    }
    for (std::int64_t i = 0; i < m.rows; ++i) m(i, j) = chosen[static_cast<std::size_t>(i)];
  }
}

struct Singular {
  Matrix u, v;  // square
  List s;
};
/// One-sided Jacobi: columns are turned in pairs until all are orthogonal.
inline Singular svd(const Matrix& x) {
  if (x.rows < x.columns) {
    Singular other = svd(x.transposed());
    return {other.v, other.u, other.s};
  }
  std::int64_t n = x.columns;
  Matrix a = x, v = Matrix::identity(n);
  for (int sweep = 0; sweep < 60; ++sweep)
    for (std::int64_t p = 0; p < n; ++p)
      for (std::int64_t q = p + 1; q < n; ++q) {
        double pp = 0, qq = 0, pq = 0;
        for (std::int64_t i = 0; i < a.rows; ++i) {
          pp += a(i, p) * a(i, p);
          qq += a(i, q) * a(i, q);
          pq += a(i, p) * a(i, q);
        }
        if (std::abs(pq) <= 1e-17 * std::sqrt(pp * qq) || pq == 0) continue;
        double tau = (qq - pp) / (2 * pq), t = (tau >= 0 ? 1 : -1) / (std::abs(tau) + std::sqrt(1 + tau * tau));
        double cosine = 1 / std::sqrt(1 + t * t);
        rotate(a, p, q, cosine, cosine * t);
        rotate(v, p, q, cosine, cosine * t);
      }
  List norms;
  for (std::int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) sum += a(i, j) * a(i, j);
    norms.push_back(std::sqrt(sum));
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
    return norms[static_cast<std::size_t>(i)] > norms[static_cast<std::size_t>(j)];
  });
  Singular out{Matrix(x.rows, x.rows), ordered(v, order), {}};
  std::int64_t known = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    out.s.push_back(norms[static_cast<std::size_t>(order[static_cast<std::size_t>(j)])]);
    if (out.s.back() == 0) continue;
    for (std::int64_t i = 0; i < x.rows; ++i) out.u(i, j) = a(i, order[static_cast<std::size_t>(j)]) / out.s.back();
    known = j + 1;
  }
  complete(out.u, known);
  return out;
}

/// Jacobi: elements beside the diagonal are turned away in pairs of rows and columns. Reads the lower triangle.
inline std::pair<List, Matrix> eigh(const Matrix& x) {
  std::int64_t n = x.rows;
  Matrix a = x, v = Matrix::identity(n);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = i + 1; j < n; ++j) a(i, j) = a(j, i);
  for (int sweep = 0; sweep < 60; ++sweep)
    for (std::int64_t p = 0; p < n; ++p)
      for (std::int64_t q = p + 1; q < n; ++q) {
        if (a(p, q) == 0) continue;
        double tau = (a(q, q) - a(p, p)) / (2 * a(p, q));
        double t = (tau >= 0 ? 1 : -1) / (std::abs(tau) + std::sqrt(1 + tau * tau)), cosine = 1 / std::sqrt(1 + t * t);
        rotate(a, p, q, cosine, cosine * t);
        Matrix turned = a.transposed();
        rotate(turned, p, q, cosine, cosine * t);
        a = turned;
        rotate(v, p, q, cosine, cosine * t);
      }
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) { return a(i, i) < a(j, j); });
  List values;
  for (std::int64_t j : order) values.push_back(a(j, j));
  Matrix vectors = ordered(v, order);
  for (std::int64_t j = 0; j < n; ++j)
    if (points_down(vectors, j)) turn(vectors, j);
  return {values, vectors};
}

}  // namespace stet::reference
