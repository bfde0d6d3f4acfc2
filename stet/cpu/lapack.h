// The routines of LAPACK and BLAS that are used, for both types under one name, and the scratch memory they need.
// Matrices are column-major: a row-major matrix is its transpose.
#pragma once
#include <cstddef>

namespace stet::cpu {

/// While one lives, this thread may call LAPACK: it has the memory that OpenBLAS asks for. UserError if there is none.
class LapackMemory {
 public:
  LapackMemory();
  ~LapackMemory();
  LapackMemory(const LapackMemory&) = delete;
  LapackMemory& operator=(const LapackMemory&) = delete;
};

}  // namespace stet::cpu

namespace stet::cpu::lapack {

using Length = std::size_t;  // of a text argument, after all others

// Every routine as `name(…)` for float and double. Arguments are LAPACK's, by value where it only reads a number.
#define STET_LAPACK(T, p)                                                                                            \
  extern "C" {                                                                                                       \
  void p##potrf_(const char*, const int*, T*, const int*, int*, Length);                                             \
  void p##getrf_(const int*, const int*, T*, const int*, int*, int*);                                                \
  void p##laswp_(const int*, T*, const int*, const int*, const int*, const int*, const int*);                        \
  void p##trsm_(const char*, const char*, const char*, const char*, const int*, const int*, const T*, const T*,      \
                const int*, T*, const int*, Length, Length, Length, Length);                                         \
  void p##trsv_(const char*, const char*, const char*, const int*, const T*, const int*, T*, const int*, Length,     \
                Length, Length);                                                                                     \
  void p##gemm_(const char*, const char*, const int*, const int*, const int*, const T*, const T*, const int*,        \
                const T*, const int*, const T*, T*, const int*, Length, Length);                                     \
  void p##syrk_(const char*, const char*, const int*, const int*, const T*, const T*, const int*, const T*, T*,      \
                const int*, Length, Length);                                                                         \
  void p##gelqf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);                                  \
  void p##orglq_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);                \
  void p##gesdd_(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, T*,        \
                 const int*, int*, int*, Length);                                                                    \
  void p##syevd_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*, const int*, int*,   \
                 Length, Length);                                                                                    \
  }                                                                                                                  \
  inline int potrf(char uplo, int n, T* a, int lda) {                                                                \
    int info = 0;                                                                                                    \
    p##potrf_(&uplo, &n, a, &lda, &info, 1);                                                                         \
    return info;                                                                                                     \
  }                                                                                                                  \
  inline int getrf(int m, int n, T* a, int lda, int* pivots) {                                                       \
    int info = 0;                                                                                                    \
    p##getrf_(&m, &n, a, &lda, pivots, &info);                                                                       \
    return info;                                                                                                     \
  }                                                                                                                  \
  inline void laswp(int n, T* a, int lda, int first, int last, const int* pivots) {                                  \
    int step = 1;                                                                                                    \
    p##laswp_(&n, a, &lda, &first, &last, pivots, &step);                                                            \
  }                                                                                                                  \
  inline void trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a, int lda, T* b, int ldb) {  \
    T one = 1;                                                                                                       \
    p##trsm_(&side, &uplo, &trans, &diag, &m, &n, &one, a, &lda, b, &ldb, 1, 1, 1, 1);                               \
  }                                                                                                                  \
  inline void trsv(char uplo, char trans, char diag, int n, const T* a, int lda, T* x) {                             \
    int step = 1;                                                                                                    \
    p##trsv_(&uplo, &trans, &diag, &n, a, &lda, x, &step, 1, 1, 1);                                                  \
  }                                                                                                                  \
  inline void gemm(char transa, char transb, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, \
                   T beta, T* c, int ldc) {                                                                          \
    p##gemm_(&transa, &transb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);                          \
  }                                                                                                                  \
  inline void syrk(char uplo, char trans, int n, int k, T alpha, const T* a, int lda, T beta, T* c, int ldc) {       \
    p##syrk_(&uplo, &trans, &n, &k, &alpha, a, &lda, &beta, c, &ldc, 1, 1);                                          \
  }                                                                                                                  \
  inline int gelqf(int m, int n, T* a, int lda, T* tau, T* work, int lwork) {                                        \
    int info = 0;                                                                                                    \
    p##gelqf_(&m, &n, a, &lda, tau, work, &lwork, &info);                                                            \
    return info;                                                                                                     \
  }                                                                                                                  \
  inline int orglq(int m, int n, int k, T* a, int lda, const T* tau, T* work, int lwork) {                           \
    int info = 0;                                                                                                    \
    p##orglq_(&m, &n, &k, a, &lda, tau, work, &lwork, &info);                                                        \
    return info;                                                                                                     \
  }                                                                                                                  \
  inline int gesdd(char job, int m, int n, T* a, int lda, T* s, T* u, int ldu, T* vt, int ldvt, T* work, int lwork,  \
                   int* iwork) {                                                                                     \
    int info = 0;                                                                                                    \
    p##gesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork, iwork, &info, 1);                          \
    return info;                                                                                                     \
  }                                                                                                                  \
  inline int syevd(char job, char uplo, int n, T* a, int lda, T* w, T* work, int lwork, int* iwork, int liwork) {    \
    int info = 0;                                                                                                    \
    p##syevd_(&job, &uplo, &n, a, &lda, w, work, &lwork, iwork, &liwork, &info, 1, 1);                               \
    return info;                                                                                                     \
  }

STET_LAPACK(float, s)
STET_LAPACK(double, d)
#undef STET_LAPACK

}  // namespace stet::cpu::lapack
