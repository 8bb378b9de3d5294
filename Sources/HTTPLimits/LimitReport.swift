/// The error object of both servers (`ErrorReport`), for what is refused before any route.
enum LimitReport {
  /// None of the texts holds a character that JSON escapes.
  static func json(_ code: String, _ message: String, hint: String) -> String {
    #"{"code":"\#(code)","message":"\#(message)","hint":"\#(hint)","severity":"common","stage":"command"}"#
  }
}
