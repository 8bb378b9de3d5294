#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The fields of one object in a mapping file, read strictly: what is not known, or not allowed, is an error that
/// names the field and what is allowed.
struct MappingFields {
  private let container: KeyedDecodingContainer<Name>
  /// Where the object is in the file: `events.push.`, or nothing at the top.
  private let path: String

  struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(_ name: String) { stringValue = name }
    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { nil }
  }

  init(_ decoder: any Decoder) throws {
    do {
      container = try decoder.container(keyedBy: Name.self)
    } catch {
      throw MusicMapping.Problem("the mapping file is not a JSON object")
    }
    path = ""
  }

  private init(_ container: KeyedDecodingContainer<Name>, path: String) {
    self.container = container
    self.path = path
  }

  /// In the order of the alphabet, so that the same file always has the same first error.
  var names: [String] { container.allKeys.map(\.stringValue).sorted() }

  func onlyAllow(_ allowed: [String]) throws {
    guard let stranger = names.first(where: { !allowed.contains($0) }) else { return }
    throw MusicMapping.Problem(
      "\(path)\(stranger) is not known; allowed are \(allowed.joined(separator: ", "))")
  }

  func object(_ name: String) throws -> MappingFields? {
    guard container.contains(Name(name)) else { return nil }
    do {
      let fields = try container.nestedContainer(keyedBy: Name.self, forKey: Name(name))
      return MappingFields(fields, path: "\(path)\(name).")
    } catch {
      throw MusicMapping.Problem("\(path)\(name) is not an object")
    }
  }

  func number(_ name: String, in range: ClosedRange<Double>) throws -> Double? {
    guard container.contains(Name(name)) else { return nil }
    guard let value = try? container.decode(Double.self, forKey: Name(name)), range.contains(value) else {
      throw MusicMapping.Problem(
        "\(path)\(name) is not a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }

  func flag(_ name: String) throws -> Bool? {
    guard container.contains(Name(name)) else { return nil }
    guard let value = try? container.decode(Bool.self, forKey: Name(name)) else {
      throw MusicMapping.Problem("\(path)\(name) is not true or false")
    }
    return value
  }

  func word<Word: RawRepresentable<String>>(_ name: String, of allowed: [Word]) throws -> Word? {
    guard container.contains(Name(name)) else { return nil }
    let text = try? container.decode(String.self, forKey: Name(name))
    guard let word = allowed.first(where: { $0.rawValue == text }) else {
      throw MusicMapping.Problem("\(path)\(name) is none of \(Self.list(allowed))")
    }
    return word
  }

  func words<Word: RawRepresentable<String>>(_ name: String, of allowed: [Word]) throws -> [Word]? {
    guard container.contains(Name(name)) else { return nil }
    let texts = (try? container.decode([String].self, forKey: Name(name))) ?? []
    let words = texts.compactMap { text in allowed.first { $0.rawValue == text } }
    guard words.count == texts.count, (1...allowed.count).contains(words.count) else {
      throw MusicMapping.Problem(
        "\(path)\(name) is not a list of 1 to \(allowed.count) of \(Self.list(allowed))")
    }
    return words
  }

  private static func list<Word: RawRepresentable<String>>(_ words: [Word]) -> String {
    words.map(\.rawValue).joined(separator: ", ")
  }
}
