import NIOCore

extension Channel {
  /// Has the kernel end the connection when its client has taken nothing for so long of what was sent to it
  /// (`TCP_USER_TIMEOUT`, tcp(7)); 0 for never. A client that waits for its answer, or takes it slowly, is waited
  /// for.
  public func endUntaken(afterSeconds seconds: Int) {
    let option = ChannelOptions.Types.SocketOption(level: .tcp, name: NIOBSDSocket.Option(rawValue: 18))
    // A socket without the option is served all the same.
    try? syncOptions?.setOption(option, value: SocketOptionValue(seconds * 1_000))
  }
}
