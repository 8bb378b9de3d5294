import Configuration
import Glibc

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Settings in a JSON file: one object whose keys are the flags' names, with texts, numbers, `true` and
/// `false`, and arrays for what may be given several times.
struct ConfigurationFile {
  /// Why the file is of no use at all, in one sentence.
  struct ReadError: Error, CustomStringConvertible {
    let description: String
  }

  private static let maximumByteCount = 1 << 20

  let path: String
  private(set) var values: [String: ConfigContent] = [:]
  /// What is wrong with single keys, each in one sentence.
  private(set) var problems: [String] = []

  /// Reads a file.
  init(path: String, settings: [Setting]) throws(ReadError) {
    try self.init(path: path, json: Self.read(path), settings: settings)
  }

  init(path: String, json: [UInt8], settings: [Setting]) throws(ReadError) {
    self.path = path
    let byName = Dictionary(settings.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    for (key, value) in try Self.decode(json, path).sorted(by: { $0.key < $1.key }) {
      guard let setting = byName[key] else {
        problems.append("there is no setting \(key.debugDescription) (in \(path))")
        continue
      }
      if let content = value.content(for: setting.kind) {
        values[key] = content
      } else {
        problems.append("\(key.debugDescription) in \(path) takes \(FileValue.wanted(by: setting.kind))")
      }
    }
  }

  private static func decode(_ json: [UInt8], _ path: String) throws(ReadError) -> [String: FileValue] {
    do {
      return try JSONDecoder().decode([String: FileValue].self, from: Data(json))
    } catch DecodingError.dataCorrupted(let context) {
      let cause = (context.underlyingError as? CocoaError)?.userInfo["NSDebugDescription"]
      throw ReadError(
        description: "\(path) is not JSON: \(cause.map { "\($0)" } ?? context.debugDescription)")
    } catch {
      throw ReadError(description: "\(path) is not one JSON object of settings")
    }
  }

  private static func read(_ path: String) throws(ReadError) -> [UInt8] {
    guard let file = fopen(path, "r") else {
      throw ReadError(description: "the configuration file \(path) cannot be read: \(errorText(errno))")
    }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: maximumByteCount + 1)
    let count = fread(&bytes, 1, bytes.count, file)
    guard ferror(file) == 0 else {
      throw ReadError(description: "the configuration file \(path) cannot be read: \(errorText(errno))")
    }
    guard count <= maximumByteCount else {
      throw ReadError(description: "the configuration file \(path) has over \(maximumByteCount) bytes")
    }
    return Array(bytes[..<count])
  }
}

/// A value as it stands in the file. Kept apart by its JSON type, so that `true` is no number and "60" no
/// flag.
private enum FileValue: Decodable {
  case flag(Bool)
  case text(String)
  case list([FileValue])
  /// null, or an object.
  case other

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let flag = try? container.decode(Bool.self) {
      self = .flag(flag)
    } else if let number = try? container.decode(Int.self) {
      self = .text("\(number)")
    } else if let number = try? container.decode(Double.self) {
      self = .text("\(number)")
    } else if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let list = try? container.decode([FileValue].self) {
      self = .list(list)
    } else {
      self = .other
    }
  }

  func content(for kind: Setting.Kind) -> ConfigContent? {
    switch (kind, self) {
    case (.flag, .flag(let flag)): return .bool(flag)
    case (.single, .text(let text)): return .string(text)
    case (.repeated, .list(let list)):
      let texts = list.compactMap { if case .text(let text) = $0 { text } else { nil } }
      return texts.count == list.count ? .stringArray(texts) : nil
    default: return nil
    }
  }

  static func wanted(by kind: Setting.Kind) -> String {
    switch kind {
    case .flag: "true or false"
    case .single: "a text or a number"
    case .repeated: "an array of texts"
    }
  }
}
