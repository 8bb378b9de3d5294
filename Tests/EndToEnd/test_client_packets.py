"""antiphon_client's jitter buffer, by a clock that is computed: nothing here waits."""

import math
import random
import struct
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from antiphon_client.packets import MAXIMUM_PACKETS, SILENCE, TARGET_PACKETS, WINDOW_PACKETS, PacketBuffer

PACKET_MS = 20.0


def packet(number: int) -> bytes:
    return struct.pack(">I", number)


class Simulated(PacketBuffer):
    """A buffer with a clock of its own, which `run` sets."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        super().__init__(clock=lambda: self.now_ms / 1_000)


@dataclass
class Played:
    """What a voice thread has taken."""

    #: Of each packet: when it was taken, and its number.
    packets: list[tuple[float, int]] = field(default_factory=list)
    #: When silence was taken.
    silences: list[float] = field(default_factory=list)
    most_waiting: int = 0

    @property
    def numbers(self) -> list[int]:
        return [number for _, number in self.packets]

    def delays_ms(self, send_period_ms: float = PACKET_MS) -> list[float]:
        """How long after its sending each packet was taken."""
        return [at - number * send_period_ms for at, number in self.packets]


def run(
    buffer: Simulated, arrivals: Iterable[float], *, until: float, begin: float = 10.0, period: float = PACKET_MS
) -> Played:
    """Puts packet n in at the nth arrival and takes one every period, all in milliseconds."""
    played = Played()
    waiting = sorted(enumerate(arrivals), key=lambda each: (each[1], each[0]))
    next_put = 0
    for tick in range(int((until - begin) / period)):
        now = begin + tick * period
        while next_put < len(waiting) and waiting[next_put][1] <= now:
            buffer.now_ms = waiting[next_put][1]
            buffer.put(packet(waiting[next_put][0]))
            played.most_waiting = max(played.most_waiting, len(buffer))
            next_put += 1
        buffer.now_ms = now
        taken = buffer.take()
        if taken == SILENCE:
            played.silences.append(now)
        else:
            played.packets.append((now, struct.unpack(">I", taken)[0]))
    counters = buffer.counters
    assert counters.received == next_put == counters.played + counters.dropped + len(buffer), counters
    assert counters.played + counters.repeated == len(played.packets), counters
    assert counters.starved + counters.silent == len(played.silences), counters
    assert played.numbers == sorted(played.numbers), "the packets are out of order"
    assert len(played.numbers) - len(set(played.numbers)) == counters.repeated, "one came twice"
    return played


def steady(seconds: float, period: float = PACKET_MS) -> list[float]:
    return [number * period for number in range(int(seconds * 1_000 / period))]


def test_a_steady_stream_is_played_whole_with_100_ms_of_delay():
    buffer = Simulated()
    played = run(buffer, steady(600), until=600_000)
    assert len(played.silences) == TARGET_PACKETS - 1 == buffer.counters.silent, buffer.counters
    assert played.numbers == list(range(len(played.numbers))), buffer.counters
    assert {round(delay) for delay in played.delays_ms()} == {90}, "10 ms to the first tick, and four more packets"
    assert buffer.counters.starved == buffer.counters.dropped == 0, buffer.counters


def test_a_full_start_is_heard_at_once():
    """What the Router sends on joining fills the buffer."""
    buffer = Simulated()
    played = run(buffer, [max(0.0, arrival - 100) for arrival in steady(20)], until=19_800)
    assert not played.silences and buffer.counters.dropped == 0, buffer.counters


@pytest.mark.parametrize("seed", range(5))
def test_jitter_is_not_heard(seed):
    dice = random.Random(seed)
    late = [arrival + dice.uniform(0, 70) for arrival in steady(120)]
    # TCP keeps the order.
    arrivals = [max(late[: number + 1][-20:]) for number in range(len(late))]
    buffer = Simulated()
    played = run(buffer, arrivals, until=119_000)
    assert buffer.counters.starved == buffer.counters.dropped == 0, buffer.counters
    assert max(played.delays_ms()) <= 100 + 70 + PACKET_MS, max(played.delays_ms())


def test_more_jitter_than_the_target_is_survived_in_the_end():
    """Every second the network stands still for 160 ms: more than was waiting. The delay grows to what is needed."""
    buffer = Simulated()
    arrivals = [arrival + max(0, 160 - arrival % 1_000) if arrival >= 1_000 else arrival for arrival in steady(300)]
    played = run(buffer, arrivals, until=299_000)
    assert buffer.counters.starved <= 10 and max(played.silences) < 10_000, (buffer.counters, played.silences)
    assert max(played.delays_ms()) <= 300, max(played.delays_ms())


@pytest.mark.parametrize("parts_per_million", [100, 2_000])
def test_a_slow_voice_thread_does_not_fall_behind(parts_per_million):
    """For an hour the engine sends a little faster than Discord's thread takes."""
    hours = 1 if parts_per_million < 1_000 else 0.3
    period = PACKET_MS * (1 + parts_per_million / 1e6)
    buffer = Simulated()
    played = run(buffer, steady(hours * 3_600), until=hours * 3_600_000 - 1_000, period=period)
    delays = played.delays_ms()
    assert max(delays) <= (TARGET_PACKETS + 3) * PACKET_MS, f"{max(delays)} ms"
    assert buffer.counters.starved == 0, buffer.counters
    expected = hours * 180_000 * parts_per_million / 1e6
    assert expected - 3 <= buffer.counters.dropped <= expected + 2, (buffer.counters, expected)
    jumps = [after - before - 1 for before, after in pairwise(played.numbers) if after != before + 1]
    assert set(jumps) == {1}, f"more than one packet at once was dropped: {jumps}"
    at = [before for before, after in pairwise(played.numbers) if after != before + 1]
    assert all(later - earlier >= WINDOW_PACKETS for earlier, later in pairwise(at)), "they are dropped in a row"


@pytest.mark.parametrize("parts_per_million", [100, 2_000])
def test_a_fast_voice_thread_loses_nothing(parts_per_million):
    hours = 1 if parts_per_million < 1_000 else 0.3
    period = PACKET_MS * (1 - parts_per_million / 1e6)
    buffer = Simulated()
    played = run(buffer, steady(hours * 3_600), until=hours * 3_600_000, period=period)
    counters = buffer.counters
    assert counters.dropped == 0 and sorted(set(played.numbers)) == list(range(played.numbers[-1] + 1)), counters
    missing = hours * 180_000 * parts_per_million / 1e6
    made_up = counters.repeated + counters.starved
    assert missing - TARGET_PACKETS - 1 <= made_up <= missing + TARGET_PACKETS + 1, (counters, missing)
    # Quartz is never off by more than 1,000 ppm: clocks that are run empty sometimes.
    assert (counters.starved > 0) == (parts_per_million > 1_000), counters
    assert max(played.delays_ms()) <= (TARGET_PACKETS + 1) * PACKET_MS, max(played.delays_ms())


def jittery(hours: float, seed: int, most_ms: float) -> list[float]:
    """A stream whose packets are up to so late, and never overtake another, as TCP keeps the order."""
    dice, arrivals = random.Random(seed), [0.0]
    for number in range(1, int(hours * 180_000)):
        arrivals.append(max(arrivals[-1], number * PACKET_MS + dice.uniform(0, most_ms)))
    return arrivals


@pytest.mark.parametrize("most_ms", [0, 60], ids=["even", "jittery"])
@pytest.mark.parametrize("parts_per_million", [-100, 100], ids=["fast", "slow"])
def test_drift_costs_one_packet_in_minutes(parts_per_million, most_ms):
    """Three hours with a thread that takes 100 ppm too fast, or too slowly: 54 packets, one at a time."""
    hours, period = 3, PACKET_MS * (1 + parts_per_million / 1e6)
    buffer = Simulated()
    played = run(buffer, jittery(hours, 1, most_ms), until=hours * 3_600_000 - 1_000, period=period)
    counters, drift = buffer.counters, hours * 180_000 * 100 / 1e6
    assert counters.starved == 0 and counters.silent < 2 * TARGET_PACKETS, counters
    made_up, other = counters.repeated, counters.dropped
    if parts_per_million > 0:
        made_up, other = other, made_up
    assert other == 0 and abs(made_up - drift) <= 1, counters
    steps = [(at, after - before) for (at, before), (_, after) in pairwise(played.packets)]
    corrections = [at for at, step in steps if step != 1]
    assert {step for _, step in steps} == {1, 0 if parts_per_million < 0 else 2}
    assert min(later - earlier for earlier, later in pairwise(corrections)) >= 100_000, "more often than clocks drift"
    # In the mean of each minute it is as late as at the beginning, give or take a packet.
    delays = played.delays_ms()
    minutes = [sum(delays[begin : begin + 3_000]) / 3_000 for begin in range(0, len(delays) - 3_000, 3_000)]
    assert all(abs(minute - minutes[0]) <= PACKET_MS for minute in minutes), (min(minutes), max(minutes))


@pytest.mark.parametrize("begin", [10.0, 0.05])
@pytest.mark.parametrize("most_ms", [0, 60], ids=["even", "jittery"])
def test_clocks_that_are_alike_are_not_corrected(most_ms, begin):
    """Not even where packets are taken just when they come, so that now four wait and now five."""
    buffer = Simulated()
    wandering = [at + 0.1 * math.sin(at / 60_000) for at in jittery(2, 2, most_ms)]
    played = run(buffer, wandering, until=2 * 3_600_000 - 1_000, begin=begin)
    counters = buffer.counters
    assert counters.repeated == counters.dropped == counters.starved == 0, counters
    assert played.numbers == list(range(len(played.numbers)))


def test_a_network_that_becomes_slower_costs_one_packet_at_a_time():
    """From some moment on all comes 40 ms later: what has to wait against jitter is there again, in half a minute."""
    buffer = Simulated()
    arrivals = [arrival + (40 if arrival > 60_000 else 0) for arrival in steady(300)]
    played = run(buffer, arrivals, until=299_000)
    counters = buffer.counters
    assert (counters.repeated, counters.dropped, counters.starved) == (2, 0, 0), counters
    twice = [at for (at, before), (_, after) in pairwise(played.packets) if after == before]
    assert twice[1] - twice[0] >= 20_000 and twice[1] < 120_000, twice
    assert len(buffer) == TARGET_PACKETS - 1


def test_a_burst_after_a_stall_leaves_no_delay():
    """The network stands still for 300 ms, and then everything comes at once; again and again."""
    buffer = Simulated()
    arrivals = [
        arrival if arrival % 30_000 < 29_700 else arrival // 30_000 * 30_000 + 30_000 for arrival in steady(600)
    ]
    played = run(buffer, arrivals, until=599_000)
    assert played.most_waiting <= MAXIMUM_PACKETS + 1
    settled = [
        delay
        for (at, _), delay in zip(played.packets, played.delays_ms(), strict=True)
        if 12_000 < at % 30_000 < 29_000
    ]
    assert max(settled) <= (TARGET_PACKETS + 2) * PACKET_MS, f"{max(settled)} ms of delay stay after a burst"


def test_a_burst_beyond_the_maximum_is_cut_at_once():
    buffer = Simulated()
    run(buffer, steady(1), until=1_000)
    for number in range(100):
        buffer.put(packet(1_000 + number))
        assert len(buffer) <= MAXIMUM_PACKETS
    newest = [struct.unpack(">I", buffer.take())[0] for _ in range(len(buffer))]
    assert newest[-1] == 1_099 and newest == list(range(newest[0], 1_100)), "the newest are kept, without a hole"


def test_a_pause_is_no_starving_and_adds_no_delay():
    buffer = Simulated()
    for _ in range(200):
        for _ in range(3 * TARGET_PACKETS):
            buffer.put(packet(0))
            buffer.take()
        buffer.expect(False)
        while buffer.take() != SILENCE:
            pass
        assert len(buffer) == 0 and buffer.take() == SILENCE
        buffer.expect(True)
        for filled in range(1, TARGET_PACKETS):
            buffer.put(packet(0))
            assert buffer.take() == SILENCE, f"sound begins with {filled} packets"
        buffer.put(packet(0))
        assert buffer.take() != SILENCE and len(buffer) == TARGET_PACKETS - 1
    assert buffer.counters.starved == buffer.counters.dropped == 0, buffer.counters


def test_running_empty_is_starving_until_it_is_full_again():
    buffer = Simulated()
    for number in range(TARGET_PACKETS):
        buffer.put(packet(number))
    assert [buffer.take() != SILENCE for _ in range(TARGET_PACKETS + 3)] == [True] * TARGET_PACKETS + [False] * 3
    for number in range(TARGET_PACKETS - 1):
        buffer.put(packet(number))
        assert buffer.take() == SILENCE
    buffer.put(packet(9))
    assert buffer.take() == packet(0)
    assert buffer.counters.starved == 3 + TARGET_PACKETS - 1 and buffer.counters.silent == 0, buffer.counters


def test_a_sound_shorter_than_the_target_is_heard_when_it_is_whole():
    buffer = Simulated()
    for number in range(3):
        buffer.put(packet(number))
        assert buffer.take() == SILENCE
    buffer.expect(False)
    assert [buffer.take() for _ in range(4)] == [packet(0), packet(1), packet(2), SILENCE]


def test_who_begins_to_take_late_hears_the_newest():
    buffer = Simulated()
    for number in range(100_000):
        buffer.put(packet(number))
        assert len(buffer) <= MAXIMUM_PACKETS
    assert len(buffer) == TARGET_PACKETS
    assert buffer.take() == packet(100_000 - TARGET_PACKETS)


@pytest.mark.parametrize("target, maximum", [(0, 5), (6, 5), (-1, 20)])
def test_a_target_that_cannot_be_is_refused(target, maximum):
    with pytest.raises(ValueError, match="target"):
        PacketBuffer(target, maximum)


def test_two_threads_lose_nothing():
    buffer = PacketBuffer(target=5, maximum=1_000_000)
    count = 20_000
    taken: list[bytes] = []
    has_put_all = threading.Event()

    def take() -> None:
        while not (has_put_all.is_set() and len(buffer) == 0):
            taken.append(buffer.take())

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        taker = threading.Thread(target=take)
        taker.start()
        for number in range(count):
            buffer.put(packet(number))
        buffer.expect(False)
        has_put_all.set()
        taker.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert not taker.is_alive()
    counters = buffer.counters
    heard = [each for each in taken if each != SILENCE]
    assert counters.received == count == counters.played + counters.dropped + len(buffer), counters
    assert len(heard) == counters.played and heard == sorted(heard), counters
