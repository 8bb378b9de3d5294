/// The 28 bytes before a packet's audio: `length` u32 big-endian, then the padded session ID.
public enum AudioPacketHeader {
  /// Writes a header into the caller's buffer. Allocates nothing.
  ///
  /// - Parameters:
  ///   - sessionID: whose packet it is.
  ///   - audioByteCount: 1 to `WireLimits.maximumAudioByteCount`.
  ///   - destination: at least 28 bytes.
  public static func write(
    sessionID: SessionID, audioByteCount: Int, into destination: UnsafeMutableRawBufferPointer
  ) {
    let length = WireLimits.sessionIDByteCount + audioByteCount
    precondition(WireLimits.packetLengthRange.contains(length), "an audio packet of \(audioByteCount) bytes")
    destination.storeBytes(of: UInt32(length).bigEndian, as: UInt32.self)
    sessionID.write(into: UnsafeMutableRawBufferPointer(rebasing: destination[4...]))
  }

  /// A whole message, for tests and tools; the engine's pacer writes header and audio apart.
  public static func message(sessionID: SessionID, audio: some Collection<UInt8>) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: WireLimits.packetHeaderByteCount)
    bytes.withUnsafeMutableBytes { write(sessionID: sessionID, audioByteCount: audio.count, into: $0) }
    return bytes + audio
  }
}
