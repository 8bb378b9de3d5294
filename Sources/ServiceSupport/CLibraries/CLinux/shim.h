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
#include <spawn.h>
#include <sys/uio.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// Asks for memory that is about to be read, where it is not in a cache yet. Any address will do.
static inline void antiphon_prefetch(const void *address) { __builtin_prefetch(address); }
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
// A message of whole records, a header and a payload, and with it a descriptor where it is not negative (unix(7)).
// Returns 0, or -1 with errno: EAGAIN where there is no room and it does not wait.
static inline int antiphon_send_message(
    int fd, const void *header, size_t header_count, const void *payload, size_t payload_count, int passed, bool waits) {
  struct iovec parts[2] = {{(void *)header, header_count}, {(void *)payload, payload_count}};
  union { struct cmsghdr header; char bytes[CMSG_SPACE(sizeof(int))]; } control;
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = payload_count > 0 ? 2 : 1};
  if (passed >= 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof control.bytes;
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    *(int *)(void *)CMSG_DATA(&control.header) = passed;
  }
  ssize_t count;
  do count = sendmsg(fd, &message, MSG_NOSIGNAL | (waits ? 0 : MSG_DONTWAIT)); while (count < 0 && errno == EINTR);
  return count < 0 ? -1 : 0;
}
// The next message's length; 0 at the end; -1 with errno. *passed is the descriptor that came with it, or -1; where
// passed is null, the kernel keeps none of those that came.
static inline ssize_t antiphon_receive_message(int fd, void *bytes, size_t count, int *passed) {
  struct iovec part = {bytes, count};
  union { struct cmsghdr header; char bytes[CMSG_SPACE(sizeof(int))]; } control;
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (passed) {
    message.msg_control = &control;
    message.msg_controllen = sizeof control.bytes;
  }
  ssize_t received;
  do received = recvmsg(fd, &message, 0x40000000 /* MSG_CMSG_CLOEXEC */); while (received < 0 && errno == EINTR);
  if (!passed) return received;
  *passed = -1;
  if (received < 0) return received;
  struct cmsghdr *first = CMSG_FIRSTHDR(&message);
  if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_RIGHTS && first->cmsg_len == CMSG_LEN(sizeof(int))) {
    *passed = *(int *)(void *)CMSG_DATA(first);
  }
  return received;
}
// Whether the other end has gone, without taking anything (recv(2)).
static inline bool antiphon_is_hung_up(int fd) {
  char byte;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *, int);
static inline int antiphon_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
// Wakes of the calling thread are not delayed to be merged with others (prctl(2)).
static inline void antiphon_set_exact_wakeups(void) { prctl(PR_SET_TIMERSLACK, 1UL); }
// Whether a thread is one of a process's, both by the kernel's numbers (tgkill(2)).
static inline bool antiphon_is_thread(int thread, int process) { return syscall(SYS_tgkill, process, thread, 0) == 0; }
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
// fstat(2) by the call of that name. Glibc's may be newfstatat(2) instead, which takes any path, and which a decoder's
// sandbox therefore refuses. The kernel's structure is the C library's where there are 64-bit numbers alone.
static inline int antiphon_file_status(int fd, struct stat *status) {
  return (int)syscall(SYS_fstat, fd, status);
}

// MARK: What a process can never have again

// Of clone(2): what makes a thread, and what gives it a view of the system of its own (linux/sched.h).
static const uint64_t antiphon_clone_thread = 0x00010000 | 0x00000100;
static const uint64_t antiphon_clone_namespaces =
    0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000;

// No program that is run gives more rights (PR_SET_NO_NEW_PRIVS(2const)); -1 with errno.
static inline int antiphon_refuse_new_privileges(void) { return prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL); }
// Its memory is neither dumped nor read by others of its user (PR_SET_DUMPABLE(2const)); -1 with errno.
static inline int antiphon_refuse_dumps(void) { return prctl(PR_SET_DUMPABLE, 0UL, 0UL, 0UL, 0UL); }
// The kernel's version of Landlock (landlock_create_ruleset(2)), or -1 with errno.
static inline int antiphon_landlock_version(void) {
  return (int)syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, 1U /* LANDLOCK_CREATE_RULESET_VERSION */);
}
// Takes rights from the calling thread and from those it starts, with no exception; -1 with errno. A kernel that knows
// fewer fields takes the others if they are 0.
static inline int antiphon_landlock_refuse(uint64_t file_rights, uint64_t network_rights, uint64_t scopes) {
  struct { uint64_t file_rights; uint64_t network_rights; uint64_t scopes; } all = {file_rights, network_rights, scopes};
  int ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0U);
  if (ruleset < 0) return -1;
  int status = (int)syscall(SYS_landlock_restrict_self, ruleset, 0U);
  int error = errno;
  close(ruleset);
  errno = error;
  return status;
}

// MARK: What a hijacked process would try

// A system call past the C library: what it returns, or its error negated (syscall(2)).
static inline long antiphon_system_call(long number, const long *arguments) {
  long result = syscall(
      number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
  return result < 0 ? -errno : result;
}
// getpid(2) as a program of i386 calls it; elsewhere there is no such way.
static inline long antiphon_call_as_i386(void) {
  long result = -ENOSYS;
#ifdef __x86_64__
  result = 20;
  __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
#endif
  return result;
}
const char *strerrorname_np(int);
#endif
