// What Glibc's Swift module leaves out: GNU extensions and variadic calls.
#ifndef ANTIPHON_CLINUX_SHIM_H
#define ANTIPHON_CLINUX_SHIM_H
// No _GNU_SOURCE here: with it, headers would declare other things than Glibc's module does.
#include <errno.h>
#include <time.h>
#include <fcntl.h>
#include <poll.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// The user at the other end of a Unix socket, or -1 with errno (unix(7), SO_PEERCRED).
static inline int64_t antiphon_peer_user(int fd) {
  struct { int32_t pid; uint32_t uid; uint32_t gid; } credentials;
  socklen_t length = sizeof credentials;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return -1;
  return credentials.uid;
}
// Whether the process at the other end of a Unix socket was in the group when it connected: as its own or as one of
// 64 further ones (SO_PEERGROUPS, Linux 4.13; one that has more is not).
static inline bool antiphon_peer_is_in_group(int fd, uint32_t group) {
  struct { int32_t pid; uint32_t uid; uint32_t gid; } credentials;
  socklen_t length = sizeof credentials;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return false;
  if (credentials.gid == group) return true;
  uint32_t groups[64];
  length = sizeof groups;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &length) != 0) return false;
  for (socklen_t index = 0; index < length / sizeof *groups; index++) {
    if (groups[index] == group) return true;
  }
  return false;
}
static inline int antiphon_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
// Wakes of the calling thread are not delayed to be merged with others (prctl(2)).
static inline void antiphon_set_exact_wakeups(void) { prctl(PR_SET_TIMERSLACK, 1UL); }
static inline int antiphon_thread_id(void) { return (int)syscall(SYS_gettid); }
// Few arenas: as many threads as cores use the heap at once, and each arena keeps its own free memory.
static inline void antiphon_limit_heap_arenas(int count) { mallopt(M_ARENA_MAX, count); }
// What takes this or more goes back to the system when it is freed. By itself malloc raises the number with what it
// sees, and keeps what is smaller.
static inline void antiphon_return_freed_blocks(int byte_count) { mallopt(M_MMAP_THRESHOLD, byte_count); }
static inline void antiphon_set_thread_name(const char *name) { prctl(PR_SET_NAME, name); }
int ppoll(struct pollfd *, nfds_t, const struct timespec *, const __sigset_t *);
// ppoll(2), with the longest wait in nanoseconds; negative for no end.
static inline int antiphon_poll(struct pollfd *descriptors, nfds_t count, int64_t nanoseconds) {
  struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  return ppoll(descriptors, count, nanoseconds < 0 ? NULL : &time, NULL);
}
static inline int antiphon_open_read(const char *path) {
  return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}
#endif
