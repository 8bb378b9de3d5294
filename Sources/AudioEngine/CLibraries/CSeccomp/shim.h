// libseccomp, with the macro that Swift cannot import as a function.
#ifndef ANTIPHON_CSECCOMP_SHIM_H
#define ANTIPHON_CSECCOMP_SHIM_H
#include <seccomp.h>

static inline uint32_t antiphon_seccomp_refuse(uint16_t error) { return SCMP_ACT_ERRNO(error); }
static const uint32_t antiphon_seccomp_allow = SCMP_ACT_ALLOW;
static const uint32_t antiphon_seccomp_kill = SCMP_ACT_KILL_PROCESS;
#endif
