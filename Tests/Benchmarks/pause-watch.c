// The control thread for measurements made in Python: answers each line with the longest pause of the machine since
// the line before, in microseconds.
#include "bench.h"

int main(void) {
  struct pause_watch watch;
  pause_watch_start(&watch);
  for (int byte; (byte = getchar()) != EOF;) {
    if (byte != '\n') continue;
    printf("%.1f\n", (double)atomic_exchange(&watch.worst_ns, 0) / 1000);
    fflush(stdout);
  }
  pause_watch_stop(&watch);
  return 0;
}
