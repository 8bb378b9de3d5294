// An engine without sound, for measuring routers: 100 sessions of 50 packets a second, each with the moment
// it was sent.
// usage: synthetic-engine SOCKET SESSIONS AUDIO-BYTES antiphon|seeks|seed
//   antiphon begins with hello, as the wire protocol has it; seeks goes to another place in one of the sessions 50 times a
//   second, too; seed sends packets alone.
// Serves one router after another until it is killed. Prints "listening" when it can be connected to.
#include <sys/stat.h>

#include "bench.h"

// The pacer's tick: the sessions due in it leave in one write.
static const int64_t TICK_NS = 2000000;
enum { TICKS_PER_PACKET = 10, TICKS_PER_SEEK = 10, TOC_STEREO_20_MS = 0xFC, EXPECTED_PAYLOAD = 17, EVENT_BYTES = 160,
       LONGEST_TRACK_MS = 3600000 };

struct sessions {
  int count, audio_bytes;
  bool seeks;
  unsigned char *packets;  // one for each session, filled in anew every time
};

static size_t packet_bytes(const struct sessions *sessions) {
  return (size_t)(PACKET_HEADER_BYTES + sessions->audio_bytes);
}

static void prepare(struct sessions *sessions) {
  sessions->packets = malloc((size_t)sessions->count * packet_bytes(sessions));
  if (!sessions->packets) die("out of memory");
  for (int i = 0; i < sessions->count; i++) {
    unsigned char *packet = sessions->packets + (size_t)i * packet_bytes(sessions);
    int length = SESSION_ID_BYTES + sessions->audio_bytes;
    memcpy(packet, (unsigned char[]){0, (unsigned char)(length >> 16), (unsigned char)(length >> 8),
                                     (unsigned char)length}, 4);
    char name[SESSION_ID_BYTES + 1];
    snprintf(name, sizeof name, "%-24d", i);
    memcpy(packet + 4, name, SESSION_ID_BYTES);
    for (int j = 0; j < sessions->audio_bytes; j++)
      packet[PACKET_HEADER_BYTES + j] = (unsigned char)(rand() >> 7);
    packet[PACKET_HEADER_BYTES] = TOC_STEREO_20_MS;
  }
}

static void say_hello(int fd, const struct sessions *sessions, int64_t start_ns) {
  size_t capacity = 512 + (size_t)sessions->count * 256;
  char *text = malloc(capacity);
  if (!text) die("out of memory");
  int at = snprintf(text, capacity,
                    "{\"type\":\"hello\",\"protocol\":1,\"engine_version\":\"synthetic\",\"started_at_ms\":%" PRId64
                    ",\"now_ns\":%" PRId64
                    ",\"limits\":{\"max_workers\":60,\"max_sessions\":10000,\"read_ahead_ms\":15000},\"sessions\":[",
                    clock_ns(CLOCK_REALTIME) / 1000000, now_ns());
  for (int i = 0; i < sessions->count; i++)
    at += snprintf(text + at, capacity - (size_t)at,
                   "%s{\"session_id\":\"%d\",\"state\":\"streaming\",\"url\":\"media:synthetic.opus\","
                   "\"position_ms\":0,\"due_ns\":%" PRId64
                   ",\"volume\":1,\"loop\":false,\"codec\":\"opus\",\"passthrough\":true}",
                   i ? "," : "", i, start_ns + i % TICKS_PER_PACKET * TICK_NS);
  at += snprintf(text + at, capacity - (size_t)at, "]}\n");
  write_all(fd, text, (size_t)at);
  free(text);
}

// A session goes on at another place with its next packet.
static size_t put_seek(unsigned char *place, int session, int64_t due_ns) {
  return (size_t)snprintf((char *)place, EVENT_BYTES,
                          "{\"type\":\"seeked\",\"session_id\":\"%d\",\"position_ms\":%d,\"due_ns\":%" PRId64 "}\n",
                          session, rand() % LONGEST_TRACK_MS / 20 * 20, due_ns);
}

// Sends forever; returns when the router has gone.
static void serve(int fd, const struct sessions *sessions, int64_t start_ns) {
  size_t each = packet_bytes(sessions);
  unsigned char *batch = malloc((size_t)sessions->count * each + EVENT_BYTES);
  if (!batch) die("out of memory");
  for (uint32_t tick = 0;; tick++) {
    sleep_until(start_ns + tick * TICK_NS);
    size_t filled = 0;
    int sought = -1;
    // One of those that are due.
    if (sessions->seeks && rand() % TICKS_PER_SEEK == 0)
      sought = rand() % sessions->count / TICKS_PER_PACKET * TICKS_PER_PACKET + (int)(tick % TICKS_PER_PACKET);
    for (int i = (int)(tick % TICKS_PER_PACKET); i < sessions->count; i += TICKS_PER_PACKET) {
      unsigned char *packet = sessions->packets + (size_t)i * each, *audio = packet + PACKET_HEADER_BYTES + 1;
      uint32_t session = (uint32_t)i, sequence = tick / TICKS_PER_PACKET;
      int64_t sent_ns = now_ns();
      memcpy(audio, &sent_ns, 8);
      memcpy(audio + 8, &session, 4);
      memcpy(audio + 12, &sequence, 4);
      if (i == sought) filled += put_seek(batch + filled, i, start_ns + tick * TICK_NS);
      memcpy(batch + filled, packet, each);
      filled += each;
    }
    char commands[4096];
    while (recv(fd, commands, sizeof commands, MSG_DONTWAIT) > 0) {
      // Commands are read, so that the router is never held up, and not answered.
    }
    for (size_t sent = 0; sent < filled;) {
      ssize_t count = send(fd, batch + sent, filled - sent, MSG_NOSIGNAL);
      if (count < 0) {
        free(batch);
        return;
      }
      sent += (size_t)count;
    }
  }
}

int main(int count, char **arguments) {
  if (count != 5) die("usage: synthetic-engine SOCKET SESSIONS AUDIO-BYTES antiphon|seeks|seed");
  struct sessions sessions = {.count = atoi(arguments[2]), .audio_bytes = atoi(arguments[3]),
                              .seeks = strcmp(arguments[4], "seeks") == 0};
  if (sessions.audio_bytes < EXPECTED_PAYLOAD) die("at least %d bytes of audio", EXPECTED_PAYLOAD);
  prepare(&sessions);
  struct sockaddr_un address = unix_address(arguments[1]);
  unlink(arguments[1]);
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
      chmod(arguments[1], 0600) != 0 || listen(listener, 4) != 0)
    die("%s: %s", arguments[1], strerror(errno));
  puts("listening");
  fflush(stdout);
  for (;;) {
    int fd = accept(listener, NULL, NULL);
    if (fd < 0) die("accept: %s", strerror(errno));
    int64_t start_ns = now_ns() + 100000000;
    if (strcmp(arguments[4], "seed") != 0) say_hello(fd, &sessions, start_ns);
    serve(fd, &sessions, start_ns);
    close(fd);
  }
}
