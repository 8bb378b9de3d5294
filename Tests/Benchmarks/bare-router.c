// The least that a router can cost: it parses the wire protocol, builds each WebSocket frame where the packet lies and
// calls send once a listener. Nothing is checked, counted or kept, and a listener that does not read loses what its
// socket does not take, which only a measurement may do to it.
// usage: bare-router ENGINE-SOCKET PORT
// GET /ws?session=ID becomes a WebSocket, without the handshake's hash, which websocket-load does not look at;
// everything else is answered with 200, so that the router is seen to be ready.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include "bench.h"

enum { BUCKETS = 16384, BATCH = 256, REQUEST_BYTES = 4096, READ_BYTES = 65536 };

struct session {
  unsigned char id[SESSION_ID_BYTES];
  int *listeners;
  int count;
  struct session *next;
};

static struct session *sessions[BUCKETS];

static struct session *find(const unsigned char *id, bool makes) {
  uint64_t words[3];
  memcpy(words, id, sizeof words);
  uint64_t hash = (words[0] * 31 + words[1]) * 31 + words[2];
  struct session **bucket = &sessions[(hash ^ hash >> 33) * 0x9E3779B97F4A7C15u >> 50];
  struct session *found = *bucket;
  while (found && memcmp(found->id, id, SESSION_ID_BYTES) != 0) found = found->next;
  if (found || !makes) return found;
  found = calloc(1, sizeof *found);
  if (!found) die("out of memory");
  memcpy(found->id, id, SESSION_ID_BYTES);
  found->next = *bucket;
  return *bucket = found;
}

// The frame's header takes the place of the packet's, which has been read (RFC 6455, 5.2).
static void route(unsigned char *packet, size_t length) {
  struct session *session = find(packet + 4, false);
  if (!session) return;
  size_t count = length - SESSION_ID_BYTES, header = count < 126 ? 2 : 4;
  unsigned char *frame = packet + PACKET_HEADER_BYTES - header;
  frame[0] = 0x82;
  frame[1] = (unsigned char)(header == 2 ? count : 126);
  if (header == 4) {
    frame[2] = (unsigned char)(count >> 8);
    frame[3] = (unsigned char)count;
  }
  for (int i = 0; i < session->count; i++)
    send(session->listeners[i], frame, header + count, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Takes the whole messages of the engine's stream.
static void read_engine(int fd) {
  static unsigned char *buffer;
  static size_t filled, capacity;
  if (capacity - filled < READ_BYTES && !(buffer = realloc(buffer, capacity += 4 * READ_BYTES))) die("out of memory");
  ssize_t count = recv(fd, buffer + filled, READ_BYTES, MSG_DONTWAIT);
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) die("the engine has gone");
  filled += (size_t)count;
  size_t at = 0;
  while (filled - at >= PACKET_HEADER_BYTES) {
    unsigned char *message = buffer + at, *newline;
    if (*message == '{') {
      if (!(newline = memchr(message, '\n', filled - at))) break;
      at = (size_t)(newline + 1 - buffer);
      continue;
    }
    size_t length = (size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3];
    if (filled - at < 4 + length) break;
    route(message, length);
    at += 4 + length;
  }
  filled -= at;
  memmove(buffer, buffer + at, filled);
}

// Reads one request and answers it.
static void answer(int fd) {
  char request[REQUEST_BYTES];
  ssize_t count = recv(fd, request, sizeof request - 1, 0);
  if (count <= 0) {
    close(fd);
    return;
  }
  request[count] = 0;
  static const char upgraded[] =
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  static const char ready[] = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
  char name[SESSION_ID_BYTES + 1], id[SESSION_ID_BYTES + 1];
  if (sscanf(request, "GET /ws?session=%24[^& ]", name) != 1) {
    write_all(fd, ready, sizeof ready - 1);
    close(fd);
    return;
  }
  snprintf(id, sizeof id, "%-24s", name);
  write_all(fd, upgraded, sizeof upgraded - 1);
  struct session *session = find((unsigned char *)id, true);
  session->listeners = realloc(session->listeners, sizeof(int) * (size_t)(session->count + 1));
  if (!session->listeners) die("out of memory");
  session->listeners[session->count++] = fd;
}

static void watch(int epoll, int fd, uint32_t events) {
  struct epoll_event event = {.events = events, .data.fd = fd};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll: %s", strerror(errno));
}

int main(int count, char **arguments) {
  if (count != 3) die("usage: bare-router ENGINE-SOCKET PORT");
  int engine = unix_connect(arguments[1]), listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arguments[2])),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 256) != 0)
    die("port %s: %s", arguments[2], strerror(errno));
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  watch(epoll, engine, EPOLLIN);
  watch(epoll, listener, EPOLLIN);
  for (struct epoll_event events[BATCH];;) {
    int ready = epoll_wait(epoll, events, BATCH, -1);
    for (int i = 0; i < ready; i++) {
      int fd = events[i].data.fd;
      if (fd == engine) {
        read_engine(fd);
      } else if (fd == listener) {
        fd = accept(listener, NULL, NULL);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        // The request alone: what comes after it is a client's that measures, and says nothing.
        watch(epoll, fd, EPOLLIN | EPOLLONESHOT);
      } else {
        answer(fd);
      }
    }
  }
}
