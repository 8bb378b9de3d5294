// A light router for measuring: plays N sessions over the engine's socket, reads every packet, and compares
// its arrival with when it was due.
// usage: engine-client SOCKET SESSIONS URL-COUNT URL-FORMAT [SPREAD-MS]
//   Session i plays URL-FORMAT with i modulo URL-COUNT in place of %d, all within SPREAD-MS.
// Prints "playing" once every session sounds or has been refused, and a JSON object when all have ended.
#include <poll.h>

#include "bench.h"

enum { BUFFER_BYTES = 4 << 20, SILENCE_LIMIT_MS = 30000 };

struct session {
  int64_t anchor_ns;  // when the packet after the last event was due; 0 while no packet is expected
  int64_t packets;    // since then
  int64_t asked_ns;
  bool has_begun, has_ended;
};

static struct {
  int fd, session_count, url_count, spread_ms;
  const char *url_format;
  struct session *sessions;
  int begun, ended;
  int64_t packets, bytes, unexpected, errors, buffering, rebased, dropped;
  struct figures lateness, start;
} client;

static void *send_plays(void *unused) {
  int64_t start = now_ns();
  for (int i = 0; i < client.session_count; i++) {
    char url[512], line[1024];
    snprintf(url, sizeof url, client.url_format, i % client.url_count);
    int length = snprintf(line, sizeof line, "{\"type\":\"play\",\"session_id\":\"b%d\",\"url\":\"%s\"}\n", i, url);
    sleep_until(start + (int64_t)client.spread_ms * 1000000 * i / client.session_count);
    client.sessions[i].asked_ns = now_ns();
    write_all(client.fd, line, (size_t)length);
  }
  return unused;
}

static struct session *session_named(const char *name) {
  long index = name[0] == 'b' ? strtol(name + 1, NULL, 10) : -1;
  if (index < 0 || index >= client.session_count) die("a session that was never asked for: %.24s", name);
  return &client.sessions[index];
}

static void note_begun(struct session *session) {
  session->has_begun = true;
  if (++client.begun < client.session_count) return;
  puts("playing");
  fflush(stdout);
}

static void take_event(const char *line) {
  const char *name = json_value(line, "session_id");
  if (json_is(line, "type", "hello")) return;
  if (json_is(line, "type", "error")) {
    client.errors++;
    fprintf(stderr, "%s\n", line);
  }
  if (!name) return;
  struct session *session = session_named(name + 1);
  bool rebased = json_is(line, "type", "rebased");
  if (rebased || json_is(line, "type", "playing") || json_is(line, "type", "resumed")) {
    client.rebased += rebased;
    session->anchor_ns = json_number(line, "due_ns", 0);
    session->packets = 0;
    if (session->has_begun) return;
    figures_add(&client.start, now_ns() - session->asked_ns);
    note_begun(session);
  } else if (json_is(line, "type", "buffering")) {
    client.buffering++;
    session->anchor_ns = 0;
  } else if (json_is(line, "type", "dropped")) {
    client.dropped += json_number(line, "count", 0);
    session->packets += json_number(line, "count", 0);
  } else if (json_is(line, "type", "ended") && !session->has_ended) {
    session->has_ended = true;
    client.ended++;
    if (!session->has_begun) note_begun(session);
  }
}

static void take_packet(const char *header, size_t audio_bytes, int64_t arrived_ns) {
  struct session *session = session_named(header + 4);
  client.packets++;
  client.bytes += (int64_t)audio_bytes;
  if (session->anchor_ns == 0) {
    client.unexpected++;
    return;
  }
  figures_add(&client.lateness, arrived_ns - (session->anchor_ns + session->packets++ * PACKET_NS));
}

// Takes the whole messages at the buffer's beginning; returns how many bytes they were.
static size_t take_messages(char *buffer, size_t filled, int64_t arrived_ns) {
  size_t at = 0;
  while (at < filled) {
    if (buffer[at] == '{') {
      char *end = memchr(buffer + at, '\n', filled - at);
      if (!end) break;
      *end = 0;
      take_event(buffer + at);
      at = (size_t)(end - buffer) + 1;
    } else if (buffer[at] == 0) {
      if (filled - at < PACKET_HEADER_BYTES) break;
      const unsigned char *length = (const unsigned char *)buffer + at;
      size_t count = (size_t)length[1] << 16 | (size_t)length[2] << 8 | length[3];
      if (count <= SESSION_ID_BYTES || count > 65536) die("a packet with length %zu", count);
      if (filled - at < 4 + count) break;
      take_packet(buffer + at, count - SESSION_ID_BYTES, arrived_ns);
      at += 4 + count;
    } else {
      die("neither packet nor event: byte %02x", (unsigned char)buffer[at]);
    }
  }
  return at;
}

static void read_until_ended(void) {
  char *buffer = malloc(BUFFER_BYTES);
  if (!buffer) die("out of memory");
  size_t filled = 0;
  while (client.ended < client.session_count) {
    struct pollfd ready = {.fd = client.fd, .events = POLLIN};
    if (poll(&ready, 1, SILENCE_LIMIT_MS) == 0)
      die("nothing for %d s; %d of %d sessions have ended", SILENCE_LIMIT_MS / 1000, client.ended,
          client.session_count);
    ssize_t count = read(client.fd, buffer + filled, BUFFER_BYTES - filled);
    if (count <= 0) die("the engine closed the connection");
    filled += (size_t)count;
    size_t taken = take_messages(buffer, filled, now_ns());
    filled -= taken;
    memmove(buffer, buffer + taken, filled);
  }
  free(buffer);
}

int main(int count, char **arguments) {
  if (count < 5) die("usage: engine-client SOCKET SESSIONS URL-COUNT URL-FORMAT [SPREAD-MS]");
  client.session_count = atoi(arguments[2]);
  client.url_count = atoi(arguments[3]);
  client.url_format = arguments[4];
  client.spread_ms = count > 5 ? atoi(arguments[5]) : 1000;
  client.sessions = calloc((size_t)client.session_count, sizeof *client.sessions);
  client.fd = unix_connect(arguments[1]);
  struct pause_watch watch;
  pause_watch_start(&watch);
  pthread_t sender;
  if (pthread_create(&sender, NULL, send_plays, NULL) != 0) die("no thread");
  read_until_ended();
  pthread_join(sender, NULL);
  pause_watch_stop(&watch);
  printf("{\"packets\":%" PRId64 ",\"audio_seconds\":%.2f,\"bytes\":%" PRId64 ",\"errors\":%" PRId64
         ",\"unexpected\":%" PRId64 ",\"buffering\":%" PRId64 ",\"rebased\":%" PRId64 ",\"dropped\":%" PRId64
         ",\"worst_pause_us\":%.1f,",
         client.packets, (double)client.packets * 0.02, client.bytes, client.errors, client.unexpected,
         client.buffering, client.rebased, client.dropped, (double)watch.worst_ns / 1000);
  figures_print(&client.lateness, "lateness_us");
  printf(",");
  figures_print(&client.start, "start_us");
  puts("}");
  return 0;
}
