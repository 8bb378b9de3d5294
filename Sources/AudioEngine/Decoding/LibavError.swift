import CFFmpeg

/// libav's error codes in words.
enum LibavError {
  /// libav writes to standard error by itself; what matters of it comes as an error.
  static func silenceLog() { av_log_set_level(AV_LOG_QUIET) }

  static func text(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: Int(AV_ERROR_MAX_STRING_SIZE))
    av_strerror(code, &buffer, buffer.count)
    return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
