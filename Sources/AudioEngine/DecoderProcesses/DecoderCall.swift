import ServiceSupport
import WireProtocol

/// Why a decoder process's work ended early.
enum DecoderFailure: Error {
  /// The source's fault, or nobody wants it any more.
  case report(ErrorReport)
  /// The process died, or was killed because it hung.
  ///
  /// - Parameter wasWorking: it worked on this source just then, so that this may be why.
  case died(wasWorking: Bool)
}

/// The conversation with a decoder process about one source, on the engine's side. Used by one worker thread.
final class DecoderCall {
  enum Event {
    case opened(SourceFacts)
    /// It asks whether it may encode. `resume` follows.
    case transcodes
    /// Valid until the next event. Where the time slice is over, `resume` follows.
    case packets(UnsafeRawBufferPointer, cpuNanoseconds: UInt64, isTimeSliceOver: Bool)
    case picture([UInt8])
    case ended
  }

  /// What a process may take to say anything while it works: before a source is open it asks every 20 ms, and then it
  /// makes packets. One that has not had the CPU meanwhile has longer.
  private static let silenceNanoseconds: UInt64 = 5_000_000_000
  private static let silenceCPUNanoseconds: UInt64 = 3_000_000_000
  private static let longestSilenceNanoseconds: UInt64 = 30_000_000_000
  /// What a cover may take, for which nobody is asked whether it is still wanted.
  private static let longestPictureNanoseconds: UInt64 = 30_000_000_000
  /// Packets of a time slice, with room to spare: a second of them, and no more than `TimeSlice` and a step of a
  /// pipeline's.
  private static let maximumTimeSliceByteCount = 2 << 20
  /// Behind every source's end, and with room for what is added to it.
  private static let maximumOffset: Int64 = 1 << 60
  /// How often a waiting worker looks whether it is still wanted.
  private static let pollMilliseconds: Int32 = 50

  let process: DecoderProcess
  private let socket: DecoderSocket
  private let input: any MediaInput
  /// nil where nobody's sound waits for it.
  private let permit: HeldPermit?
  private let pool: DecoderPool
  /// What was asked for is being done there.
  private var isWorking = false
  private let begunNanoseconds = MonotonicClock.nowNanoseconds
  /// When it was answered last, and what it has delivered since.
  private var answeredNanoseconds = MonotonicClock.nowNanoseconds
  private var deliveredByteCount = 0

  init(
    _ process: DecoderProcess, _ socket: DecoderSocket, _ input: any MediaInput, _ permit: HeldPermit?,
    pool: DecoderPool
  ) {
    self.process = process
    self.socket = socket
    self.input = input
    self.permit = permit
    self.pool = pool
  }

  deinit { pool.end(process) }

  // MARK: Asking

  func begin(_ work: DecoderJob.Work) throws(DecoderFailure) {
    let message = try receive()
    guard MessageFromDecoder(rawValue: message.header.kind) == .began else { throw broken() }
    // A thread that holds a permit too long is reniced: make sure that the ID is one of this process's.
    permit?.decoderThreadID = Int32(exactly: message.header.number).flatMap {
      process.hasThread($0) ? $0 : nil
    }
    let job = DecoderJob(work: work, byteCount: input.byteCount, isSeekable: input.isSeekable)
    let file = (input as? FileInput)?.descriptor
    try answer { () throws(DecoderSocket.Gone) in
      try socket.send(MessageToDecoder.begin.rawValue, json: job, passing: file)
    }
  }

  func order(_ order: ProductionOrder) throws(DecoderFailure) {
    try answer { () throws(DecoderSocket.Gone) in
      try socket.send(MessageToDecoder.order.rawValue, json: order)
    }
  }

  func resume(niceness: Int32 = 0) throws(DecoderFailure) {
    try answer { () throws(DecoderSocket.Gone) in
      try socket.send(.init(kind: MessageToDecoder.resume.rawValue, flag: 0, number: Int64(niceness)))
    }
  }

  func refuse(_ report: ErrorReport) throws(DecoderFailure) {
    try answer { () throws(DecoderSocket.Gone) in
      try socket.send(MessageToDecoder.refused.rawValue, json: report)
    }
  }

  /// What it says next; what it reads until then it is given.
  func next() throws(DecoderFailure) -> Event {
    while true {
      let message = try receive()
      let number = message.header.number
      switch MessageFromDecoder(rawValue: message.header.kind) {
      case .read: try read(byteCount: number)
      case .seek: try seek(to: number)
      case .yield:
        permit?.yieldIfWanted()
        try resume()
      case .opened: return .opened((try decode(message) as SourceFacts).bounded())
      case .transcodes: return .transcodes
      case .packets:
        let isTimeSliceOver = message.header.flag == TimeSliceFlag.isOver
        isWorking = !isTimeSliceOver
        deliveredByteCount += message.payload.count
        guard deliveredByteCount <= Self.maximumTimeSliceByteCount else { throw broken() }
        // A thread has no more CPU time than time.
        let cost = min(UInt64(clamping: number), MonotonicClock.nowNanoseconds - answeredNanoseconds)
        return .packets(message.payload, cpuNanoseconds: cost, isTimeSliceOver: isTimeSliceOver)
      case .metadata:
        deliveredByteCount += message.payload.count
        guard deliveredByteCount <= Self.maximumTimeSliceByteCount else { throw broken() }
        isWorking = true
        let metadata = (try decode(message) as StreamMetadata).bounded()
        // What is said in the middle of a track is no title of the whole.
        if let permit, permit.isLive { permit.note(metadata) }
      case .picture:
        return .picture(try collect(message, maximumByteCount: DecoderSocket.maximumLongByteCount))
      case .ended: return .ended
      case .failed: throw .report((try decode(message) as ErrorReport).bounded())
      case .began, nil: throw broken()
      }
    }
  }

  // MARK: The source's bytes

  private func read(byteCount: Int64) throws(DecoderFailure) {
    guard (1...Int64(DecoderSocket.maximumPayloadByteCount)).contains(byteCount) else { throw broken() }
    let outcome = withUnsafeTemporaryAllocation(byteCount: Int(byteCount), alignment: 16) { buffer in
      Result { () throws(DecoderFailure) in
        let count: Int
        do throws(ErrorReport) {
          count = try input.read(into: buffer)
        } catch {
          return try refuse(error)
        }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        try answer { () throws(DecoderSocket.Gone) in
          try socket.send(.init(kind: MessageToDecoder.bytes.rawValue, flag: 0, number: 0), bytes)
        }
      }
    }
    try outcome.get()
  }

  private func seek(to offset: Int64) throws(DecoderFailure) {
    // libavformat asks for no place before the start (avio_seek), and a file may name any behind the end.
    guard offset >= 0 else { throw broken() }
    let offset = min(offset, Self.maximumOffset)
    do throws(ErrorReport) {
      try input.seek(to: offset)
    } catch {
      return try refuse(error)
    }
    try resume()
  }

  // MARK: Messages

  private func receive() throws(DecoderFailure) -> DecoderSocket.Message {
    let asked = MonotonicClock.nowNanoseconds
    var cpuAtFirst: UInt64?
    while true {
      let hasMessage = socket.wait(milliseconds: Self.pollMilliseconds)
      // Also of one that says something all the time.
      try checkWanted()
      guard !hasMessage else { break }
      let used = process.life.cpuNanoseconds
      cpuAtFirst = cpuAtFirst ?? used
      let waited = MonotonicClock.nowNanoseconds - asked
      if waited > Self.longestSilenceNanoseconds
        || waited > Self.silenceNanoseconds && used > (cpuAtFirst ?? used) + Self.silenceCPUNanoseconds
      {
        process.kill()
        throw .died(wasWorking: isWorking)
      }
    }
    do {
      let message = try socket.receive()
      isWorking = false
      return message
    } catch {
      throw .died(wasWorking: isWorking)
    }
  }

  private func checkWanted() throws(DecoderFailure) {
    if let permit {
      guard !permit.isCancelled() else { throw .report(.superseded) }
    } else if MonotonicClock.nowNanoseconds > begunNanoseconds + Self.longestPictureNanoseconds {
      throw broken()
    }
  }

  private func collect(
    _ message: DecoderSocket.Message, maximumByteCount: Int
  ) throws(DecoderFailure) -> [UInt8] {
    try DecoderSocket.collect(message, maximumByteCount: maximumByteCount, next: receive, broken: broken)
  }

  private func decode<Value: Decodable>(_ message: DecoderSocket.Message) throws(DecoderFailure) -> Value {
    let bytes = try collect(message, maximumByteCount: DecoderSocket.maximumJSONByteCount)
    do { return try DecoderSocket.decode(bytes) } catch { throw broken() }
  }

  /// It does not keep to what was agreed: who knows what it has become.
  func broken() -> DecoderFailure {
    process.kill()
    return .died(wasWorking: true)
  }

  /// From here on it works.
  private func answer(_ send: () throws(DecoderSocket.Gone) -> Void) throws(DecoderFailure) {
    do { try send() } catch { throw error.hasSendTimedOut ? broken() : .died(wasWorking: false) }
    isWorking = true
    answeredNanoseconds = MonotonicClock.nowNanoseconds
    deliveredByteCount = 0
  }
}
