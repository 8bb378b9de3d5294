import AudioEngineCore
import Testing
import WireProtocol

struct RenderServiceTests {
  /// 0.1 s that differ by the seed.
  private static func short(_ seed: Int) -> Score {
    var score = SynthesisScores.solo(.strings, [(0, 4_000, 60, 100)], length: 4_800)
    score.seed = seed
    return score
  }

  @Test(arguments: RenderEncoding.allCases)
  func `many at once give what each gives alone`(encoding: RenderEncoding) async throws {
    let alone = RenderService(threadCount: 1)
    let together = RenderService(threadCount: 4)
    var expected: [Int: [UInt8]] = [:]
    for seed in 0..<6 { expected[seed] = Array(try await alone.whole(Self.short(seed), as: encoding).bytes) }
    #expect(Set(expected.values).count == 6)
    try await withThrowingTaskGroup(of: (Int, [UInt8]).self) { group in
      for ask in 0..<24 {
        group.addTask { (ask % 6, Array(try await together.whole(Self.short(ask % 6), as: encoding).bytes)) }
      }
      for try await (seed, bytes) in group { #expect(bytes == expected[seed]) }
    }
  }

  @Test func `a rendering is given in pieces that make the whole`() async throws {
    let service = RenderService(threadCount: 2)
    let score = SynthesisScores.solo(.saw, [(0, 40_000, 50, 100)], length: 48_000)
    let whole = try await service.whole(score, as: .pcm16)
    #expect(whole.bytes.count == 192_000 && whole.sampleCount == 48_000)
    var piece = try await Self.piece(service, .score(score, .pcm16))
    var bytes = Array(piece.data)
    while bytes.count < piece.byteCount {
      #expect(piece.data.count <= WireLimits.maximumRenderedPieceByteCount)
      piece = try await Self.piece(service, .piece(rendering: piece.rendering, offset: bytes.count))
      bytes += piece.data
    }
    #expect(bytes == Array(whole.bytes) && piece.rendering == whole.name && piece.sampleCount == 48_000)
    await #expect { try await Self.piece(service, .piece(rendering: whole.name, offset: 192_000)) } throws: {
      ($0 as? ErrorReport)?.code == .invalidCommand
    }
    await #expect { try await Self.piece(service, .piece(rendering: "feed", offset: 0)) } throws: {
      let report = $0 as? ErrorReport
      return report?.code == .notFound && report?.hint == "ask for its score again"
    }
  }

  @Test func `what is not asked for any more is forgotten when others need its place`() async throws {
    let service = RenderService(threadCount: 1, cacheByteLimit: 50_000)
    let first = try await service.whole(Self.short(1), as: .pcm16)
    for seed in 2..<5 { _ = try await service.whole(Self.short(seed), as: .pcm16) }
    await #expect { try await Self.piece(service, .piece(rendering: first.name, offset: 0)) } throws: {
      ($0 as? ErrorReport)?.code == .notFound
    }
  }

  @Test func `too many at once are refused, and all others are answered`() async throws {
    let service = RenderService(threadCount: 1)
    let count = 3 * RenderService.maximumQueuedRenderings
    let codes = await withTaskGroup(of: ErrorCode?.self) { group in
      for seed in 0..<count {
        group.addTask {
          do throws(ErrorReport) {
            _ = try await service.whole(Self.short(seed), as: .wav)
            return nil
          } catch { return error.code }
        }
      }
      return await group.reduce(into: [ErrorCode?]()) { $0.append($1) }
    }
    #expect(codes.count == count)
    #expect(codes.allSatisfy { $0 == nil || $0 == .workersExhausted })
    #expect(codes.count { $0 == nil } > RenderService.maximumQueuedRenderings / 2)
  }

  @Test func `a score without an end, and one too long for its encoding, are refused by name`() async {
    let service = RenderService(threadCount: 1)
    await #expect { try await service.whole(SynthesisScores.bed, as: .opus) } throws: {
      ($0 as? ErrorReport)?.message.contains("score.length") == true
    }
    let long = SynthesisScores.solo(.pad, [(0, 100, 60, 100)], length: 61 * 48_000)
    await #expect { try await service.whole(long, as: .json) } throws: {
      ($0 as? ErrorReport)?.code == .invalidCommand
    }
  }

  @Test func `samples are written with six digits at most, and as the nearest word`() {
    let samples: [Float] = [0, -0.5, 0.123_456_7, 1, -1, 0.000_001, -0.000_000_1, 0.25]
    let text = String(decoding: SampleJSON.bytes(of: samples), as: UTF8.self)
    #expect(
      text == #"{"numberOfChannels":2,"length":4,"sampleRate":48000,"duration":8.333333333333333e-05,"#
        + #""channels":[[0,0.123457,-1,0],[-0.5,1,0.000001,0.25]]}"#)
    #expect(
      PCM16.samples(of: [0, 1, -1, 0.5, -0.5, 0.000_02]) == [0, 32_767, -32_767, 16_384, -16_384, 1])
  }

  private static func piece(_ service: RenderService, _ request: RenderRequest) async throws -> RenderedPiece
  {
    try await withCheckedThrowingContinuation { continuation in
      service.render(request) { continuation.resume(with: $0) }
    }
  }
}
