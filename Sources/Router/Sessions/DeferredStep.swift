/// Something that needs a session's whole queue, and waits for it to be read.
struct DeferredStep {
  /// Nil for what the engine or the Router itself has to do there, which is never refused.
  var client: ClientID?
  /// Told why where the queue could not be read.
  var run: (RequestError?) -> Void
}
