import WireProtocol

/// One production on its thread in a decoder process: demuxes, decodes or passes through, encodes, delivers.
struct DecoderProduction {
  /// Decoding begins this much before a seek's position: codecs need to settle (RFC 7845, section 4.6, and
  /// MP3's bit reservoir).
  private static let prerollMilliseconds = 250

  private let engine: EngineClient

  /// Does what the engine asks for over a socket, and closes it.
  static func run(_ socket: DecoderSocket) {
    let engine = EngineClient(socket)
    do throws(ErrorReport) {
      try DecoderProduction(engine: engine).run()
    } catch {
      engine.fail(error)
    }
  }

  private func run() throws(ErrorReport) {
    let (job, file) = try engine.begin()
    let input: any MediaInput = file.map { FileInput(descriptor: $0) } ?? EngineFedInput(engine, job)
    switch job.work {
    case .picture(let name): try deliverPicture(of: input, name)
    case .production: try produce(input)
    }
    try engine.end()
  }

  // MARK: Pictures

  private func deliverPicture(of input: any MediaInput, _ name: String) throws(ErrorReport) {
    let container = try Container(input: input, watch: watch())
    guard let picture = container.picture ?? container.anyPicture else { return }
    guard picture.count <= Picture.maximumByteCount else { throw Picture.tooLarge(picture.count, name) }
    try engine.deliver(picture: picture)
  }

  private func watch() -> ReadWatch {
    // Where the engine has gone, the next question says so.
    ReadWatch(isCancelled: { engine.isGone }, yieldIfWanted: { try? engine.yieldIfWanted() })
  }

  // MARK: Packets

  private func produce(_ input: any MediaInput) throws(ErrorReport) {
    var demuxer = try Demuxer(input: input, watch: watch())
    let order = try engine.tell(SourceFacts(of: demuxer))
    _ = demuxer.takeMetadata()
    let start = order.startMilliseconds
    if start > 0, order.seeks { try demuxer.seek(toMilliseconds: max(0, start - Self.prerollMilliseconds)) }
    let batch = PacketBatch(engine, prerollCount: order.prerollPackets)
    if order.allowsPassthrough, demuxer.fitsPassthrough {
      var pipeline = PassthroughPipeline(startMilliseconds: start)
      let end = try drive(batch) { (batch) throws(ErrorReport) in
        try pipeline.advance(&demuxer, into: batch)
      }
      switch end {
      case .ended: return
      case .landedBehind: try demuxer.seek(toMilliseconds: 0)
      case .hasMore, .needsTranscoding: demuxer.putBack()
      }
    }
    // From the start, or from where passing through ended.
    let transcodeStart = start + batch.count * WireLimits.packetDurationMilliseconds
    try engine.enterEncoder()
    var pipeline = TranscodePipeline(
      decoder: try demuxer.makeDecoder(),
      encoder: try OpusEncoder.make(order.encoding, kilobitsPerSecond: order.kilobitsPerSecond),
      volume: order.volume, startMilliseconds: transcodeStart, endSeconds: demuxer.exactEndSeconds)
    var end = try drive(batch) { (batch) throws(ErrorReport) in try pipeline.advance(&demuxer, into: batch)
    }
    if end == .landedBehind {
      // An index that led too far: decode from the very start and throw away.
      try demuxer.seek(toMilliseconds: 0)
      pipeline.restart()
      end = try drive(batch) { (batch) throws(ErrorReport) in try pipeline.advance(&demuxer, into: batch) }
    }
    guard end == .ended else {
      throw ErrorReport(
        .sourceCorrupt, "the source has no time stamps to find \(transcodeStart) ms by",
        hint: "play it from its start", stage: .decode)
    }
  }

  /// Runs a pipeline, time slice by time slice, until it ends or wants something else.
  private func drive(
    _ batch: PacketBatch, advance: (PacketBatch) throws(ErrorReport) -> PipelineStep
  ) throws(ErrorReport) -> PipelineStep {
    var timeSlice = TimeSlice(firstPacket: batch.count)
    while true {
      let step: PipelineStep
      do throws(ErrorReport) {
        step = try advance(batch)
      } catch {
        // What was received is heard.
        batch.deliver()
        throw error
      }
      guard step == .hasMore else {
        batch.deliver()
        try batch.check()
        return step
      }
      guard timeSlice.isOver(packetCount: batch.count) else { continue }
      try batch.endTimeSlice(cpuNanoseconds: timeSlice.cost(packetCount: batch.count).nanoseconds)
      timeSlice = TimeSlice(firstPacket: batch.count)
    }
  }
}

extension SourceFacts {
  init(of demuxer: borrowing Demuxer) {
    title = demuxer.title
    artist = demuxer.artist
    album = demuxer.album
    chapters = demuxer.chapters
    durationMilliseconds = demuxer.durationMilliseconds
    isDurationEstimated = demuxer.isDurationEstimated
    codecName = demuxer.codecName
    hasPicture = demuxer.hasPicture
    fitsPassthrough = demuxer.fitsPassthrough
  }
}
