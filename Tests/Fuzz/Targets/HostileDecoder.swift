import AudioEngineCore
import Glibc
import Synchronization

/// A decoder process in a stranger's hands, which says what a script has.
package final class HostileDecoder: Sendable {
  private struct State {
    var steps: ArraySlice<Script.Step>
    var cancel: @Sendable () -> Void = {}
  }

  private let isDeaf: Bool
  private let state: Mutex<State>

  package init(_ script: Script) {
    isDeaf = script.isDeaf
    state = Mutex(State(steps: script.steps[...]))
  }

  /// - Parameter cancel: what a script's step of the name does.
  package func onCancel(_ cancel: @escaping @Sendable () -> Void) { state.withLock { $0.cancel = cancel } }

  /// Plays a process at the other end of a control socket; of a script's steps those that no process before has done.
  package func play(_ control: DecoderSocket) {
    while let descriptor = (try? control.receive())?.descriptor {
      converse(descriptor)
      close(descriptor)
    }
  }

  private func converse(_ descriptor: Int32) {
    while let step = state.withLock({ $0.steps.popFirst() }) {
      switch step {
      case .send(let kind, let flag, let number, let payload, let descriptorCount, let times):
        let header = DecoderSocket.Header(kind: kind, flag: flag, number: number)
        let message = withUnsafeBytes(of: header) { Array($0) } + payload
        for _ in 0..<times where !send(message, descriptorCount, descriptor) { return }
      case .sendPart(let bytes): if !send(bytes, 0, descriptor) { return }
      case .cancel: state.withLock { $0.cancel }()
      case .hang:
        state.withLock { $0.cancel }()
        return hear(descriptor)
      case .end: return finish(descriptor)
      }
    }
    finish(descriptor)
  }

  /// Says no more, and waits until the engine does not either: what it has said is read before its end is seen.
  private func finish(_ descriptor: Int32) {
    shutdown(descriptor, Int32(SHUT_WR))
    hear(descriptor)
  }

  private func hear(_ descriptor: Int32) {
    while wait(for: 0, descriptor) {}
  }

  /// - Returns: false where the engine has gone.
  private func send(_ message: [UInt8], _ descriptorCount: Int, _ descriptor: Int32) -> Bool {
    while wait(for: Int16(POLLOUT), descriptor) {
      let passed = [Int32](repeating: descriptor, count: descriptorCount)
      if Self.send(message, passing: passed, over: descriptor) { return true }
      guard errno == EAGAIN else { return false }
    }
    return false
  }

  /// Sends a message with any number of descriptors.
  ///
  /// - Returns: false, with `errno`, where it cannot be sent now.
  package static func send(_ message: [UInt8], passing passed: [Int32], over descriptor: Int32) -> Bool {
    // A control message (cmsg(3)): its length, level and type, and the descriptors, to a whole number of words.
    let length = 16 + 4 * passed.count
    var control = withUnsafeBytes(of: (length, SOL_SOCKET, Int32(SCM_RIGHTS))) { Array($0) }
    control += passed.withUnsafeBytes { Array($0) } + [UInt8](repeating: 0, count: passed.count % 2 * 4)
    return message.withUnsafeBytes { bytes in
      control.withUnsafeMutableBytes { control in
        var part = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
        return withUnsafeMutablePointer(to: &part) { part in
          var header = msghdr()
          header.msg_iov = part
          header.msg_iovlen = 1
          if !passed.isEmpty {
            header.msg_control = control.baseAddress
            header.msg_controllen = control.count
          }
          return sendmsg(descriptor, &header, Int32(MSG_DONTWAIT | MSG_NOSIGNAL)) >= 0
        }
      }
    }
  }

  /// Hears meanwhile what the engine says.
  ///
  /// - Returns: false once the engine has gone.
  private func wait(for events: Int16, _ descriptor: Int32) -> Bool {
    var poll = pollfd(fd: descriptor, events: events | (isDeaf ? 0 : Int16(POLLIN)), revents: 0)
    while true {
      _ = Glibc.poll(&poll, 1, -1)
      guard poll.revents & Int16(POLLHUP | POLLERR) == 0 else { return false }
      if poll.revents & Int16(POLLIN) != 0 {
        var byte: UInt8 = 0
        guard recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) >= 0 else { return false }
      }
      if events == 0 || poll.revents & events != 0 { return true }
    }
  }
}
