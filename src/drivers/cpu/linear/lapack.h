// SPDX-License-Identifier: Apache-2.0
// The routines of LAPACK that are used, for doubles and complex doubles under one name each.
// Matrices are column-major.
#pragma once

#include <complex>
#include <vector>

extern "C" {
#define ANYMPS_LAPACK(T, getrf, getrs, trtrs, potrf, potrs, potri, sytrf, sytrs, geqrf, orgqr,     \
                      ormqr, gels)                                                                 \
  void getrf(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);            \
  void getrs(const char* trans, const int* n, const int* columns, const T* a, const int* lda,      \
             const int* pivots, T* b, const int* ldb, int* info);                                  \
  void trtrs(const char* uplo, const char* trans, const char* diag, const int* n,                  \
             const int* columns, const T* a, const int* lda, T* b, const int* ldb, int* info);     \
  void potrf(const char* uplo, const int* n, T* a, const int* lda, int* info);                     \
  void potrs(const char* uplo, const int* n, const int* columns, const T* a, const int* lda, T* b, \
             const int* ldb, int* info);                                                           \
  void potri(const char* uplo, const int* n, T* a, const int* lda, int* info);                     \
  void sytrf(const char* uplo, const int* n, T* a, const int* lda, int* pivots, T* work,           \
             const int* lwork, int* info);                                                         \
  void sytrs(const char* uplo, const int* n, const int* columns, const T* a, const int* lda,       \
             const int* pivots, T* b, const int* ldb, int* info);                                  \
  void geqrf(const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* lwork,  \
             int* info);                                                                           \
  void orgqr(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau,         \
             T* work, const int* lwork, int* info);                                                \
  void ormqr(const char* side, const char* trans, const int* m, const int* n, const int* k,        \
             const T* a, const int* lda, const T* tau, T* c, const int* ldc, T* work,              \
             const int* lwork, int* info);                                                         \
  void gels(const char* trans, const int* m, const int* n, const int* columns, T* a,               \
            const int* lda, T* b, const int* ldb, T* work, const int* lwork, int* info);
ANYMPS_LAPACK(double, dgetrf_, dgetrs_, dtrtrs_, dpotrf_, dpotrs_, dpotri_, dsytrf_, dsytrs_,
              dgeqrf_, dorgqr_, dormqr_, dgels_)
ANYMPS_LAPACK(std::complex<double>, zgetrf_, zgetrs_, ztrtrs_, zpotrf_, zpotrs_, zpotri_, zsytrf_,
              zsytrs_, zgeqrf_, zungqr_, zunmqr_, zgels_)
#undef ANYMPS_LAPACK
void zhetrf_(const char* uplo, const int* n, std::complex<double>* a, const int* lda, int* pivots,
             std::complex<double>* work, const int* lwork, int* info);
void zhetrs_(const char* uplo, const int* n, const int* columns, const std::complex<double>* a,
             const int* lda, const int* pivots, std::complex<double>* b, const int* ldb, int* info);
void dgesdd_(const char* job, const int* m, const int* n, double* a, const int* lda, double* s,
             double* u, const int* ldu, double* vt, const int* ldvt, double* work, const int* lwork,
             int* iwork, int* info);
void zgesdd_(const char* job, const int* m, const int* n, std::complex<double>* a, const int* lda,
             double* s, std::complex<double>* u, const int* ldu, std::complex<double>* vt,
             const int* ldvt, std::complex<double>* work, const int* lwork, double* rwork,
             int* iwork, int* info);
void dsyevd_(const char* job, const char* uplo, const int* n, double* a, const int* lda, double* w,
             double* work, const int* lwork, int* iwork, const int* liwork, int* info);
void zheevd_(const char* job, const char* uplo, const int* n, std::complex<double>* a,
             const int* lda, double* w, std::complex<double>* work, const int* lwork, double* rwork,
             const int* lrwork, int* iwork, const int* liwork, int* info);
void dgeev_(const char* left, const char* right, const int* n, double* a, const int* lda,
            double* real, double* imaginary, double* vl, const int* ldvl, double* vr,
            const int* ldvr, double* work, const int* lwork, int* info);
void zgeev_(const char* left, const char* right, const int* n, std::complex<double>* a,
            const int* lda, std::complex<double>* w, std::complex<double>* vl, const int* ldvl,
            std::complex<double>* vr, const int* ldvr, std::complex<double>* work, const int* lwork,
            double* rwork, int* info);
void dgelsd_(const int* m, const int* n, const int* columns, double* a, const int* lda, double* b,
             const int* ldb, double* s, const double* rcond, int* rank, double* work,
             const int* lwork, int* iwork, int* info);
void zgelsd_(const int* m, const int* n, const int* columns, std::complex<double>* a,
             const int* lda, std::complex<double>* b, const int* ldb, double* s,
             const double* rcond, int* rank, std::complex<double>* work, const int* lwork,
             double* rwork, int* iwork, int* info);
void dgelsy_(const int* m, const int* n, const int* columns, double* a, const int* lda, double* b,
             const int* ldb, int* pivots, const double* rcond, int* rank, double* work,
             const int* lwork, int* info);
void zgelsy_(const int* m, const int* n, const int* columns, std::complex<double>* a,
             const int* lda, std::complex<double>* b, const int* ldb, int* pivots,
             const double* rcond, int* rank, std::complex<double>* work, const int* lwork,
             double* rwork, int* info);
}

namespace anymps::cpu {

// Real matrices have no Hermitian and unitary functions: the symmetric and orthogonal ones serve.
template <typename A>
struct Lapack;
#define ANYMPS_LAPACK(A, p, he, ung, unm)      \
  template <>                                  \
  struct Lapack<A> {                           \
    static constexpr auto getrf = p##getrf_;   \
    static constexpr auto getrs = p##getrs_;   \
    static constexpr auto trtrs = p##trtrs_;   \
    static constexpr auto potrf = p##potrf_;   \
    static constexpr auto potrs = p##potrs_;   \
    static constexpr auto potri = p##potri_;   \
    static constexpr auto sytrf = p##sytrf_;   \
    static constexpr auto hetrf = p##he##trf_; \
    static constexpr auto sytrs = p##sytrs_;   \
    static constexpr auto hetrs = p##he##trs_; \
    static constexpr auto geqrf = p##geqrf_;   \
    static constexpr auto orgqr = p##ung##qr_; \
    static constexpr auto ormqr = p##unm##qr_; \
    static constexpr auto gels = p##gels_;     \
  };
ANYMPS_LAPACK(double, d, sy, org, orm)
ANYMPS_LAPACK(std::complex<double>, z, he, ung, unm)
#undef ANYMPS_LAPACK

// A workspace of the size that a first call, which only asks, returns.
template <typename A, typename Call>
void with_workspace(Call&& call) {
  A size = 0;
  int ask = -1;
  call(&size, &ask);
  int count = static_cast<int>(std::real(size));
  if (count < 1) count = 1;
  std::vector<A> work(count);
  call(work.data(), &count);
}

}  // namespace anymps::cpu
