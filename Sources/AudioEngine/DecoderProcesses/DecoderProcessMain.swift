import CLinux
import Glibc
import WireProtocol

/// What a decoder process does: it takes sockets from the engine, and starts a thread for each.
package enum DecoderProcessMain {
  /// What the executable is started with.
  package static let argument = "decoder"
  /// The descriptor over which sockets come.
  static let controlDescriptor: Int32 = 3
  private static let heapArenaCount: Int32 = 2
  /// Address space beyond its libraries: of sixty threads' stacks, two heap arenas, and what sources take.
  private static let memoryByteCount = 768 << 20

  /// Runs until the engine closes the other end of the control socket.
  package static func run() -> Never {
    // Not the place of whichever of the engine's threads has started it.
    EngineThread.setNiceness(0)
    antiphon_limit_heap_arenas(heapArenaCount)
    limitLibav()
    let refused = DecoderSandbox.enter(memoryByteCount: memoryByteCount)
    let control = DecoderSocket(descriptor: controlDescriptor, of: .decoder)
    let unenforcedProtections = refused.map { "\($0.part.rawValue): \($0.reason)" }
    guard (try? control.send(0, json: unenforcedProtections)) != nil else { exit(0) }
    serve(control)
    exit(0)
  }

  /// Before anything is opened.
  package static func limitLibav() {
    LibavError.silenceLog()
    Container.limitAllocations()
  }

  /// Starts a thread for each production whose socket comes, until the other end is closed.
  package static func serve(_ control: DecoderSocket) {
    while let message = try? control.receive() {
      guard let descriptor = message.descriptor else { continue }
      do throws(ErrorReport) {
        try EngineThread.start(name: "decoder") {
          DecoderProduction.run(DecoderSocket(descriptor: descriptor, of: .decoder))
        }
      } catch {
        // The engine sees it closed, and tries elsewhere.
        close(descriptor)
      }
    }
  }
}
