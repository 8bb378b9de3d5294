import Collections
import NIOCore

/// Writes to the clients of `/stream` in turns. Confined to the data plane's loop.
final class StreamWriter {
  private let eventLoop: any EventLoop
  private var ready: Deque<StreamClient> = []
  private var isWriting = false

  init(eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
  }

  func write(_ client: StreamClient) {
    guard client.outlet.canWrite, !client.isReady else { return }
    client.isReady = true
    ready.append(client)
    guard !isWriting else { return }
    isWriting = true
    eventLoop.execute { [bound = NIOLoopBound(self, eventLoop: eventLoop)] in bound.value.writeForAWhile() }
  }

  /// A part of a message to each in turn, and then the loop is left to sessions' packets: a long message for a
  /// thousand clients takes many turns.
  private func writeForAWhile() {
    let end = NIODeadline.now() + .microseconds(RouterLimits.streamTurnMicroseconds)
    while let client = ready.popFirst() {
      client.isReady = false
      client.outlet.writeSlice()
      if client.outlet.canWrite, !client.isReady {
        client.isReady = true
        ready.append(client)
      }
      if NIODeadline.now() >= end, !ready.isEmpty {
        let pause = TimeAmount.microseconds(RouterLimits.streamPauseMicroseconds)
        eventLoop.assumeIsolated().scheduleTask(in: pause) { [weak self] in self?.writeForAWhile() }
        return
      }
    }
    isWriting = false
  }
}
