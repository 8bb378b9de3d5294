import Glibc

/// Where the two processes find each other without being told.
public enum EngineSocket {
  /// `$XDG_RUNTIME_DIR/antiphon/engine.sock`, or `/run/antiphon/engine.sock` where that is not set.
  public static var defaultPath: String {
    let directory = getenv("XDG_RUNTIME_DIR").map { String(cString: $0) } ?? ""
    return "\(directory.isEmpty ? "/run" : directory)/antiphon/engine.sock"
  }
}
