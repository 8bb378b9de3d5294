// A WebSocket listener: its connection to a router, and what comes on it.
#ifndef ANTIPHON_LISTENER_H
#define ANTIPHON_LISTENER_H
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>

#include "bench.h"

enum { BUFFER_BYTES = 16384, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9 };

struct listener {
  int fd;
  uint32_t session, next_sequence;
  bool has_sequence;
  size_t filled;
  unsigned char buffer[BUFFER_BYTES];
};

typedef void take_message(struct listener *, int opcode, const unsigned char *payload, size_t count,
                          int64_t arrived_ns);

// frames: packets a message, with antiphon.timed.v1; 0 for antiphon.opus.v1.
// receive_bytes: of the kernel's buffer; 0 for its own choice.
// Returns a socket that does not block, from which nothing behind the upgrade has been read.
static inline int open_listener(int port, uint32_t session, int frames, int receive_bytes) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  // Before it connects: the window is agreed on then.
  if (fd >= 0 && receive_bytes > 0) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
    die("connect: %s", strerror(errno));
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // No burst of what has just been played: its packets are old, and the Node router has none.
  char request[512], answer[2048], packets[32] = "";
  if (frames > 0) snprintf(packets, sizeof packets, "&frames=%d", frames);
  int length = snprintf(request, sizeof request,
                        "GET /ws?session=%u&buffer_ms=0%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s"
                        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                        session, packets, port, frames > 0 ? "Sec-WebSocket-Protocol: antiphon.timed.v1\r\n" : "");
  write_all(fd, request, (size_t)length);
  // Byte by byte, so that nothing behind the answer is taken.
  size_t filled = 0;
  while (filled < 4 || memcmp(answer + filled - 4, "\r\n\r\n", 4) != 0) {
    if (filled + 1 == sizeof answer || read(fd, answer + filled, 1) != 1) die("no answer to the upgrade");
    filled++;
  }
  answer[filled] = 0;
  if (strncmp(answer, "HTTP/1.1 101", 12) != 0) die("not upgraded: %s", answer);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

static inline void answer_ping(struct listener *listener, const unsigned char *payload, size_t count) {
  if (count >= 126) die("a ping of %zu bytes", count);
  // A zero mask leaves the payload as it is.
  unsigned char pong[6 + 125] = {0x8A, (unsigned char)(0x80 | count)};
  memcpy(pong + 6, payload, count);
  write_all(listener->fd, pong, 6 + count);
}

// Takes the whole frames at the buffer's beginning. A router never masks or splits what it sends.
static inline void take_frames(struct listener *listener, int64_t arrived_ns, take_message *take) {
  size_t at = 0;
  while (listener->filled - at >= 4) {
    const unsigned char *frame = listener->buffer + at;
    size_t count = frame[1] & 0x7F, header = 2;
    if (count == 126) {
      count = (size_t)frame[2] << 8 | frame[3];
      header = 4;
    }
    if ((frame[1] & 0x80) || (frame[1] & 0x7F) == 127 || header + count > BUFFER_BYTES)
      die("an unexpected frame: %02x %02x", frame[0], frame[1]);
    if (listener->filled - at < header + count) break;
    if ((frame[0] & 0x0F) == PING) answer_ping(listener, frame + header, count);
    else take(listener, frame[0] & 0x0F, frame + header, count, arrived_ns);
    at += header + count;
  }
  listener->filled -= at;
  memmove(listener->buffer, listener->buffer + at, listener->filled);
}

// Reads what is there; false when the router has closed the connection.
static inline bool receive(struct listener *listener, take_message *take) {
  ssize_t count = read(listener->fd, listener->buffer + listener->filled, BUFFER_BYTES - listener->filled);
  if (count < 0 && errno == EAGAIN) return true;
  if (count <= 0) return false;
  listener->filled += (size_t)count;
  take_frames(listener, now_ns(), take);
  return true;
}

#endif
