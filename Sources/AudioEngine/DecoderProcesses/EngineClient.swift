import ServiceSupport
import WireProtocol

/// The decoder process's side of the conversation about one source: sends a request to the engine, and waits for the
/// answer.
final class EngineClient {
  private let socket: DecoderSocket
  /// What is delivered before the source is waited for.
  weak var batch: PacketBatch?
  /// Since when it works without having asked whether others want the CPU.
  private var workingNanoseconds = MonotonicClock.nowNanoseconds

  init(_ socket: DecoderSocket) { self.socket = socket }

  /// Nobody wants the production any more.
  var isGone: Bool { socket.isGone }

  // MARK: What is to be done

  /// - Returns: the job, and the file where the source is one.
  func begin() throws(ErrorReport) -> (DecoderJob, file: Int32?) {
    try send(.began, number: Int64(EngineThread.currentID))
    let message = try receive(.begin)
    return (try decode(message), message.descriptor)
  }

  /// - Returns: what is wanted first of the open source.
  func tell(_ facts: SourceFacts) throws(ErrorReport) -> ProductionOrder {
    try send(.opened, json: facts)
    let order: ProductionOrder = try decode(try receive(.order))
    workingNanoseconds = MonotonicClock.nowNanoseconds
    return order
  }

  // MARK: Asking

  func read(into destination: UnsafeMutableRawBufferPointer) throws(ErrorReport) -> Int {
    batch?.deliver()
    let wanted = min(destination.count, DecoderSocket.maximumPayloadByteCount)
    try send(.read, number: Int64(wanted))
    let message = try receive(.bytes)
    guard message.payload.count <= wanted else { throw .superseded }
    destination.copyMemory(from: message.payload)
    return message.payload.count
  }

  func seek(to offset: Int64) throws(ErrorReport) {
    try send(.seek, number: offset)
    _ = try receive(.resume)
  }

  /// Lets others have the CPU where it has worked for a time slice.
  func yieldIfWanted() throws(ErrorReport) {
    guard MonotonicClock.nowNanoseconds >= workingNanoseconds + TimeSlice.longestNanoseconds else { return }
    try send(.yield)
    _ = try receive(.resume)
  }

  /// Before anything is encoded.
  func enterEncoder() throws(ErrorReport) {
    try send(.transcodes)
    _ = try receive(.resume)
  }

  // MARK: Telling

  /// Delivers packets while the time slice lasts.
  func deliver(_ packets: UnsafeRawBufferPointer) throws(ErrorReport) {
    try send(.packets, flag: TimeSliceFlag.hasMore, number: 0, packets)
  }

  /// Delivers the last packets of a time slice, and waits for the next one.
  ///
  /// - Parameter cpuNanoseconds: what the time slice has cost.
  func endTimeSlice(_ packets: UnsafeRawBufferPointer, cpuNanoseconds: UInt64) throws(ErrorReport) {
    try send(.packets, flag: TimeSliceFlag.isOver, number: Int64(clamping: cpuNanoseconds), packets)
    let message = try receive(.resume)
    EngineThread.setNiceness(Int32(clamping: message.header.number))
  }

  func tell(_ metadata: StreamMetadata) throws(ErrorReport) { try send(.metadata, json: metadata) }

  func end() throws(ErrorReport) { try send(.ended) }

  func deliver(picture bytes: UnsafeRawBufferPointer) throws(ErrorReport) {
    do { try socket.send(long: MessageFromDecoder.picture.rawValue, bytes) } catch { throw .superseded }
  }

  /// The last word. Nobody may hear it.
  func fail(_ report: ErrorReport) { try? send(.failed, json: report) }

  // MARK: Messages

  private func send(
    _ kind: MessageFromDecoder, flag: UInt32 = 0, number: Int64 = 0,
    _ payload: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
  ) throws(ErrorReport) {
    do {
      try socket.send(DecoderSocket.Header(kind: kind.rawValue, flag: flag, number: number), payload)
    } catch {
      throw .superseded
    }
  }

  private func send(_ kind: MessageFromDecoder, json value: some Encodable) throws(ErrorReport) {
    do { try socket.send(kind.rawValue, json: value) } catch { throw .superseded }
  }

  /// - Throws: what the engine refuses it for; `superseded` where the engine has gone.
  private func receive(_ kind: MessageToDecoder) throws(ErrorReport) -> DecoderSocket.Message {
    let message: DecoderSocket.Message
    do { message = try socket.receive() } catch { throw .superseded }
    workingNanoseconds = MonotonicClock.nowNanoseconds
    switch MessageToDecoder(rawValue: message.header.kind) {
    case kind: return message
    case .refused: throw try decode(message) as ErrorReport
    default: throw .superseded
    }
  }

  private func decode<Value: Decodable>(_ message: DecoderSocket.Message) throws(ErrorReport) -> Value {
    do { return try socket.decode(message) } catch { throw .superseded }
  }
}

/// A source that the engine reads for the decoder process: anything that is not a local file.
final class EngineFedInput: MediaInput {
  private let engine: EngineClient
  let byteCount: Int64?
  let isSeekable: Bool

  init(_ engine: EngineClient, _ job: DecoderJob) {
    self.engine = engine
    byteCount = job.byteCount
    isSeekable = job.isSeekable
  }

  func read(into destination: UnsafeMutableRawBufferPointer) throws(ErrorReport) -> Int {
    try engine.read(into: destination)
  }

  func seek(to offset: Int64) throws(ErrorReport) { try engine.seek(to: offset) }
}
