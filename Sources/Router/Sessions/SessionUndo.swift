/// What a session was before clients changed it, until the disk has confirmed what they asked for.
struct SessionUndo {
  let session: RoutedSession
  var playback: Playback.Undo

  init(_ session: RoutedSession) {
    self.session = session
    playback = Playback.Undo(session.playback)
  }

  /// The session is as it was. What has happened since is to be repeated.
  func restore() { session.playback.undo(to: playback) }
}
