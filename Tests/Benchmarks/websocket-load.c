// Many WebSocket listeners in one process, for measuring routers fed by synthetic-engine: counts the packets,
// checks that each belongs to its listener's session and that none is missing, and measures how old they are.
// usage: websocket-load PORT SESSIONS CLIENTS-PER-SESSION WARM-UP-S SECONDS ROUTER-PID FRAMES CONTENT
//   FRAMES: packets a message, with antiphon.timed.v1; 0 for antiphon.opus.v1.
//   CONTENT: synthetic, or real, which is counted and not looked into.
// Prints "measuring" after the warm-up, and a JSON object at the end: what was delivered between warm-up and end, the router's CPU time for it, and its private memory
// while they all listen.
#include <sys/epoll.h>

#include "listener.h"

enum { BATCH = 256, RECORD_HEADER_BYTES = 18 };

static struct {
  bool is_measuring;
  int64_t delivered, bytes, foreign, missing, closed;
  struct figures latency;
} result;

static int frames;
static bool is_synthetic;

static void take_audio(struct listener *listener, const unsigned char *audio, size_t count, int64_t arrived_ns) {
  if (!is_synthetic) {
    result.delivered += result.is_measuring;
    return;
  }
  if (count < 17) die("a message of %zu bytes", count);
  int64_t sent_ns;
  uint32_t session, sequence;
  memcpy(&sent_ns, audio + 1, 8);
  memcpy(&session, audio + 9, 4);
  memcpy(&sequence, audio + 13, 4);
  if (session != listener->session) result.foreign++;
  if (listener->has_sequence && sequence != listener->next_sequence)
    result.missing += (int32_t)(sequence - listener->next_sequence);
  listener->has_sequence = true;
  listener->next_sequence = sequence + 1;
  if (!result.is_measuring) return;
  result.delivered++;
  result.bytes += (int64_t)count;
  figures_add(&result.latency, arrived_ns - sent_ns);
}

static void take_frame(struct listener *listener, int opcode, const unsigned char *payload, size_t count,
                       int64_t arrived_ns) {
  if (opcode == BINARY && frames == 0) {
    take_audio(listener, payload, count, arrived_ns);
  } else if (opcode == BINARY) {
    for (size_t at = 0, length; at < count; at += RECORD_HEADER_BYTES + length) {
      if (count - at < RECORD_HEADER_BYTES) die("a record of %zu bytes", count - at);
      length = (size_t)payload[at + RECORD_HEADER_BYTES - 2] << 8 | payload[at + RECORD_HEADER_BYTES - 1];
      if (count - at - RECORD_HEADER_BYTES < length) die("a record that is cut");
      take_audio(listener, payload + at + RECORD_HEADER_BYTES, length, arrived_ns);
    }
  } else if (opcode == CLOSE) {
    result.closed++;
  }
}

static void receive_until(int epoll, int64_t end_ns) {
  struct epoll_event events[BATCH];
  for (int64_t left; (left = end_ns - now_ns()) > 0;) {
    int count = epoll_wait(epoll, events, BATCH, (int)(left / 1000000) + 1);
    for (int i = 0; i < count; i++)
      if (!receive(events[i].data.ptr, take_frame)) die("the router closed a connection");
  }
}

// The sum of the numbers that follow these two names in a file of the router's.
static int64_t read_sum(const char *pid, const char *file, const char *first, const char *second) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/%s/%s", pid, file);
  FILE *opened = fopen(path, "r");
  if (!opened) die("%s: %s", path, strerror(errno));
  int64_t sum = 0;
  while (fgets(line, sizeof line, opened)) {
    for (const char **name = (const char *[]){first, second, NULL}; *name; name++)
      if (strncmp(line, *name, strlen(*name)) == 0) sum += strtoll(line + strlen(*name), NULL, 10);
  }
  fclose(opened);
  return sum;
}

// Clock ticks that the router has spent until now: proc(5), stat's 14th and 15th field.
static void read_ticks(const char *pid, int64_t *user, int64_t *kernel) {
  char path[64], line[1024] = "";
  snprintf(path, sizeof path, "/proc/%s/stat", pid);
  FILE *opened = fopen(path, "r");
  if (!opened || !fgets(line, sizeof line, opened)) die("%s: %s", path, strerror(errno));
  fclose(opened);
  const char *name_end = strrchr(line, ')');
  if (!name_end || sscanf(name_end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNd64 " %" SCNd64, user,
                          kernel) != 2)
    die("%s is not as expected", path);
}

int main(int count, char **arguments) {
  if (count != 9)
    die("usage: websocket-load PORT SESSIONS CLIENTS-PER-SESSION WARM-UP-S SECONDS ROUTER-PID FRAMES CONTENT");
  frames = atoi(arguments[7]);
  is_synthetic = strcmp(arguments[8], "synthetic") == 0;
  int sessions = atoi(arguments[2]), clients = sessions * atoi(arguments[3]);
  const int64_t second = 1000000000;
  int64_t warm_up_ns = atoi(arguments[4]) * second, run_ns = atoi(arguments[5]) * second;
  clockid_t router_cpu;
  if (clock_getcpuclockid(atoi(arguments[6]), &router_cpu) != 0) die("no process %s", arguments[6]);
  struct listener *listeners = calloc((size_t)clients, sizeof *listeners);
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (!listeners || epoll < 0) die("out of memory");
  for (int i = 0; i < clients; i++) {
    struct listener *listener = &listeners[i];
    listener->session = (uint32_t)(i % sessions);
    listener->fd = open_listener(atoi(arguments[1]), listener->session, frames, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = listener};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, listener->fd, &event) != 0) die("epoll: %s", strerror(errno));
    // What is already connected is read meanwhile, so that no router has to hold anything back.
    receive_until(epoll, now_ns() + second / 1000);
  }
  receive_until(epoll, now_ns() + warm_up_ns);
  struct pause_watch watch;
  pause_watch_start(&watch);
  result.missing = result.foreign = 0;
  result.is_measuring = true;
  puts("measuring");
  fflush(stdout);
  int64_t user_before, kernel_before, user, kernel;
  read_ticks(arguments[6], &user_before, &kernel_before);
  int64_t cpu_before = clock_ns(router_cpu), own_before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  receive_until(epoll, now_ns() + run_ns);
  int64_t cpu = clock_ns(router_cpu) - cpu_before, own = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - own_before;
  pause_watch_stop(&watch);
  read_ticks(arguments[6], &user, &kernel);
  user -= user_before;
  kernel -= kernel_before;
  printf("{\"delivered\":%" PRId64 ",\"expected\":%" PRId64 ",\"foreign\":%" PRId64 ",\"missing\":%" PRId64
         ",\"closed\":%" PRId64 ",\"cpu_us_per_message\":%.4f,\"client_cpu_us_per_message\":%.4f"
         ",\"kernel_share\":%.4f,\"router_private_kib\":%" PRId64 ",\"worst_pause_us\":%.1f,",
         result.delivered, (int64_t)(clients * run_ns / PACKET_NS), result.foreign, result.missing, result.closed,
         (double)cpu / 1000 / (double)result.delivered, (double)own / 1000 / (double)result.delivered,
         (double)kernel / (double)(user + kernel + !(user + kernel)),
         read_sum(arguments[6], "smaps_rollup", "Private_Clean:", "Private_Dirty:"), (double)watch.worst_ns / 1000);
  figures_print(&result.latency, "latency_us");
  puts("}");
  return 0;
}
