import AudioEngineCore
import Testing
import WireProtocol

@Suite struct MediaSourceTests {
  @Test(arguments: [
    ("media:a.flac", "a.flac"), ("media:folder/my song.mp3", "folder/my song.mp3"),
    ("media:100%.mp3", "100%.mp3"), ("media:%41.mp3", "A.mp3"), ("media:%2541.mp3", "%41.mp3"),
    ("media:a#b?c.mp3", "a#b?c.mp3"), ("media:%C3%BC.ogg", "ü.ogg"), ("media:a%2", "a%2"),
    ("media:a%+1", "a%+1"),
  ])
  func `media names a file, percent signs standing for bytes`(url: String, path: String) throws {
    #expect(try MediaSource(url) == .file(path: path))
  }

  @Test(arguments: ["a.flac", "100%.mp3", "%41", "ü ö/# ?.mp3", "%"])
  func `a file's URL leads back to the file`(path: String) throws {
    #expect(try MediaSource(MediaSource.url(forPath: path)) == .file(path: path))
  }

  @Test(arguments: ["http://example.com/a.mp3", "HTTPS://example.com", "https://[2606::1]:8443/a?b=c"])
  func `web addresses are taken`(url: String) throws { #expect(try MediaSource(url) == .web(url: url)) }

  @Test(arguments: [
    "", "media:", "song.mp3", "file:///etc/passwd", "ftp://a/b", "data:audio/wav;base64,AAAA", "concat:a|b",
    "http://", "http:///x", "/etc/passwd", "-version", "media:%00", "tcp://a:1", "subfile:,,:a",
  ])
  func `anything else is refused by name`(url: String) {
    let error = #expect(throws: ErrorReport.self) { try MediaSource(url) }
    #expect(error?.code == .invalidSource)
    #expect(error?.hint?.contains("media:") == true)
  }
}

@Suite struct OpusPassthroughTests {
  @Test func `exactly the packets of 20 ms are passed through`() {
    // RFC 6716, section 3.1, table 2: frame durations of the 32 configurations, in tenths of a millisecond.
    let durations =
      [100, 200, 400, 600, 100, 200, 400, 600, 100, 200, 400, 600, 100, 200, 100, 200]
      + [25, 50, 100, 200, 25, 50, 100, 200, 25, 50, 100, 200, 25, 50, 100, 200]
    for configuration in 0..<32 {
      for code in 0..<4 {
        for count in [1, 2, 3, 4, 8] {
          let packet = [UInt8(configuration << 3 | code), UInt8(count), 0]
          let frames = [1, 2, 2, count][code]
          let fits = packet.withUnsafeBytes { OpusPassthrough.fits(packet: $0) }
          #expect(fits == (durations[configuration] * frames == 200), "\(configuration) \(code) \(count)")
        }
      }
    }
  }

  @Test func `a header with a gain, more channels or another mapping is not passed through`() {
    func head(channels: UInt8 = 2, gain: UInt8 = 0, family: UInt8 = 0) -> [UInt8] {
      Array("OpusHead".utf8) + [1, channels, 0x38, 1, 0x80, 0xBB, 0, 0, gain, 0, family]
    }
    #expect(OpusPassthrough.fits(head: head()))
    #expect(OpusPassthrough.fits(head: head(channels: 1)))
    #expect(!OpusPassthrough.fits(head: head(channels: 6, family: 1)))
    #expect(!OpusPassthrough.fits(head: head(gain: 1)))
    #expect(!OpusPassthrough.fits(head: head(family: 255)))
    #expect(!OpusPassthrough.fits(head: []))
    #expect(!OpusPassthrough.fits(head: Array(head().dropLast())))
  }
}
