// WebSocket listeners that read nothing, for measuring what they do to others. A router closes such a connection after
// a while, so each is made anew after a lifetime, one after the other.
// usage: stopped-listeners PORT COUNT LIFETIME-S
// Prints "listening" when all are there, and goes on until it is killed.
#include "listener.h"

// Full after some seconds of audio.
enum { RECEIVE_BYTES = 4096 };

int main(int count, char **arguments) {
  if (count != 4) die("usage: stopped-listeners PORT COUNT LIFETIME-S");
  int port = atoi(arguments[1]), listeners = atoi(arguments[2]);
  int64_t interval_ns = atoi(arguments[3]) * 1000000000LL / listeners;
  int *sockets = malloc((size_t)listeners * sizeof *sockets);
  if (!sockets) die("out of memory");
  for (int i = 0; i < listeners; i++) sockets[i] = open_listener(port, (uint32_t)i, 0, RECEIVE_BYTES);
  puts("listening");
  fflush(stdout);
  int64_t next_ns = now_ns();
  for (int i = 0;; i = (i + 1) % listeners) {
    sleep_until(next_ns += interval_ns);
    close(sockets[i]);
    sockets[i] = open_listener(port, (uint32_t)i, 0, RECEIVE_BYTES);
  }
}
