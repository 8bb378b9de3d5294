import Foundation
import Testing
import WireProtocol

@Suite struct `The description of the API` {
  @Test func `names every error code`() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Sources/Router/API/openapi.yaml").standardized
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    let items = Set(lines.map { $0.drop { $0 == " " } }.filter { $0.hasPrefix("- ") }.map { $0.dropFirst(2) })
    let missing = ErrorCode.allCases.map(\.rawValue).filter { !items.contains($0[...]) }
    #expect(missing == [])
  }
}
