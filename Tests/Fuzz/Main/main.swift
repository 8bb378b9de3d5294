import FuzzTargets
import Glibc

/// What libFuzzer calls with bytes.
typealias Target = @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt

/// libFuzzer as a library (https://llvm.org/docs/LibFuzzer.html): SwiftPM gives an executable a main of its own.
@_silgen_name("LLVMFuzzerRunDriver")
func runFuzzer(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>, _ target: Target
) -> CInt

/// The engine waits a moment between two attempts, which shows nothing here.
@_cdecl("usleep") func doNotSleep(_ microseconds: UInt32) -> CInt { 0 }

let decode: Target = { bytes, count in
  try! DecodeTarget.run(UnsafeRawBufferPointer(start: bytes, count: count))
  return 0
}
let conversation: Target = { bytes, count in
  try! ConversationTarget.run(UnsafeRawBufferPointer(start: bytes, count: count))
  return 0
}
let targets = ["decode": decode, "conversation": conversation]

// By the environment, which libFuzzer's own processes have too.
let name = getenv("ANTIPHON_FUZZ_TARGET").map { String(cString: $0) } ?? ""
guard let target = targets[name] else {
  fatalError("ANTIPHON_FUZZ_TARGET is one of \(targets.keys.sorted())")
}
var count = CommandLine.argc
var arguments = CommandLine.unsafeArgv
exit(runFuzzer(&count, &arguments, target))
