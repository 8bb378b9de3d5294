import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Times as a manifest writes them.
enum DASHTime {
  /// Over a hundred years, which nothing lasts.
  static let seconds = 0.0...4e9
  static let clockMarginSeconds = 1.0
  /// How many of its segments before its end a live stream is joined, as one of HLS.
  static let liveSegments = 3.0

  /// `PT1H2M3.5S` (ISO 8601) in seconds; nil where there is none.
  static func duration(_ element: XMLElement, _ attribute: String) throws(ErrorReport) -> Double? {
    guard let text = element[attribute] else { return nil }
    let broken = DASHManifest.broken("\(attribute) is \(text.prefix(40))")
    guard text.first == "P" else { throw broken }
    var sum = 0.0
    var isTime = false
    var digits = ""
    for character in text.dropFirst() {
      if character == "T", digits.isEmpty {
        isTime = true
        continue
      }
      guard let factor = unitSeconds(character, isTime) else {
        digits.append(character)
        continue
      }
      guard let value = Double(digits), seconds.contains(value) else { throw broken }
      sum += value * factor
      digits = ""
    }
    guard digits.isEmpty, seconds.contains(sum) else { throw broken }
    return sum
  }

  /// A point in time (ISO 8601), of UTC where it does not say, in Unix seconds; nil where there is none.
  static func moment(_ element: XMLElement, _ attribute: String) throws(ErrorReport) -> Double? {
    guard let text = element[attribute] else { return nil }
    let hasZone = text.hasSuffix("Z") || text.dropFirst("2026-11-23".count).contains { "+-".contains($0) }
    guard let moment = try? Date(hasZone ? text : text + "Z", strategy: .iso8601) else {
      throw DASHManifest.broken("\(attribute) is \(text.prefix(40))")
    }
    return moment.timeIntervalSince1970
  }

  private static func unitSeconds(_ unit: Character, _ isTime: Bool) -> Double? {
    switch (unit, isTime) {
    case ("Y", false): 365 * 86_400
    case ("M", false): 30 * 86_400
    case ("D", false): 86_400
    case ("H", true): 3_600
    case ("M", true): 60
    case ("S", true): 1
    default: nil
    }
  }
}
