// Listeners that join, leave and stop reading at random, and look at each packet of a synthetic engine: whether it is of
// their session, and which it is.
// usage: soak-listeners PORT SESSIONS LISTENERS PACKETS SEED
// Prints a JSON object when so many packets have come. "seeks" are those that listeners were told of. "missing" is what
// was left out while a listener had stopped reading, and "lost" what was left out of others: the router has dropped it.
// "foreign" and "doubled" must be nothing.
#include <sys/epoll.h>

#include "listener.h"

enum { BATCH = 256, PAYLOAD_BYTES = 17, MOVE_INTERVAL_MS = 10, STALL_INTERVAL_MS = 50, LONGEST_STALL_MS = 15000,
       // So little that what a stalled listener does not read soon waits in the router.
       RECEIVE_BYTES = 4096 };

struct member {
  struct listener listener;
  // While it does not read: until when. 0 otherwise.
  int64_t stalled_until_ns;
  // Whether it has stopped reading since it joined.
  bool was_stalled;
};

static struct {
  int port, epoll, sessions, count;
  struct member *members;
  int64_t packets, seeks, missing, lost, doubled, foreign, joins, stalls, closed;
} soak;

static struct member *member_of(struct listener *listener) { return (struct member *)listener; }

static void join(struct member *member) {
  member->listener = (struct listener){.session = (uint32_t)(rand() % soak.sessions)};
  member->listener.fd = open_listener(soak.port, member->listener.session, 0, RECEIVE_BYTES);
  member->stalled_until_ns = 0;
  member->was_stalled = false;
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = member};
  if (epoll_ctl(soak.epoll, EPOLL_CTL_ADD, member->listener.fd, &event) != 0) die("epoll: %s", strerror(errno));
  soak.joins++;
}

static void leave(struct member *member) { close(member->listener.fd); }

static void set_reading(struct member *member, bool reads) {
  struct epoll_event event = {.events = reads ? EPOLLIN : 0, .data.ptr = member};
  if (epoll_ctl(soak.epoll, EPOLL_CTL_MOD, member->listener.fd, &event) != 0) die("epoll: %s", strerror(errno));
}

static bool has(const unsigned char *text, size_t count, const char *words) {
  size_t length = strlen(words);
  for (; count >= length; text++, count--)
    if (memcmp(text, words, length) == 0) return true;
  return false;
}

static void take(struct listener *listener, int opcode, const unsigned char *payload, size_t count, int64_t arrived_ns) {
  (void)arrived_ns;
  if (opcode == TEXT) soak.seeks += has(payload, count, "\"type\":\"seeked\"");
  if (opcode != BINARY) return;
  if (count < PAYLOAD_BYTES) die("a message of %zu bytes", count);
  uint32_t session, sequence;
  memcpy(&session, payload + 9, 4);
  memcpy(&sequence, payload + 13, 4);
  soak.packets++;
  soak.foreign += session != listener->session;
  int32_t ahead = listener->has_sequence ? (int32_t)(sequence - listener->next_sequence) : 0;
  struct member *member = member_of(listener);
  if (ahead < 0) soak.doubled++;
  else if (member->was_stalled) soak.missing += ahead;
  else soak.lost += ahead;
  listener->has_sequence = true;
  listener->next_sequence = sequence + 1;
}

static void stall(struct member *member, int64_t now) {
  if (member->stalled_until_ns) return;
  set_reading(member, false);
  member->stalled_until_ns = now + (int64_t)(rand() % LONGEST_STALL_MS) * 1000000;
  member->was_stalled = true;
  soak.stalls++;
}

static void move_some(int64_t now) {
  static int64_t next_move_ns, next_stall_ns;
  if (now >= next_move_ns) {
    next_move_ns = now + MOVE_INTERVAL_MS * 1000000LL;
    struct member *member = &soak.members[rand() % soak.count];
    leave(member);
    join(member);
  }
  if (now < next_stall_ns) return;
  next_stall_ns = now + STALL_INTERVAL_MS * 1000000LL;
  stall(&soak.members[rand() % soak.count], now);
  for (int i = 0; i < soak.count; i++) {
    struct member *member = &soak.members[i];
    if (!member->stalled_until_ns || now < member->stalled_until_ns) continue;
    member->stalled_until_ns = 0;
    set_reading(member, true);
  }
}

int main(int count, char **arguments) {
  if (count != 6) die("usage: soak-listeners PORT SESSIONS LISTENERS PACKETS SEED");
  soak.port = atoi(arguments[1]);
  soak.sessions = atoi(arguments[2]);
  soak.count = atoi(arguments[3]);
  int64_t wanted = atoll(arguments[4]);
  srand((unsigned)atoi(arguments[5]));
  soak.members = calloc((size_t)soak.count, sizeof *soak.members);
  soak.epoll = epoll_create1(EPOLL_CLOEXEC);
  if (!soak.members || soak.epoll < 0) die("out of memory");
  for (int i = 0; i < soak.count; i++) join(&soak.members[i]);
  struct epoll_event events[BATCH];
  while (soak.packets < wanted) {
    int found = epoll_wait(soak.epoll, events, BATCH, MOVE_INTERVAL_MS);
    for (int i = 0; i < found; i++) {
      struct member *member = events[i].data.ptr;
      if (receive(&member->listener, take)) continue;
      // A router closes one that has lost audio for too long.
      if (!member->was_stalled) die("the router closed a connection that was read");
      soak.closed++;
      leave(member);
      join(member);
    }
    move_some(now_ns());
  }
  printf("{\"packets\":%" PRId64 ",\"seeks\":%" PRId64 ",\"missing\":%" PRId64 ",\"lost\":%" PRId64
         ",\"doubled\":%" PRId64 ",\"foreign\":%" PRId64 ",\"joins\":%" PRId64 ",\"stalls\":%" PRId64
         ",\"closed\":%" PRId64 "}\n",
         soak.packets, soak.seeks, soak.missing, soak.lost, soak.doubled, soak.foreign, soak.joins, soak.stalls,
         soak.closed);
  return 0;
}
