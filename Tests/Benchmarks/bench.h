// What the benchmark programs share: time, figures, sockets, and the control thread.
#ifndef ANTIPHON_BENCH_H
#define ANTIPHON_BENCH_H
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SESSION_ID_BYTES 24
#define PACKET_HEADER_BYTES (4 + SESSION_ID_BYTES)
#define PACKET_NS 20000000LL

__attribute__((noreturn, format(printf, 1, 2))) static inline void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}

static inline int64_t clock_ns(clockid_t clock) {
  struct timespec now;
  if (clock_gettime(clock, &now) != 0) die("clock_gettime: %s", strerror(errno));
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static inline int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

static inline void sleep_until(int64_t ns) {
  struct timespec until = {.tv_sec = ns / 1000000000LL, .tv_nsec = ns % 1000000000LL};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
  }
}

// Measurements kept whole, so that percentiles are exact.
struct figures {
  int64_t *values;
  size_t count, capacity;
};

static inline void figures_add(struct figures *figures, int64_t value) {
  if (figures->count == figures->capacity) {
    figures->capacity = figures->capacity ? figures->capacity * 2 : 1 << 16;
    figures->values = realloc(figures->values, figures->capacity * sizeof(int64_t));
    if (!figures->values) die("out of memory");
  }
  figures->values[figures->count++] = value;
}

static inline int figures_compare(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// Sorts, and prints the percentiles as a JSON object in microseconds.
static inline void figures_print(struct figures *figures, const char *name) {
  if (figures->count == 0) {
    printf("\"%s\":null", name);
    return;
  }
  qsort(figures->values, figures->count, sizeof(int64_t), figures_compare);
  static const struct { const char *name; double share; } points[] = {
      {"min", 0}, {"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
  printf("\"%s\":{", name);
  for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
    size_t at = (size_t)(points[i].share * (double)(figures->count - 1) + 0.5);
    printf("%s\"%s\":%.1f", i ? "," : "", points[i].name, (double)figures->values[at] / 1000);
  }
  printf("}");
}

// The control thread: it asks for a wake-up every millisecond and notes how late the worst one came. What
// delays it delays everyone, so a run with a long pause says nothing about the program under test. Real-time
// priority, where the system grants it, keeps ordinary load on the cores from looking like a pause.
struct pause_watch {
  pthread_t thread;
  _Atomic bool stopped;
  _Atomic int64_t worst_ns;
};

static inline void *pause_watch_run(void *argument) {
  struct pause_watch *watch = argument;
  struct sched_param priority = {.sched_priority = 50};
  pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
  while (!watch->stopped) {
    int64_t due = now_ns() + 1000000;
    sleep_until(due);
    int64_t late = now_ns() - due;
    if (late > watch->worst_ns) watch->worst_ns = late;
  }
  return NULL;
}

static inline void pause_watch_start(struct pause_watch *watch) {
  watch->stopped = false;
  watch->worst_ns = 0;
  if (pthread_create(&watch->thread, NULL, pause_watch_run, watch) != 0) die("no control thread");
}

static inline void pause_watch_stop(struct pause_watch *watch) {
  watch->stopped = true;
  pthread_join(watch->thread, NULL);
}

static inline struct sockaddr_un unix_address(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) die("%s: too long for a Unix socket", path);
  strcpy(address.sun_path, path);
  return address;
}

static inline int unix_connect(const char *path) {
  struct sockaddr_un address = unix_address(path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
    die("%s: %s", path, strerror(errno));
  return fd;
}

static inline void write_all(int fd, const void *bytes, size_t count) {
  for (const char *next = bytes; count > 0;) {
    ssize_t written = send(fd, next, count, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) die("write: %s", strerror(errno));
    next += written;
    count -= (size_t)written;
  }
}

// The value of a key in one line of compact JSON; NULL where there is none. Enough for the flat events.
static inline const char *json_value(const char *line, const char *key) {
  char pattern[64];
  snprintf(pattern, sizeof pattern, "\"%s\":", key);
  const char *found = strstr(line, pattern);
  return found ? found + strlen(pattern) : NULL;
}

static inline bool json_is(const char *line, const char *key, const char *text) {
  const char *value = json_value(line, key);
  size_t length = strlen(text);
  return value && value[0] == '"' && strncmp(value + 1, text, length) == 0 && value[1 + length] == '"';
}

static inline int64_t json_number(const char *line, const char *key, int64_t otherwise) {
  const char *value = json_value(line, key);
  return value ? strtoll(value, NULL, 10) : otherwise;
}
#endif
