/* SPDX-License-Identifier: Apache-2.0
 * oneDNN's wheel is built for GNU OpenMP. Its private copy (cmake/private_library.cmake) finds this
 * small library in libgomp's place, which passes the ten functions that oneDNN calls on to the
 * engine: so there is no OpenMP in it. Until the engine has come, every team has one member. It
 * also keeps oneDNN's objects from being destroyed when the process ends. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct anymps_teams {
  /* A team of so many members is to call work(data) once each; the caller is member 0, and calls it
   * itself between the two. 0 members: as many as most() says. */
  void (*begin)(void (*work)(void* data), void* data, unsigned members);
  void (*end)(void);
  int (*most)(void);   /* members of the next team */
  int (*count)(void);  /* members of the team that the caller works for */
  int (*number)(void); /* which of them the caller is */
};

__attribute__((visibility("default"))) void anymps_use_teams(const struct anymps_teams* teams);

#ifdef __cplusplus
}
#endif
